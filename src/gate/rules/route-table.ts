import { isWildcard, wildcardOf } from '../../config/hosts.ts'
import type { RuleConfig } from '../../config/model/rule.ts'
import type { LogoutLink, UpstreamConfig } from '../../config/model/upstream.ts'
import { placesOf } from '../../config/target-addresses.ts'
import { GatewayError } from '../../core/errors.ts'
import { foldCase, matchesMethod, matchesPath, parsePathPattern, type PathPattern } from '../../core/patterns.ts'
import type { McpRequest } from '../../http/mcp-request.ts'
import { isForMcp } from './mcp-rule.ts'

/** The upstream of a request, and the rule that applies. */
export interface Route {
  readonly upstream: UpstreamConfig
  readonly rule: RuleConfig
  /** Whether the request is a logout link of the application. */
  readonly isLogout: boolean
  /**
   * Why the request must be refused, whatever the rule says: a rule about MCP could be for it.
   */
  readonly fault?: string
}

/** The segments of a canonical path, and the other readings of it by upstreams. */
export interface RoutedPath {
  readonly segments: readonly string[]
  readonly otherReadings?: readonly (readonly string[])[]
  /** `?…`, unchanged. */
  readonly query?: string
}

export interface RouteTable {
  /**
   * `host` is in lower case, without port. `client` is the address of the client. Absent: unknown.
   * `passed`: rules that let the request through, so that the next one decides. Absent: none.
   * `mcp`: the message that an MCP client sends. Absent: none.
   * @throws {GatewayError} ERR_REQUEST_TARGET when another reading of the path matches another rule
   */
  route(
    host: string,
    method: string,
    path: RoutedPath,
    client?: string,
    passed?: readonly RuleConfig[],
    mcp?: McpRequest,
  ): Route | undefined
}

/** The rule that applies when no other rule matches. */
const signedIn: RuleConfig = {
  path: parsePathPattern('/*'),
  methods: undefined,
  access: 'signed_in',
  unauthenticated: 'auto',
  require: [],
  mode: 'enforce',
}

/** An upstream with its routes, prepared before the first request. */
interface Mount {
  readonly upstream: UpstreamConfig
  readonly prefix: readonly string[]
  /** The prefix in the loose form. */
  readonly loosePrefix: readonly string[]
  /** Where its application listens. Mounts that share a place lead to the same application. */
  readonly places: ReadonlySet<string>
  readonly routes: readonly RuledRoute[]
  readonly otherwise: Route
  readonly logoutLinks: readonly LogoutLink[]
}

interface RuledRoute extends Route {
  /** In the loose form if the rule protects the path, as configured if it opens the path. */
  readonly path: PathPattern
  readonly isLoose: boolean
}

export function createRouteTable(upstreams: readonly UpstreamConfig[]): RouteTable {
  const mounts = upstreams.map(mountOf).sort((one, other) => other.prefix.length - one.prefix.length)
  const ofAnyHost = mounts.filter(({ upstream }) => upstream.hosts.length === 0)
  const mountsByName = new Map<string, Mount[]>()
  for (const mount of mounts)
    for (const host of new Set(mount.upstream.hosts)) {
      const found = mountsByName.get(host)
      if (found === undefined) mountsByName.set(host, [mount])
      else found.push(mount)
    }
  const byHost = new Map<string, readonly Mount[]>()
  for (const host of mountsByName.keys()) {
    const wildcard = isWildcard(host) ? undefined : wildcardOf(host)
    const levels = [host, ...(wildcard === undefined ? [] : [wildcard])]
    const named = levels.flatMap((level) => mountsByName.get(level) ?? [])
    byHost.set(host, [...named, ...ofAnyHost])
  }
  const hasWildcards = [...mountsByName.keys()].some(isWildcard)
  // A host that is named needs one lookup only.
  const mountsOf = (host: string) =>
    byHost.get(host) ?? (hasWildcards ? byHost.get(wildcardOf(host) ?? '') : undefined) ?? ofAnyHost

  return {
    route(host, method, path, client = '', passed = none, mcp) {
      const candidates = mountsOf(host)
      const { query = '' } = path
      const from = { method, client, passed, mcp }
      const route = match(candidates, from, path.segments, query)
      if (path.otherReadings === undefined) return route

      let isLogout = route?.isLogout
      for (const reading of path.otherReadings) {
        const other = match(candidates, from, reading, query)
        if (!isEquivalent(route, other)) reject(route, other)
        isLogout ||= other?.isLogout
      }
      // `/logout;jsessionid=1` is the logout link too. A sign-out by mistake does less harm than a
      // missed one.
      return route && isLogout && !route.isLogout ? { ...route, isLogout } : route
    },
  }
}

