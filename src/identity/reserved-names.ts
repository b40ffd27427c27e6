import type { UpstreamConfig } from '../config/model.ts'

/**
 * The one spelling of a header's name that it is compared in. Some upstreams read `X_User` or `X.User` as `X-User`, and some
 * make of `X--User` the same variable: all of these are one name here.
 */
export function canonicalName(name: string): string {
  const lower = name.toLowerCase()
  return /[^a-z\d-]|--|^-|-$/.test(lower) ? lower.replaceAll(/[^a-z\d]+/g, '-').replaceAll(/^-|-$/g, '') : lower
}

/** With these some applications let a request be of another method than it says. */
const methodOverrides = ['x-http-method-override', 'x-http-method', 'x-method-override']

/**
 * All names that never arrive from a client: those that the configuration sets for an upstream, and, where rules look at the
 * method, those that would change it behind the rules.
 */
export function reservedNames({ headers, rules }: Pick<UpstreamConfig, 'headers' | 'rules'>): ReadonlySet<string> {
  const names = headers.map(({ name }) => canonicalName(name))
  return new Set(rules.some(({ methods }) => methods !== undefined) ? [...names, ...methodOverrides] : names)
}
