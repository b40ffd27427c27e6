import type { Diagnostic } from '../config/document/diagnostics.ts'
import { isWildcard, siteOf } from '../config/hosts.ts'
import type { EmbeddedTest, GatewayConfig, UpstreamConfig } from '../config/model.ts'
import { reason } from '../core/errors.ts'
import { asAsked } from '../forward/check-request.ts'
import type { Admission } from '../gate/admission.ts'
import { createAdmit } from '../gate/admit.ts'
import { TrustedProxies } from '../http/forwarded.ts'
import { requestFacts } from '../http/request-facts.ts'
import { isReserved } from '../http/unambiguous-request.ts'
import { createRouteTable } from '../rules/route-table.ts'
import { headerPairs, shownHeaders } from './header-text.ts'
import { accountWith, personWith, standInToken, tokenOf } from './person.ts'
import { trialIdentities } from './trial-identities.ts'

/**
 * Runs the tests of the configuration file with the decision that serves requests.
 * @returns an error for each test that fails
 */
export function failingTests(config: GatewayConfig): Diagnostic[] {
  return config.upstreams.flatMap((upstream) =>
    upstream.tests.flatMap((test) => {
      const why = failure(test, upstream, config)
      if (why === undefined) return []
      const message = `${test.method} ${test.path}: ${why}`
      return [{ severity: 'error' as const, ...test.place, path: test.setting, message }]
    }),
  )
}

function failure(test: EmbeddedTest, upstream: UpstreamConfig, config: GatewayConfig): string | undefined {
  const admission = admissionOf(test, upstream, config)
  if (typeof admission === 'string') return admission
  const outcome: string = admission.kind === 'caller_refused' ? 'unauthorized' : admission.kind
  if (outcome !== test.expect) {
    const why = admission.kind === 'forbidden' ? ` (${admission.why})` : ''
    return `expected ${test.expect}, but the outcome is ${outcome}${why}`
  }
  if (admission.kind !== 'pass') return undefined
  const headers = byLowerCaseName(headerPairs(admission.identity))
  const shown = byLowerCaseName(shownHeaders(admission.identity, upstream))
  for (const [name, expected] of Object.entries(test.headers)) {
    const lower = name.toLowerCase()
    if ((headers.get(lower) ?? null) !== expected)
      return `expected the header ${name} to be ${quoted(expected)}, but it is ${quoted(shown.get(lower) ?? null)}`
  }
  return undefined
}

function byLowerCaseName(headers: readonly (readonly [name: string, text: string])[]): ReadonlyMap<string, string> {
  return new Map(headers.map(([name, text]) => [name.toLowerCase(), text]))
}

function admissionOf(test: EmbeddedTest, upstream: UpstreamConfig, config: GatewayConfig): Admission | string {
  const who = personWith(test.as, config)
  // A request with a token has no session.
  const person = test.bearer ? personWith(undefined, config) : who
  const name = test.serviceAccount
  const admit = createAdmit(config, {
    identify: (_cookie, requested) => person.at(requested),
    identifyToken: (_token, requested) => tokenOf(who.at(requested)),
    // Also without a line in the file, because a test must not keep its removal from taking effect.
    identifyAccount: (credentials, _requested, accepts) => accountWith(credentials.name, accepts, config),
    exchange: () => standInToken,
    identities: trialIdentities(config),
    isStrict: false,
    site: siteOf(config),
    clock: { now: () => test.at ?? Date.now() },
    log: silent,
  })
  // Each test request is a page load of a browser, because that is what authors of tests expect.
  const basic = name === undefined ? undefined : `Basic ${Buffer.from(`${name}:of-the-test`).toString('base64')}`
  const authorization = test.bearer ? 'Bearer of-the-test' : basic
  const host = test.host ?? hostOf(upstream, config)
  if (host === undefined)
    return `the upstream serves each host of ${upstream.externalUrl.hostname}: write the host of the request, such as host: ${upstream.externalUrl.hostname.replace('*', 'wiki')}`
  const headers = { host, accept: 'text/html', ...(authorization !== undefined && { authorization }) }
  try {
    const received = requestFacts(
      { method: test.method, url: test.path, headers, socket: { remoteAddress: test.from } },
      new TrustedProxies([]),
      '',
    )
    const facts = upstream.forwardAuth ? asAsked(received, test.path) : received
    // A request that this upstream does not serve would not test its rules.
    if (isReserved(facts.target, config.reservedPrefix))
      return `the gateway itself serves this path, because it is below ${config.reservedPrefix}`
    const { method, target, forwarded } = facts
    const other = createRouteTable(config.upstreams).route(
      facts.host,
      method,
      target,
      forwarded.clientAddress,
    )?.upstream
    if (test.host !== undefined && other === undefined) return `no upstream serves this path at ${test.host}`
    if (other !== undefined && other !== upstream)
      return `upstreams.${other.name} serves this path: move the test there`
    const admission = admit(facts)
    return admission instanceof Promise ? 'the decision is not synchronous' : admission
  } catch (error) {
    return reason(error)
  }
}

/**
 * A host that the upstream serves. An upstream without hosts serves the hosts that no other
 * upstream names. `undefined` for one with a wildcard: a rule may differ for a host that another
 * upstream names.
 */
function hostOf({ hosts, externalUrl }: UpstreamConfig, { upstreams }: GatewayConfig): string | undefined {
  const first = hosts.find((host) => !isWildcard(host))
  if (first !== undefined) return first
  if (hosts.length > 0) return undefined
  const isTaken = upstreams.some((other) => other.hosts.includes(externalUrl.hostname))
  return isTaken ? 'any-other-host.invalid' : externalUrl.host
}

function quoted(value: string | null): string {
  return value === null ? 'absent' : `"${value}"`
}

const silent = { debug() {}, info() {}, warn() {}, error() {}, announce() {} }
