import type { ClaimPath } from '../core/claims.ts'
import type { HeaderConfig } from './model/header.ts'
import { conditionsOf, type RequirementConfig } from './model/requirement.ts'
import type { RuleConfig } from './model/rule.ts'
import type { UpstreamConfig } from './model/upstream.ts'

/** The claims that the value of a header is made of. */
export function claimsIn({ source }: HeaderConfig): readonly ClaimPath[] {
  switch (source.kind) {
    case 'claim':
      return [source.path]
    case 'first_of':
      return source.firstOf
    case 'template':
      return source.template.filter((part) => typeof part !== 'string')
    case 'basic':
      return source.user.filter((part) => typeof part !== 'string')
    case 'bearer':
    case 'exchanged':
    case 'constant':
    case 'request':
      return []
  }
}

/** The claims that a requirement reads. */
export function claimsOf(requirement: RequirementConfig): readonly ClaimPath[] {
  return conditionsOf(requirement).flatMap((condition) => {
    if (condition.kind === 'claim') return [condition.claim]
    if (condition.kind !== 'email_domains') return []
    return condition.verified ? [['email'], ['email_verified']] : [['email']]
  })
}

/** The requirements that decide about the requests of a rule. */
export function requirementsOf({ require, respond }: RuleConfig): readonly RequirementConfig[] {
  return respond?.kind === 'maintenance' ? [...require, ...respond.unless] : require
}

/** The claims that decide about the requests of a rule. */
export function claimsOfRule(rule: RuleConfig): readonly ClaimPath[] {
  return requirementsOf(rule).flatMap(claimsOf)
}

/** The claims that the rules and the headers of an upstream read. */
export function claimsNeeded({
  headers,
  rules,
  signedIdentity,
  authorizeWith,
  applicationSignIn: signIn,
  keys,
}: Pick<
  UpstreamConfig,
  'headers' | 'rules' | 'signedIdentity' | 'authorizeWith' | 'applicationSignIn' | 'keys'
>): readonly ClaimPath[] {
  const values =
    signIn === undefined ? [] : [...signIn.values.map(([, value]) => value), signIn.username, signIn.password]
  return [
    ...[headers, ...rules.map((rule) => rule.headers ?? [])].flat().flatMap(claimsIn),
    ...[...rules.flatMap(claimsOfRule), ...(keys?.require ?? []).flatMap(claimsOf)],
    ...values
      .flatMap((value) => (value === 'ask' ? [] : value.filter((part) => typeof part !== 'string')))
      .filter(isClaim),
    ...[...(signedIdentity?.claims ?? []), ...(authorizeWith?.claims ?? [])].map(({ path }) => path),
  ]
}

/** `{username}` and `{password}` in the values of a sign-in are no claims. */
function isClaim([name]: ClaimPath): boolean {
  return name !== 'username' && name !== 'password'
}