function mountOf(upstream: UpstreamConfig): Mount {
  const prefix = upstream.path.split('/').filter((segment) => segment !== '')
  return {
    upstream,
    prefix,
    loosePrefix: prefix.map(foldCase),
    places: placesOf(upstream),
    routes: upstream.rules.flatMap((rule) => routesOf(upstream, rule)),
    otherwise: { upstream, rule: signedIn, isLogout: false },
    logoutLinks: upstream.logout.paths.map(looseLink),
  }
}

/**
 * A rule with `authorize_with: false` both opens and protects its paths. For other spellings than
 * the configured one, it only protects: the policy decision point is asked.
 */
function routesOf(upstream: UpstreamConfig, rule: RuleConfig): readonly RuledRoute[] {
  const { authorizeWith, ...asked } = rule
  const exact = { upstream, rule, isLogout: false, isLoose: false, path: rule.path }
  if (rule.access !== 'signed_in') return [exact]
  const loosely = { ...exact, isLoose: true, path: loosePattern(rule.path) }
  return authorizeWith === false ? [exact, { ...loosely, rule: asked }] : [loosely]
}

function looseLink({ path, query, methods }: LogoutLink): LogoutLink {
  return { methods, path: loosePattern(path), query: query.map(([name, value]) => [foldCase(name), foldCase(value)]) }
}

function loosePattern(pattern: PathPattern): PathPattern {
  const { suffix } = pattern
  const segments = pattern.below ? pattern.segments.map(foldCase) : loose(pattern.segments)
  return { ...pattern, segments, ...(suffix !== undefined && { suffix: foldCase(suffix) }) }
}

/**
 * The loose form of a path: lower case, without a slash at the end. Many applications treat
 * `/Admin/` like `/admin`, so a rule that protects a path has to match all its spellings. A rule
 * that opens a path matches only the configured spelling.
 */
function loose(segments: readonly string[]): readonly string[] {
  const last = segments.length - 1
  const kept = last > 0 && segments[last] === '' ? segments.slice(0, last) : segments
  return mayFold(kept) ? kept.map(foldCase) : kept
}

/** Whether folding may change a segment. Runs for each request, without a regular expression. */
function mayFold(segments: readonly string[]): boolean {
  for (const segment of segments)
    for (let at = 0; at < segment.length; at += 1) {
      const code = segment.charCodeAt(at)
      if ((code >= 0x41 && code <= 0x5a) || code >= 0x80) return true
    }
  return false
}

/** What decides about a rule besides the path. */
interface Sender {
  readonly method: string
  readonly client: string
  readonly passed: readonly RuleConfig[]
  readonly mcp: McpRequest | undefined
}

const none: readonly RuleConfig[] = []

function match(
  candidates: readonly Mount[],
  from: Sender,
  segments: readonly string[],
  query: string,
): Route | undefined {
  const mount = candidates.find(({ prefix }) => startsWith(segments, prefix))
  if (mount === undefined) return undefined
  const loosely = loose(segments)
  const route = matchIn(mount, from, segments, loosely, query)
  if (loosely === segments) return route
  // To an application that ignores case, `/ADMIN` is `/admin`. This also holds when a separate
  // upstream entry protects `/admin`.
  for (const other of candidates) {
    if (other === mount) break
    if (!startsWith(loosely, other.loosePrefix) || other.places.isDisjointFrom(mount.places)) continue
    const protecting = matchIn(other, from, segments, loosely, query)
    if (protecting.rule.access === 'signed_in' || protecting.fault !== undefined) return protecting
  }
  return route
}

