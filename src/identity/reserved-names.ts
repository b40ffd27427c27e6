import { applicationAt } from '../config/addresses.ts'
import type { UpstreamConfig } from '../config/model.ts'
import { fieldsOf } from '../core/header-fields.ts'

/**
 * The one spelling of a header's name that it is compared in. Some upstreams read `X_User` or
 * `X.User` as `X-User`, and some make of `X--User` the same variable: all of these are one name
 * here.
 */
export function canonicalName(name: string): string {
  const lower = name.toLowerCase()
  return /[^a-z\d-]|--|^-|-$/.test(lower) ? lower.replaceAll(/[^a-z\d]+/g, '-').replaceAll(/^-|-$/g, '') : lower
}

type Setting = Pick<UpstreamConfig, 'url' | 'headers' | 'rules'>

/**
 * All names that never arrive from a client at an upstream, of all `upstreams`: those that the
 * configuration sets, and, where rules look at the method, those that would change it behind the
 * rules. The application believes them whichever way a request came, so those of the other
 * upstreams that lead to it are among them. Not `Authorization`: that is checked where it is read,
 * and one path may take a token of the client's where another gets ours.
 */
export function reservedNames(upstream: Setting, upstreams: readonly Setting[]): ReadonlySet<string> {
  const application = applicationAt(upstream.url)
  const others = upstreams.filter((other) => other !== upstream && applicationAt(other.url) === application)
  const theirs = others.flatMap(namesOf).filter((name) => name !== 'authorization')
  return new Set([...namesOf(upstream), ...theirs])
}

function namesOf({ headers, rules }: Setting): readonly string[] {
  const names = headers.map(({ name }) => canonicalName(name))
  return rules.some(({ methods }) => methods !== undefined) ? [...names, ...fieldsOf('method_override')] : names
}
