import { Document, isCollection, type Node } from 'yaml'
import { loadText, outcomesOf, parseClaimPath, printable, readClaim } from '../../../src/entries/import.ts'
import type { Notes } from './notes.ts'
import { withSlash, type WrittenConfig, type WrittenUpstream } from './written-config.ts'

/** Claims of a person in a test. */
export type Claims = Readonly<Record<string, unknown>>

/** A request as a test describes it. */
export interface TestRequest {
  readonly method: string
  readonly path: string
  /** Absent: the request has no session. */
  readonly as?: Claims
  readonly host?: string
  readonly from?: string
}

/** A request, and whether the other program admits it. */
export interface Outcome extends TestRequest {
  readonly isAdmitted: boolean
}

interface Samples {
  readonly paths: readonly string[]
  readonly methods: readonly string[]
  readonly people: readonly Claims[]
  /** The networks of clients that the other program compares. */
  readonly networks?: readonly string[]
  readonly host?: string
}

const [maxPaths, maxNetworks] = [40, 4]

/** The methods that a test can have. */
const testable = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/**
 * What a program decides about requests. Each path has a request without a person. If that is
 * denied, the path also has a request of one person for each decision. Other methods and addresses
 * are added where their decision differs.
 * @param admits the decision of the other program, from its own rules; `undefined`: unknown
 */
export function outcomesFor(
  { paths, methods, people, networks = [], host }: Samples,
  admits: (request: TestRequest) => boolean | undefined,
): Outcome[] {
  const persons = [undefined, ...people]
  const tried = [...new Set(['GET', ...methods])].filter((method) => testable.has(method))
  const addresses = [...new Set(networks)].slice(0, maxNetworks).map(addressIn)
  return [...new Set(paths)].slice(0, maxPaths).flatMap((path) => {
    const decided = (method: string, from: string | undefined) =>
      persons.map((as) => {
        const request = {
          method,
          path,
          ...(as !== undefined && { as }),
          ...(host !== undefined && { host }),
          ...(from !== undefined && { from }),
        }
        return { ...request, isAdmitted: admits(request) }
      })
    const seen = new Set<string>()
    return tried.flatMap((method) =>
      [undefined, ...addresses].flatMap((from) => {
        const all = decided(method, from)
        const decisions = String(all.map(({ isAdmitted }) => isAdmitted))
        if (seen.has(decisions)) return []
        seen.add(decisions)
        return oneForEachDecision(
          all.flatMap(({ isAdmitted, ...request }) => (isAdmitted === undefined ? [] : { ...request, isAdmitted })),
        )
      }),
    )
  })
}

function addressIn(network: string): string {
  return network.replace(/\/.*$/, '').replace(/\.0$/, '.9')
}

/** The values of a claim, as text. */
export function valuesOf(person: Claims | undefined, claim: string): readonly string[] {
  return person === undefined ? [] : [readClaim(person as never, parseClaimPath(claim)) ?? []].flat().map(String)
}

/**
 * The request without a person, and one of a person for each decision. What is admitted without a
 * person is admitted for all people.
 */
function oneForEachDecision(outcomes: readonly Outcome[]): readonly Outcome[] {
  const withoutPerson = outcomes.filter(({ as }) => as === undefined)
  if (withoutPerson[0]?.isAdmitted === true) return withoutPerson
  const persons = outcomes.filter(({ as }) => as !== undefined)
  const [admitted, denied] = [true, false].map((each) => persons.find(({ isAdmitted }) => isAdmitted === each))
  return [...withoutPerson, ...[admitted, denied].flatMap((each) => each ?? [])]
}

/**
 * People for tests: one with each of these values, one with all of them, and one with none.
 * @param values the values of claims that the other program compares
 */
export function peopleWith(values: readonly (readonly [claim: string, value: string])[], base: Claims = {}): Claims[] {
  const names = ['ada', 'bob', 'cid', 'dan', 'eve', 'fay', 'gil', 'hal']
  const sets = [...values.slice(0, names.length - 2).map((one) => [one]), values, []]
  return sets.map((set, index) => ({ sub: names[index] ?? 'zoe', ...base, ...claimsWith(set) }))
}

