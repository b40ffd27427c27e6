import { applicationAt } from '../config/addresses.ts'
import type { UpstreamConfig } from '../config/model/upstream.ts'
import { fieldsOf } from '../core/header-fields.ts'

/**
 * The form in which names of headers are compared. Some upstreams read `X_User`, `X.User` or
 * `X--User` as `X-User`, so all of these have the same canonical name.
 */
export function canonicalName(name: string): string {
  const lower = name.toLowerCase()
  return /[^a-z\d-]|--|^-|-$/.test(lower) ? lower.replaceAll(/[^a-z\d]+/g, '-').replaceAll(/^-|-$/g, '') : lower
}

type Setting = Pick<UpstreamConfig, 'url' | 'headers' | 'rules' | 'signedIdentity'>

/**
 * The names of the headers that an upstream never receives from a client. These are the headers
 * that the configuration sets, and the one with a signed identity. If rules depend on the method,
 * they are also the headers that override it. The headers of other `upstreams` with the same
 * application are included, because the application trusts them on every path. Their
 * `Authorization` is not: one path may accept a token of the client while another gets the token of
 * the gateway.
 */
export function reservedNames(upstream: Setting, upstreams: readonly Setting[]): ReadonlySet<string> {
  const application = applicationAt(upstream.url)
  const others = upstreams.filter((other) => other !== upstream && applicationAt(other.url) === application)
  const theirs = others.flatMap(namesOf).filter((name) => name !== 'authorization')
  return new Set([...namesOf(upstream), ...theirs])
}

function namesOf({ headers, rules, signedIdentity }: Setting): readonly string[] {
  const all = [...headers, ...rules.flatMap((rule) => rule.headers ?? [])].map(({ name }) => name)
  const signed = signedIdentity === undefined ? [] : [signedIdentity.header]
  const names = [...fieldsOf('signed_identity'), ...signed, ...all].map(canonicalName)
  return rules.some(({ methods }) => methods !== undefined) ? [...names, ...fieldsOf('method_override')] : names
}
