import { type Claims, withheldNames } from '../../core/claims.ts'
import type { SessionRecord } from './record.ts'

/** The claims of the verified ID Token, and the names of those that come from there only. */
export interface IdTokenClaims {
  readonly names: readonly string[]
  readonly claims: Claims
}

/** Name of a claim → the name that it has in sessions. */
export type RenamedClaims = Readonly<Record<string, string>>

const identity = ['iss', 'sub', 'sid']

/**
 * The claims of a session: those of UserInfo, except `iss`, `sub`, `sid` and those of
 * `fromIdToken`, which come from the verified ID Token. Each claim has one source: one that the ID
 * Token lacks is absent even if UserInfo has it. A renamed claim replaces one of its new name.
 * `_claim_names` tells what is withheld, without `_claim_sources`, which may have access tokens
 * (OpenID Connect Core §5.6.2).
 */
export function claimsOfSession(
  userinfo: Claims,
  who: Pick<SessionRecord, 'iss' | 'sub' | 'sid'>,
  fromIdToken: IdTokenClaims = { names: [], claims: {} },
  renamedClaims: RenamedClaims = {},
): Claims {
  const { iss, sub, sid } = who
  const { sid: _, _claim_names, _claim_sources, ...others } = userinfo
  const isOfIdToken = (name: string) => fromIdToken.names.includes(name)
  const claims = Object.fromEntries([
    ...Object.entries(others).filter(([name]) => !isOfIdToken(name)),
    ...Object.entries(fromIdToken.claims).filter(([name]) => isOfIdToken(name)),
  ])
  // What one source withholds is withheld, unless the claim comes from the other one.
  const withheld = [
    ...withheldNames(userinfo).filter((name) => !isOfIdToken(name) || !Object.hasOwn(claims, name)),
    ...withheldNames(fromIdToken.claims).filter((name) => isOfIdToken(name) || !Object.hasOwn(claims, name)),
  ].filter((name) => !identity.includes(name))
  return {
    ...renamed(claims, renamedClaims),
    ...(withheld.length > 0 && { _claim_names: renamed(Object.fromEntries(withheld.map(withMark)), renamedClaims) }),
    ...{ iss, sub, ...(sid === undefined ? {} : { sid }) },
  }
}

function withMark(name: string): [string, string] {
  return [name, 'withheld']
}

function renamed(claims: Claims, names: RenamedClaims): Claims {
  const isRenamed = (name: string) => Object.hasOwn(names, name)
  const unchanged = Object.entries(claims).filter(([name]) => !isRenamed(name))
  const changed = Object.entries(claims).filter(([name]) => isRenamed(name))
  return Object.fromEntries([...unchanged, ...changed.map(([name, value]) => [names[name] ?? name, value] as const)])
}
