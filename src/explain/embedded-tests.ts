import { asAsked } from '../check-requests/check-request.ts'
import type { Diagnostic } from '../config/document/diagnostics.ts'
import { isWildcard } from '../config/hosts.ts'
import type { GatewayConfig } from '../config/model/gateway.ts'
import type { EmbeddedTest, UpstreamConfig } from '../config/model/upstream.ts'
import { accessKeyPrefix } from '../core/credentials.ts'
import { printable, reason } from '../core/errors.ts'
import { mcpRevision, toolCall } from '../core/mcp.ts'
import { mapInSteps, runAtOnce, type Steps } from '../core/steps.ts'
import type { Admission } from '../gate/admission.ts'
import { createRouteTable, type RouteTable } from '../gate/rules/route-table.ts'
import type { DecisionStep } from '../gate/trace.ts'
import { TrustedProxies } from '../http/forwarded.ts'
import { isReserved, requestFacts } from '../http/request-facts.ts'
import { stepsOf } from './steps.ts'
import { accountWith, certificateWith, personWith, trialAdmit } from './trial.ts'
import { headerPairs, shownHeaders } from './upstream-request.ts'

/**
 * Runs the tests of the configuration file with the decision that serves requests.
 * @returns an error for each test that fails
 */
export function failingTests(config: GatewayConfig): Diagnostic[] {
  return runAtOnce(failingTestsInSteps(config))
}

/**
 * What the decision about the request of each test is, in the order of the tests; `undefined` when
 * a test is invalid.
 */
export function outcomesOf(config: GatewayConfig): readonly (string | undefined)[] {
  const admissionOf = admissions(config)
  return config.upstreams.flatMap((upstream) =>
    upstream.tests.map((test) => {
      const admission = admissionOf(test, upstream)
      return typeof admission === 'string' ? undefined : outcomeOf(admission)
    }),
  )
}

/** The steps of `failingTests`, for a process that serves requests. */
export function* failingTestsInSteps(config: GatewayConfig): Steps<Diagnostic[]> {
  const all = config.upstreams.flatMap((upstream) => upstream.tests.map((test) => ({ test, upstream })))
  if (all.length === 0) return []
  const admissionOf = admissions(config)
  yield
  const failures = yield* mapInSteps(all, ({ test, upstream }) => {
    const steps: DecisionStep[] = []
    const why = failure(test, admissionOf(test, upstream, steps), upstream)
    if (why === undefined) return []
    const message = `${test.method} ${test.path}: ${why}`
    const diagnostic = { severity: 'error' as const, ...test.place, path: test.setting, message }
    return [steps.length === 0 ? diagnostic : { ...diagnostic, hint: hintOf(steps) }]
  })
  return failures.flat()
}

/** The steps of the decision, a line each. */
function hintOf(steps: readonly DecisionStep[]): string {
  return steps
    .flatMap(stepsOf)
    .map(({ name, text }) => printable(`${name}: ${text}`))
    .join('\n    ')
}

