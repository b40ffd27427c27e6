import type { Claims } from '../core/claims.ts'
import type { SessionRecord } from './record.ts'

/** The claims that are taken from the ID Token only: their names, and their values there. */
export interface IdTokenClaims {
  readonly names: readonly string[]
  readonly claims: Claims
}

/**
 * The claims of a session. They come from UserInfo, except `iss`, `sub`, `sid` and the claims that
 * `fromIdToken` names, which come from the verified ID Token. Each claim has one source, so a claim
 * that the ID Token lacks is absent even if UserInfo has it.
 */
export function claimsOfSession(
  userinfo: Claims,
  who: Pick<SessionRecord, 'iss' | 'sub' | 'sid'>,
  fromIdToken: IdTokenClaims = { names: [], claims: {} },
): Claims {
  const { iss, sub, sid } = who
  const { sid: _, ...others } = userinfo
  const kept = Object.entries(others).filter(([name]) => !fromIdToken.names.includes(name))
  return { ...Object.fromEntries(kept), ...fromIdToken.claims, iss, sub, ...(sid === undefined ? {} : { sid }) }
}
