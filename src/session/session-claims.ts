import type { Claims } from '../core/claims.ts'
import type { SessionRecord } from './record.ts'

/** Claims that the ID Token alone is asked for: their names, and what it says of them. */
export interface IdTokenClaims {
  readonly names: readonly string[]
  readonly claims: Claims
}

/**
 * The claims of a session: userinfo, but who it is says the verified ID Token, never userinfo. Each
 * claim has one source: what `fromIdToken` names and the ID Token does not have is absent, whatever
 * userinfo says.
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
