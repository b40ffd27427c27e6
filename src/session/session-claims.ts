import type { Claims } from '../core/claims.ts'
import type { SessionRecord } from './record.ts'

/** The claims that are taken from the ID Token only: their names, and their values there. */
export interface IdTokenClaims {
  readonly names: readonly string[]
  readonly claims: Claims
}

/** Name of a claim → the name that it has in sessions. */
export type RenamedClaims = Readonly<Record<string, string>>

/**
 * The claims of a session. They come from UserInfo, except `iss`, `sub`, `sid` and the claims that
 * `fromIdToken` names, which come from the verified ID Token. Each claim has one source, so a claim
 * that the ID Token lacks is absent even if UserInfo has it. A renamed claim takes the place of one
 * that has its new name already.
 */
export function claimsOfSession(
  userinfo: Claims,
  who: Pick<SessionRecord, 'iss' | 'sub' | 'sid'>,
  fromIdToken: IdTokenClaims = { names: [], claims: {} },
  renamedClaims: RenamedClaims = {},
): Claims {
  const { iss, sub, sid } = who
  const { sid: _, ...others } = userinfo
  const kept = Object.entries(others).filter(([name]) => !fromIdToken.names.includes(name))
  const claims = renamed({ ...Object.fromEntries(kept), ...fromIdToken.claims }, renamedClaims)
  return { ...claims, iss, sub, ...(sid === undefined ? {} : { sid }) }
}

function renamed(claims: Claims, names: RenamedClaims): Claims {
  const isRenamed = (name: string) => Object.hasOwn(names, name)
  const unchanged = Object.entries(claims).filter(([name]) => !isRenamed(name))
  const changed = Object.entries(claims).filter(([name]) => isRenamed(name))
  return Object.fromEntries([...unchanged, ...changed.map(([name, value]) => [names[name] ?? name, value] as const)])
}