function matchIn(
  mount: Mount,
  { method, client, passed, mcp }: Sender,
  segments: readonly string[],
  loosely: readonly string[],
  query: string,
): Route {
  let fault: string | undefined
  const matched =
    mount.routes.find(({ rule, path, isLoose }) => {
      const isMeant =
        matchesMethod(rule.methods, method) &&
        (rule.clients === undefined || rule.clients.networks.has(client)) &&
        !passed.includes(rule) &&
        matchesPath(path, isLoose ? loosely : segments)
      const isFor = isMeant && (rule.mcp === undefined || isForMcp(rule.mcp, mcp))
      if (typeof isFor === 'string') fault = isFor
      return isFor !== false
    }) ?? mount.otherwise
  const route = fault === undefined ? matched : { ...matched, fault }
  return isLogoutLink(mount, method, loosely, query) ? { ...route, isLogout: true } : route
}

function startsWith(segments: readonly string[], prefix: readonly string[]): boolean {
  for (let index = 0; index < prefix.length; index++) if (segments[index] !== prefix[index]) return false
  return true
}

function isLogoutLink({ logoutLinks }: Mount, method: string, segments: readonly string[], query: string): boolean {
  // A preflight request is not the logout link itself, and has no cookie (Fetch, "CORS-preflight
  // fetch").
  if (logoutLinks.length === 0 || method === 'OPTIONS') return false
  return logoutLinks.some(
    (link) =>
      matchesMethod(link.methods, method) && matchesPath(link.path, segments) && hasParameters(query, link.query),
  )
}

/**
 * Whether a query has all of these parameters; it may have others. Applications disagree about
 * letter case, and about which value of a repeated parameter counts. So each value counts, in any
 * letter case, because a sign-out by mistake does less harm than a missed one.
 */
function hasParameters(query: string, wanted: LogoutLink['query']): boolean {
  if (wanted.length === 0) return true
  const sent = [...new URLSearchParams(query)].map(([name, value]) => [foldCase(name), foldCase(value)])
  return wanted.every(([name, value]) => sent.some((parameter) => parameter[0] === name && parameter[1] === value))
}

/**
 * How each setting of a rule takes part when two readings of a path match different rules. A new
 * setting without a row does not compile.
 *
 * - `selects`: it only decides which requests the rule matches, and both rules match the request
 * - `same`: both rules must have the same value
 * - `absent`: neither rule may have it, because rules that may deny a person are never equivalent
 */
const comparisons = {
  place: 'selects',
  setting: 'selects',
  path: 'selects',
  methods: 'selects',
  clients: 'selects',
  mcp: 'selects',
  // The policy decision point gets the name.
  name: 'same',
  access: 'same',
  unauthenticated: 'same',
  mode: 'same',
  needsDeviceBinding: 'same',
  authorizeWith: 'same',
  headers: 'same',
  respond: 'same',
  require: 'absent',
  stepUp: 'absent',
  accessTokens: 'absent',
  serviceAccounts: 'absent',
  clientCertificates: 'absent',
  keys: 'absent',
} as const satisfies Readonly<Record<keyof RuleConfig, 'selects' | 'same' | 'absent'>>

/** Whether two routes have the same effect. */
function isEquivalent(one: Route | undefined, other: Route | undefined): boolean {
  if (one?.upstream !== other?.upstream || one?.fault !== other?.fault) return false
  if (one === undefined || other === undefined || one.rule === other.rule) return true
  const [a, b] = [
    { ...signedIn, ...one.rule },
    { ...signedIn, ...other.rule },
  ]
  return (Object.keys(comparisons) as (keyof RuleConfig)[]).every((setting) => {
    const how = comparisons[setting]
    if (how === 'selects') return true
    return how === 'same' ? a[setting] === b[setting] : isAbsent(a[setting]) && isAbsent(b[setting])
  })
}

function isAbsent(value: unknown): boolean {
  return value === undefined || (Array.isArray(value) && value.length === 0)
}

function reject(one: Route | undefined, other: Route | undefined): never {
  const met = [one, other].map((route) => (route ? `${route.upstream.name}: ${route.rule.path.text}` : 'no upstream'))
  throw new GatewayError(
    'ERR_REQUEST_TARGET',
    `the request target is rejected: it can be read in two ways, which match ${met.join(' and ')}`,
  )
}
