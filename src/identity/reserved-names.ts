import { placesOf } from '../config/addresses.ts'
import type { UpstreamConfig } from '../config/model/upstream.ts'
import { fieldsOf } from '../core/header-fields.ts'

/**
 * The form in which names are compared. Some upstreams read `X_User`, `X.User` or `X--User` as
 * `X-User`.
 */
export function canonicalName(name: string): string {
  const lower = name.toLowerCase()
  return /[^a-z\d-]|--|^-|-$/.test(lower) ? lower.replaceAll(/[^a-z\d]+/g, '-').replaceAll(/^-|-$/g, '') : lower
}

type Setting = Pick<UpstreamConfig, 'targets' | 'headers' | 'rules' | 'signedIdentity'>

/**
 * The names of the headers that an upstream never receives from a client: those that the
 * configuration sets, that of a signed identity, and, if rules depend on the method, those that
 * override it. The headers of other `upstreams` with the same application are included, because it
 * trusts them on every path. Their `Authorization` is not: one path may accept a token of the
 * client while another gets the token of the gateway.
 */
export function reservedNames(upstream: Setting, upstreams: readonly Setting[]): ReadonlySet<string> {
  const places = placesOf(upstream)
  const others = upstreams.filter((other) => other !== upstream && !placesOf(other).isDisjointFrom(places))
  const theirs = others.flatMap(namesOf).filter((name) => name !== 'authorization')
  return new Set([...namesOf(upstream), ...theirs])
}

function namesOf({ headers, rules, signedIdentity }: Setting): readonly string[] {
  const all = [...headers, ...rules.flatMap((rule) => rule.headers ?? [])].map(({ name }) => name)
  const signed = signedIdentity === undefined ? [] : [signedIdentity.header]
  const names = [...fieldsOf('signed_identity'), ...signed, ...all].map(canonicalName)
  return rules.some(({ methods }) => methods !== undefined) ? [...names, ...fieldsOf('method_override')] : names
}
