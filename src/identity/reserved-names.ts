import type { UpstreamConfig } from '../config/model.ts'

/**
 * The one spelling of a header's name that it is compared in. Some upstreams read `X_User` or `X.User` as `X-User`, and some
 * make of `X--User` the same variable: all of these are one name here.
 */
export function canonicalName(name: string): string {
  const lower = name.toLowerCase()
  return /[^a-z\d-]|--|^-|-$/.test(lower) ? lower.replaceAll(/[^a-z\d]+/g, '-').replaceAll(/^-|-$/g, '') : lower
}

/** All names that the configuration sets for an upstream: what a client sends under them never arrives. */
export function reservedNames(upstream: Pick<UpstreamConfig, 'headers'>): ReadonlySet<string> {
  return new Set(upstream.headers.map(({ name }) => canonicalName(name)))
}
