import type { ClaimPath } from '../core/claims.ts'
import type { HeaderConfig } from './model/header.ts'
import type { RequirementConfig } from './model/requirement.ts'
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
  switch (requirement.kind) {
    case 'claim':
      return [requirement.claim]
    case 'email_domains':
      return requirement.verified ? [['email'], ['email_verified']] : [['email']]
    case 'all':
      return requirement.all.flatMap(claimsOf)
    case 'any':
      return requirement.any.flatMap(claimsOf)
    case 'not':
      return claimsOf(requirement.not)
    default:
      return []
  }
}

/** The claims that decide about the requests of a rule. */
export function claimsOfRule({ require, respond }: Pick<RuleConfig, 'require' | 'respond'>): readonly ClaimPath[] {
  const unless = respond?.kind === 'maintenance' ? respond.unless : []
  return [...require, ...unless].flatMap(claimsOf)
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