const single = new Set(['sub', 'email', 'email_verified', 'hd', 'preferred_username'])

/** A claim may have the name of a member of every object, such as `__proto__`. */
function withoutMembers(): Record<string, unknown> {
  return Object.create(null) as Record<string, unknown>
}

function claimsWith(values: readonly (readonly [claim: string, value: string])[]): Claims {
  const claims = withoutMembers()
  for (const [claim, value] of values) {
    const path = parseClaimPath(claim).map(String)
    const name = path.pop() ?? claim
    let owner = claims
    for (const each of path) owner = (owner[each] ??= withoutMembers()) as Record<string, unknown>
    const known = owner[name]
    if (known === undefined) owner[name] = value
    else if (!single.has(name)) owner[name] = [...new Set([known, value].flat())]
  }
  return claims
}

/**
 * Adds tests: the request, and what the other program decides about it. Where this file denies a
 * request that the other program admits, the test is a comment, because a failing test keeps the
 * gateway from starting. Where this file would admit more, the test stays and fails.
 */
export function withTests(
  config: WrittenConfig,
  outcomes: readonly Outcome[],
  program: string,
  from: Notes,
): WrittenConfig {
  // What is unknown may have denied them.
  const known = outcomes.filter(({ isAdmitted }) => !isAdmitted || from.denials.length === 0)
  const placed = known
    .map((outcome) => ({ outcome, upstream: upstreamOf(outcome, config) }))
    .filter(({ outcome: { path }, upstream = '' }) => !isRedirected(path, config.upstreams[upstream]))
  const names = Object.keys(config.upstreams)
  const all = names.flatMap((name) => placed.filter(({ upstream }) => upstream === name))
  const found = decisionsOf(config, names, all)
  if ('error' in found && all.length > 0)
    from.decide('tests', `they were not run, because this file has an error: ${found.error}`)
  const decided = 'error' in found ? undefined : found
  // The gateway serves some paths itself.
  const ordered = decided === undefined ? all : all.filter((_, index) => decided[index] !== undefined)
  const decisions = decided?.filter((decision) => decision !== undefined)
  const stricter = ordered.filter(({ outcome }, index) => outcome.isAdmitted && isDenial(decisions?.[index]))
  const looser = ordered.filter(({ outcome }, index) => {
    const decision = decisions?.[index]
    return !outcome.isAdmitted && decision !== undefined && !isDenial(decision)
  })
  if (stricter.length > 0)
    from.changed(
      'tests',
      `${program} admits ${stricter.length} of the ${ordered.length} requests of the tests that this file denies, for the reasons in these notes; they are comments at tests`,
    )
  for (const { outcome } of looser)
    from.decide('tests', `${program} denies ${outcome.method} ${outcome.path}, and this file admits it: its test fails`)
  const upstreams = Object.entries(config.upstreams).map(([name, upstream]) => {
    const own = ordered.flatMap((each, index) =>
      each.upstream === name
        ? [{ test: testOf(each.outcome, decisions?.[index]), isComment: stricter.includes(each) }]
        : [],
    )
    return [name, { ...upstream, ...(own.length > 0 && { tests: testsNode(own, program) }) }] as const
  })
  return { ...config, upstreams: Object.fromEntries(upstreams) }
}

/** Whether the upstream redirects a folder to its slash, which the other program does not know. */
function isRedirected(path: string, upstream: WrittenUpstream | undefined): boolean {
  const redirect = JSON.stringify(path !== '' && !path.endsWith('/') ? withSlash(`${path}/`) : undefined)
  return upstream?.rules?.some((rule) => JSON.stringify(rule) === redirect) === true
}

function isDenial(decision: string | undefined): boolean {
  return decision !== undefined && decision !== 'pass' && decision !== 'respond'
}