function failure(test: EmbeddedTest, admission: Admission | string, upstream: UpstreamConfig): string | undefined {
  if (typeof admission === 'string') return admission
  const outcome = outcomeOf(admission)
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

function outcomeOf({ kind }: Admission): string {
  return kind === 'caller_refused' ? 'unauthorized' : kind
}

function byLowerCaseName(headers: readonly (readonly [name: string, text: string])[]): ReadonlyMap<string, string> {
  return new Map(headers.map(([name, text]) => [name.toLowerCase(), text]))
}

/** The admission of the request of a test, or why the test is invalid. `steps` gets its steps. */
type AdmissionOf = (test: EmbeddedTest, upstream: UpstreamConfig, steps?: DecisionStep[]) => Admission | string

/** Prepares the decision once for all tests, because that takes long with many upstreams. */
function admissions(config: GatewayConfig): AdmissionOf {
  const anonymous = personWith(undefined, config)
  let person = anonymous
  let current: EmbeddedTest | undefined
  let trace: DecisionStep[] | undefined
  const routes = createRouteTable(config.upstreams)
  const takenHosts = new Set(config.upstreams.flatMap(({ hosts }) => hosts))
  const admit = trialAdmit(config, {
    routes,
    // A request with a token or a key has no session.
    session: (upstream) => (current?.bearer === true || current?.key === true ? anonymous : person).at(upstream),
    token: (upstream) => person.at(upstream),
    // Also without a line in the file, because a test must not keep its removal from taking effect.
    identifyAccount: ({ name }, _upstream, accepts) => accountWith(name, accepts, config),
    identifyCertificate: () => current?.clientCertificate && certificateWith(current.clientCertificate, config),
    evaluate: () => ({ kind: 'permitted' }),
    isStrict: false,
    trace: (step) => void trace?.push(step),
    clock: { now: () => current?.at ?? Date.now() },
  })
  return (test, upstream, steps) => {
    current = test
    trace = steps
    person = personWith(test.as, config)
    return admissionOf(test, upstream, { config, routes, takenHosts, admit })
  }
}

interface Prepared {
  readonly config: GatewayConfig
  readonly routes: RouteTable
  /** The hosts that upstreams name. */
  readonly takenHosts: ReadonlySet<string>
  readonly admit: ReturnType<typeof trialAdmit>
}

/** The path of a method of gRPC: `/package.Service/Method`. */
const grpcMethod = /^\/\w+(?:\.\w+)+\/\w+$/

function admissionOf(
  test: EmbeddedTest,
  upstream: UpstreamConfig,
  { config, routes, takenHosts, admit }: Prepared,
): Admission | string {
  const name = test.serviceAccount
  // Other requests are page loads of a browser, because that is what authors of tests expect.
  const basic = name === undefined ? undefined : `Basic ${Buffer.from(`${name}:of-the-test`).toString('base64')}`
  const bearer = test.key ? `${accessKeyPrefix}of-the-test` : 'of-the-test'
  const authorization = test.bearer || test.key ? `Bearer ${bearer}` : basic
  const host = test.host ?? hostOf(upstream, takenHosts)
  if (host === undefined)
    return `the upstream serves each host of ${upstream.externalUrl.hostname}: write the host of the request, such as host: ${upstream.externalUrl.hostname.replace('*', 'wiki')}`
  // A program calls a method of gRPC.
  const isCall = upstream.protocol !== 'http1' && test.method === 'POST' && grpcMethod.test(test.path)
  const kind = isCall ? { 'content-type': 'application/grpc' } : { accept: 'text/html' }
  const headers = { host, ...kind, ...mcpFields(test.mcp), ...(authorization !== undefined && { authorization }) }
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
    const other = routes.route(facts.host, method, target, forwarded.clientAddress)?.upstream
    if (test.host !== undefined && other === undefined) return `no upstream serves this path at ${test.host}`
    if (other !== undefined && other !== upstream)
      return `upstreams.${other.name} serves this path: move the test there`
    return admit(facts)
  } catch (error) {
    return reason(error)
  }
}

/** The fields of an MCP client that calls a tool, or sends a message of this method. */
function mcpFields(message: string | undefined): Readonly<Record<string, string>> {
  if (message === undefined) return {}
  const named = { 'mcp-method': toolCall, 'mcp-name': message }
  return { 'mcp-protocol-version': mcpRevision, ...(message.includes('/') ? { 'mcp-method': message } : named) }
}

/**
 * A host that the upstream serves. An upstream without hosts serves the hosts that no other
 * upstream names. `undefined` for one with a wildcard: a rule may differ for a host that another
 * upstream names.
 */
function hostOf({ hosts, externalUrl }: UpstreamConfig, taken: ReadonlySet<string>): string | undefined {
  const first = hosts.find((host) => !isWildcard(host))
  if (first !== undefined) return first
  if (hosts.length > 0) return undefined
  return taken.has(externalUrl.hostname) ? 'any-other-host.invalid' : externalUrl.host
}

function quoted(value: string | null): string {
  return value === null ? 'absent' : `"${value}"`
}
