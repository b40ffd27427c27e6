import { isLoopback } from '../config/addresses.ts'
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

type Setting = Pick<UpstreamConfig, 'headers' | 'rules'>

/**
 * All names that never arrive from a client: those that the configuration sets for an upstream, and, where rules look at the
 * method, those that would change it behind the rules. The application believes them whichever way a request came, so those of
 * `others`, the upstreams that lead to the same one, are among them. Not `Authorization`: that is checked where it is read, and one path may
 * take a token of the client's where another gets ours.
 */
export function reservedNames(upstream: Setting, others: readonly Setting[] = []): ReadonlySet<string> {
  const theirs = others.flatMap(namesOf).filter((name) => name !== 'authorization')
  return new Set([...namesOf(upstream), ...theirs])
}

function namesOf({ headers, rules }: Setting): readonly string[] {
  const names = headers.map(({ name }) => canonicalName(name))
  return rules.some(({ methods }) => methods !== undefined) ? [...names, ...methodOverrides] : names
}

/** The other upstreams that lead to the same application: to the same host and port, of which only the path may differ. */
export function ofSameApplication(upstream: UpstreamConfig, upstreams: readonly UpstreamConfig[]): UpstreamConfig[] {
  return upstreams.filter((other) => other !== upstream && applicationAt(other.url) === applicationAt(upstream.url))
}

function applicationAt({ protocol, hostname, port }: URL): string {
  const host = isLoopback(hostname) ? 'localhost' : hostname
  return `${host}:${port === '' ? (protocol === 'https:' ? '443' : '80') : port}`
}