/** A test as the file has it. Which denial it is, is said in the words of the gateway. */
function testOf({ method, path, as, host, from, isAdmitted }: Outcome, decision: string | undefined): object {
  const denied = isDenial(decision) ? decision : as === undefined ? 'sign_in' : 'forbidden'
  return {
    ...(as !== undefined && { as }),
    [method.toLowerCase()]: path,
    ...(host !== undefined && { host }),
    ...(from !== undefined && { from }),
    expect: isAdmitted ? (decision === 'respond' ? decision : 'pass') : denied,
  }
}

function testsNode(tests: readonly { readonly test: object; readonly isComment: boolean }[], program: string): Node {
  const document = new Document()
  const flow = (test: object) => {
    const node = document.createNode(test)
    if (isCollection(node)) node.flow = true
    return node
  }
  const kept = tests.filter(({ isComment }) => !isComment)
  const list = document.createNode(kept.map(({ test }) => flow(test)))
  const others = tests.filter(({ isComment }) => isComment)
  if (others.length > 0)
    list.comment = [
      ` With ${program}, these requests pass:`,
      ...others.map(({ test }) => printable(` - ${new Document(flow(test)).toString({ lineWidth: 0 }).trim()}`)),
    ].join('\n')
  return list
}

/** The upstream with the longest path, among those for the host. */
function upstreamOf({ path, host }: Outcome, { external_url, upstreams }: WrittenConfig): string | undefined {
  const hostsOf = (upstream: WrittenUpstream) =>
    upstream.hosts ?? [new URL(upstream.external_url ?? external_url).hostname]
  const serves = (upstream: WrittenUpstream) => `${path}/`.startsWith(upstream.path ?? '/')
  const candidates = Object.entries(upstreams).filter(
    ([, upstream]) => serves(upstream) && (host === undefined || hostsOf(upstream).includes(host)),
  )
  const lengthOf = ([, { path: own = '/' }]: (typeof candidates)[number]) => own.length
  return candidates.toSorted((one, other) => lengthOf(other) - lengthOf(one))[0]?.[0]
}

interface Placed {
  readonly outcome: Outcome
  readonly upstream: string | undefined
}

/** What the gateway decides, or the first error of the file. */
function decisionsOf(
  { listen, external_url, reserved_prefix, trusted_proxies, session, upstreams }: WrittenConfig,
  names: readonly string[],
  placed: readonly Placed[],
): readonly (string | undefined)[] | { readonly error: string } {
  const cookie = session !== undefined && 'cookie' in session ? session.cookie : undefined
  // Only what decides. The secrets and files of the rest are not here.
  const document = {
    version: 1,
    // The files of TLS are not here.
    listen: typeof listen === 'object' && listen !== null && 'address' in listen ? listen.address : listen,
    external_url,
    reserved_prefix,
    trusted_proxies,
    provider: { issuer: 'https://id.example.com', client_id: 'tests', client_secret: { env: 'CLIENT_SECRET' } },
    session: { store: 'memory', ...(cookie !== undefined && { cookie }) },
    upstreams: Object.fromEntries(
      names.map((name) => [
        name,
        {
          ...decisive(upstreams[name] ?? {}),
          tests: placed.filter(({ upstream }) => upstream === name).map(({ outcome }) => testOf(outcome, undefined)),
        },
      ]),
    ),
  }
  const loaded = loadText(JSON.stringify(document), { CLIENT_SECRET: 'a secret of the tests' })
  if (loaded.ok) return outcomesOf(loaded.config)
  const [first] = loaded.diagnostics.filter(({ severity }) => severity === 'error')
  return { error: first === undefined ? 'gatehouse check names it' : `${first.path}: ${first.message}` }
}

function decisive(upstream: WrittenUpstream): object {
  const decides = ['path', 'hosts', 'external_url', 'url', 'targets', 'forward_auth', 'rules']
  const required = Object.entries(upstream.headers ?? {}).filter(
    ([, header]) => typeof header === 'object' && header !== null && 'required' in header,
  )
  return {
    ...Object.fromEntries(Object.entries(upstream).filter(([name]) => decides.includes(name))),
    headers: Object.fromEntries(required),
    // The folders of responses are not here.
    rules: upstream.rules?.map((rule) => ('respond' in rule ? { ...rule, respond: { status: 200 } } : rule)),
  }
}
