import { isObject, isRemovableField, type JsonObject } from '../../../src/entries/import.ts'
import { timeLimit } from '../common/go-duration.ts'
import type { Notes } from '../common/notes.ts'
import type { TestRequest } from '../common/outcomes.ts'
import { covers, regionsOf } from '../common/path-regions.ts'
import { denyingRule, type Requirement, type Rule, withSlash, type WrittenUpstream } from '../common/written-config.ts'
import { criteriaOf, isMet, isPublic, type Policy, policyAt, policyOf, requirementOf } from './pomerium-policy.ts'

/** A route of Pomerium. */
export interface Route {
  readonly origin: string
  readonly settings: JsonObject
  /** `path`: one page. `prefix`: texts that begin with it. */
  readonly path: string | undefined
  readonly prefix: string
  readonly policy: Policy
  /** Settings that may restrict access, and that import does not know. */
  readonly unknown: readonly string[]
}

/** Reasons why all people are denied at a host until an operator decides, by its origin. */
export class HostDenials {
  readonly #from: Notes
  readonly #reasons = new Map<string, string[]>()

  constructor(from: Notes) {
    this.#from = from
  }

  deny(origin: string, option: string, text: string): void {
    this.#from.decide(option, `${text}; until then the host denies all people`)
    this.#reasons.set(origin, [...this.at(origin), `${option}: ${text}`])
  }

  at(origin: string): readonly string[] {
    return this.#reasons.get(origin) ?? []
  }
}

export function readRoutes(list: readonly unknown[], from: Notes, denials: HostDenials): readonly Route[] {
  return list.flatMap((settings) => (isObject(settings) ? readRoute(settings, from, denials) : []))
}

/** The order in which Pomerium compares routes with a request. */
export function inOrder(routes: readonly Route[]): readonly Route[] {
  const rank = (one: string, other: string) => (one < other ? 1 : one > other ? -1 : 0)
  return routes.toSorted(
    (one, other) =>
      rank(other.origin, one.origin) || rank(one.path ?? '', other.path ?? '') || rank(one.prefix, other.prefix),
  )
}

/** An upstream or a rule cannot have the paths of a regular expression. */
export const insteadOfRegex =
  'upstreams have paths, not regular expressions: in a copy, write prefix: /PATH/ or path: /PATH in place of regex, and import that'

function readRoute(settings: JsonObject, from: Notes, denials: HostDenials): Route[] {
  const shown = String(settings['from'])
  const url = URL.canParse(shown) ? new URL(shown) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    from.lost(`from: ${shown}`, 'the gateway serves http and https only')
    return []
  }
  const unknown = Object.keys(settings).filter((name) => !routeSettings.has(name) && isGiven(settings[name]))
  if (settings['regex'] !== undefined) {
    denials.deny(url.origin, `from: ${shown} regex`, insteadOfRegex)
    return []
  }
  const text = (name: string) => (typeof settings[name] === 'string' ? settings[name] : undefined)
  const list = (name: string) => [settings[name] ?? []].flat().map(String)
  const claims = isObject(settings['allowed_idp_claims']) ? settings['allowed_idp_claims'] : {}
  const shortcuts = {
    isPublic: settings['allow_public_unauthenticated_access'] === true,
    isForSignedIn: settings['allow_any_authenticated_user'] === true,
    domains: list('allowed_domains'),
    users: list('allowed_users'),
    groups: list('allowed_groups'),
    claims,
  }
  const policy = policyOf(settings['policy'], shortcuts)
  return [{ origin: url.origin, settings, path: text('path'), prefix: text('prefix') ?? '/', policy, unknown }]
}

/** Whether Pomerium admits a request; `undefined`: unknown, or there is no route. */
export function admits(routes: readonly Route[], request: TestRequest): boolean | undefined {
  const found = routes.find(
    ({ origin, path, prefix }) =>
      new URL(origin).hostname === request.host &&
      (path === undefined ? request.path.startsWith(prefix) : request.path === path),
  )
  if (found === undefined || found.unknown.length > 0) return undefined
  return isMet(found.policy, request)
}

/** Whether a setting of a route says something: `false` and empty values are the defaults. */
function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null && value !== false && value !== ''
}

/** The upstream of a route. */
export function upstreamFor(route: Route, global: JsonObject, from: Notes): WrittenUpstream {
  const { settings, path, prefix } = route
  const option = `from: ${route.origin}${path ?? (prefix === '/' ? '' : prefix)}`
  const targets = [settings['to'] ?? []].flat().map(String)
  const folder = path ?? prefix
  const own = folder === '/' ? '/' : `${folder.replace(/\/$/, '')}/`
  if (targets.length === 0)
    return {
      ...(own !== '/' && { path: own }),
      rules: respondingRules(rulesOf(route, option, from), route, option, from),
    }
  noteLost(option, settings, from)
  return {
    ...addressesOf(targets, route, option, from),
    ...(own !== '/' && { path: own }),
    host_header: settings['preserve_host_header'] === true ? undefined : 'upstream',
    ...(settings['allow_websockets'] !== true && settings['allow_spdy'] !== true && { upgrade: [] }),
    response_timeout: timeLimitOf('timeout', settings, option, from),
    idle_timeout: timeLimitOf('idle_timeout', settings, option, from),
    ca_file: settings['tls_custom_ca_file'],
    server_name: settings['tls_upstream_server_name'] ?? settings['tls_server_name'],
    client_certificate:
      settings['tls_client_cert_file'] === undefined
        ? undefined
        : { cert_file: settings['tls_client_cert_file'], key_file: settings['tls_client_key_file'] },
    ...(targets.length > 1 && balanceOf(settings, option, from)),
    health_check: healthCheckOf(settings, option, from),
    ...identityOf(settings, global, option, from),
    request_headers: { remove: removedFrom(settings) },
    response_headers: responseHeadersOf(settings, global, option, from),
    rules: rulesOf(route, option, from),
  }
}

/** The rules of a route to which Pomerium itself responds. Other settings deny all people. */
function respondingRules(
  rules: readonly Rule[],
  { settings, origin }: Route,
  option: string,
  from: Notes,
): readonly Rule[] {
  const respond = (rule: Rule) =>
    responseOf(settings['response']) ?? redirectOf(settings['redirect'], origin, rule.path)
  return rules.map((rule): Rule => {
    if (rule.respond !== undefined) return rule
    const response = respond(rule)
    if (response !== undefined) return { ...rule, respond: response }
    from.decide(
      option,
      'its redirect or response is not translated; until you write it as respond (docs/responses.md), the route denies all people',
    )
    return { ...denyingRule(rule.path, 'Write respond of this rule.'), respond: { status: 404 } }
  })
}

function responseOf(response: unknown): Rule['respond'] | undefined {
  if (!isObject(response)) return undefined
  const { status = 200, body = '', ...more } = response
  const isStatus = typeof status === 'number' && status >= 200 && status <= 599 && (status < 300 || status > 399)
  if (!isStatus || typeof body !== 'string' || Object.keys(more).length > 0) return undefined
  return { status, ...(body !== '' && { text: body }) }
}

/** A redirect to another host, to https, or to one path. */
function redirectOf(redirect: unknown, origin: string, pattern: string): Rule['respond'] | undefined {
  if (!isObject(redirect)) return undefined
  const { https_redirect, scheme_redirect, host_redirect, port_redirect, path_redirect, response_code, ...more } =
    redirect
  const { hostname, port, protocol } = new URL(origin)
  const scheme = https_redirect === true ? 'https' : String(scheme_redirect ?? protocol.slice(0, -1))
  const authority = `${String(host_redirect ?? hostname)}:${String(port_redirect ?? (host_redirect === undefined ? port : ''))}`
  const path = path_redirect === undefined ? pattern : String(path_redirect)
  const to = `${scheme}://${authority.replace(/:$/, '')}${path}`
  const isKnown = Object.keys(more).length === 0 && /^https?:\/\/[\w.:-]+\/[\w./~-]*\*?$/.test(to)
  const status = Number(response_code ?? 301)
  return isKnown && [301, 302, 303, 307, 308].includes(status) && URL.canParse(to) ? { to, status } : undefined
}

const namesOfFields = /^[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*$/

/** The fields that the application must not get from clients. Pomerium sets its own ones. */
function removedFrom(settings: JsonObject): readonly string[] {
  const named = [settings['remove_request_headers'] ?? []].flat().map(String)
  const removed = named.filter((name) => namesOfFields.test(name) && isRemovableField(name.toLowerCase()))
  return ['X-Pomerium-*', ...new Set(removed)]
}

/** Fields of responses that the gateway writes itself, so that response_headers cannot. */
const ownResponseFields =
  /^(?:cache-control|connection|content-encoding|content-length|date|keep-alive|set-cookie|te|trailer|transfer-encoding|upgrade|vary)$/i

function responseHeadersOf(settings: JsonObject, global: JsonObject, option: string, from: Notes): object | undefined {
  const [everywhere, own] = [global['set_response_headers'], settings['set_response_headers']].map((each) =>
    isObject(each) ? each : {},
  )
  const given = Object.entries({ ...everywhere, ...own }).filter(([name]) => name !== 'disable')
  const named = [settings['remove_response_headers'] ?? []].flat().map(String)
  const isOwn = (name: string) => ownResponseFields.test(name)
  const isText = (value: unknown) => /^[ -~]{0,4096}$/.test(String(value)) && !String(value).includes('$')
  for (const [name, value] of given)
    if (isOwn(name) || !isText(value)) from.lost(`${option} set_response_headers.${name}`, 'it is not translated')
  for (const name of named.filter(isOwn)) from.lost(`${option} remove_response_headers`, `${name} is not translated`)
  const set = given
    .filter(([name, value]) => !isOwn(name) && isText(value))
    .map(([name, value]) => [name, String(value)])
  const remove = named.filter((name) => !isOwn(name))
  return set.length + remove.length === 0
    ? undefined
    : { ...(set.length > 0 && { set: Object.fromEntries(set) as object }), ...(remove.length > 0 && { remove }) }
}

function balanceOf(settings: JsonObject, option: string, from: Notes): object {
  const policy = settings['load_balancing_policy']
  if (policy === undefined || /^round_robin$/i.test(String(policy))) return {}
  if (/^least_request$/i.test(String(policy))) return { balance: 'least_requests' }
  from.lost(`${option} load_balancing_policy`, 'balance is round_robin, least_requests or sticky')
  return {}
}

function healthCheckOf(settings: JsonObject, option: string, from: Notes): object | undefined {
  const [check, ...more] = [settings['health_checks'] ?? []].flat()
  if (check === undefined) return undefined
  const { http_health_check, timeout, interval, healthy_threshold, unhealthy_threshold } = isObject(check) ? check : {}
  const { path, expected_statuses, ...others } = isObject(http_health_check) ? http_health_check : {}
  if (more.length > 0 || typeof path !== 'string' || !/^\/[!-~]*$/.test(path) || Object.keys(others).length > 0) {
    from.lost(`${option} health_checks`, 'write health_check of the upstream')
    return undefined
  }
  const expect = [expected_statuses ?? []].flat().flatMap((range) => statusesIn(range))
  return {
    path,
    every: timeLimit(String(interval ?? '')),
    timeout: timeLimit(String(timeout ?? '')),
    healthy_after: healthy_threshold,
    unhealthy_after: unhealthy_threshold,
    expect: expect.length === 0 ? [200] : expect,
  }
}

/** The statuses of a range, without its end. */
function statusesIn(range: unknown): readonly number[] {
  const [start, end] = isObject(range) ? [Number(range['start']), Number(range['end'])] : [0, 0]
  return Array.from({ length: 400 }, (_, index) => 200 + index).filter((status) => status >= start && status < end)
}

function addressesOf(
  targets: readonly string[],
  { settings, prefix, path }: Route,
  option: string,
  from: Notes,
): object {
  const [first = ''] = (targets[0] ?? '').split(',')
  const url = URL.canParse(first) ? new URL(first) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    from.decide(option, 'write the URL of the application as url')
    return { url: 'http://127.0.0.1:3000' }
  }
  const rewrite = settings['prefix_rewrite']
  const to = typeof rewrite === 'string' ? rewrite : url.pathname
  const isReplaced = typeof rewrite === 'string' || url.pathname !== '/'
  const end = to.replace(/\/$/, '')
  const address = `${url.origin}${isReplaced ? end : ''}`
  const strip = isReplaced && path === undefined && prefix !== '/' ? { strip_path: true } : {}
  if (targets.length === 1) return { url: address, ...strip }
  return {
    targets: targets.map((target) => {
      const [each = '', weight] = target.split(',')
      return { url: each.replace(/\/$/, ''), ...(weight !== undefined && { weight: Number(weight) }) }
    }),
    ...strip,
  }
}

/** What a time limit that is not translated becomes. */
const untranslated = {
  timeout: 'a response must begin within 60s, which response_timeout of the upstream changes',
  idle_timeout:
    'a body may pause for 5m, which idle_timeout of the upstream changes (0s: no limit); event streams and WebSockets may pause without limit',
}

function timeLimitOf(
  name: keyof typeof untranslated,
  settings: JsonObject,
  option: string,
  from: Notes,
): string | undefined {
  const given = settings[name]
  if (given === undefined) return undefined
  const limit = timeLimit(String(given))
  if (limit !== undefined) return limit
  from.lost(`${option} ${name}`, `${String(given)} is not translated: ${untranslated[name]}`)
  return undefined
}

/** Headers of the signed-in person, and fixed ones. */
function identityOf(settings: JsonObject, global: JsonObject, option: string, from: Notes): object {
  const isOn = (settings['pass_identity_headers'] ?? global['pass_identity_headers']) === true
  const given = global['jwt_claims_headers']
  const claims = isObject(given)
    ? Object.entries(given).map(([header, claim]) => [header, String(claim)] as const)
    : [given ?? []].flat().map((claim) => [`X-Pomerium-Claim-${String(claim)}`, String(claim)] as const)
  const headers = isOn ? claims.map(([header, claim]) => [header, { claim, join: ',' }] as const) : []
  const fixed = isObject(settings['set_request_headers']) ? Object.entries(settings['set_request_headers']) : []
  if (isOn)
    from.changed(
      'pass_identity_headers',
      'X-Pomerium-Jwt-Assertion has another issuer, and its keys are at /.gatehouse/jwks.json of the host (docs/signed-identity.md)',
    )
  return {
    headers: Object.fromEntries([
      ...headers,
      ...fixed.flatMap(([name, value]) => fixedHeader(name, String(value), option, from)),
    ]),
    ...(isOn && { signed_identity: { header: 'X-Pomerium-Jwt-Assertion', claims: ['email', 'name', 'groups'] } }),
  }
}

function fixedHeader(name: string, value: string, option: string, from: Notes): readonly (readonly [string, object])[] {
  const [, token] = /^(?:Bearer )?\$\{?pomerium\.(id_token|access_token)\}?$/.exec(value) ?? []
  if (token !== undefined && /^authorization$/i.test(name)) return [[name, { bearer: token }]]
  if (value.includes('$')) {
    from.lost(
      `${option} set_request_headers.${name}`,
      'its variable is not translated; write the header below headers of the upstream',
    )
    return []
  }
  if (!/authorization|cookie|key|pass|secret|token/i.test(name)) return [[name, { value }]]
  const variable = name.toUpperCase().replaceAll(/[^A-Z0-9]/g, '_')
  from.changed(
    `${option} set_request_headers.${name}`,
    `the file contains no secret; set the environment variable ${variable}`,
  )
  return [[name, { env: variable }]]
}

const lost: Readonly<Record<string, string>> = {
  rewrite_response_headers: 'write response_headers of the upstream',
  cors_allow_preflight: 'the gateway responds to preflight requests with cors of the upstream; write its origins there',
  tls_skip_verify: 'certificates are always verified; name the CA in ca_file of the upstream',
  'tls_custom_ca tls_client_cert tls_client_key': 'write it to a file, and name that in ca_file or client_certificate',
  'tls_upstream_allow_renegotiation enable_google_cloud_serverless_authentication': 'it is not available',
  'kubernetes_service_account_token kubernetes_service_account_token_file':
    'write headers: { Authorization: { file: PATH } }',
  'outlier_detection healthy_panic_threshold circuit_breaker_thresholds': 'see health_check and eject of an upstream',
}

/**
 * The settings of a route that are read, noted, or that restrict no request. Another client at the
 * provider, host or path may restrict access.
 */
const routeSettings = new Set([
  ...'from to path prefix regex policy prefix_rewrite preserve_host_header timeout idle_timeout redirect response'.split(
    ' ',
  ),
  ...'allow_websockets allow_spdy allow_public_unauthenticated_access allow_any_authenticated_user'.split(' '),
  ...'allowed_users allowed_domains allowed_groups allowed_idp_claims pass_identity_headers set_request_headers'.split(
    ' ',
  ),
  ...'tls_custom_ca_file tls_server_name tls_upstream_server_name tls_client_cert_file tls_client_key_file'.split(' '),
  ...'id name description logo_url show_error_details remove_request_headers set_response_headers'.split(' '),
  ...'remove_response_headers health_checks load_balancing_policy'.split(' '),
  ...Object.keys(lost).flatMap((names) => names.split(' ')),
])

function noteLost(option: string, settings: JsonObject, from: Notes): void {
  for (const [names, why] of Object.entries(lost))
    for (const name of names.split(' ')) if (isGiven(settings[name])) from.lost(`${option} ${name}`, why)
}

/** The rules of a route: for each path that its policy names, and for the others. */
function rulesOf({ path, prefix, policy, unknown }: Route, option: string, from: Notes): readonly Rule[] {
  const whole = path === undefined ? '/*' : path
  if (unknown.length > 0) {
    from.decide(
      option,
      `${unknown.join(', ')} may restrict access, and is not translated; until you decide, the route denies all people`,
    )
    return [denyingRule('/*', `Decide what ${unknown.join(', ')} means.`)]
  }
  const criteria = criteriaOf(policy)
  const regions = path === undefined ? regionsOf(['/*', ...criteria.flatMap(({ patterns = [] }) => patterns)]) : [whole]
  noteCriteria(criteria, option, from)
  const ruleAt = (region: string) => {
    const isWithin = (patterns: readonly string[]) => patterns.some((pattern) => covers(pattern, region))
    return ruleFor(region, policyAt(policy, isWithin), option, from)
  }
  const rules = regions.map(ruleAt)
  const isFolder = prefix.endsWith('/') && prefix !== '/' && path === undefined
  const bare = isFolder ? [withSlash(prefix)] : []
  return [...bare, ...rules, ...(path === undefined ? [] : [denyingRule('/*', `The route was only for ${path}.`)])]
}

function noteCriteria(criteria: ReturnType<typeof criteriaOf>, option: string, from: Notes): void {
  if (criteria.some(({ name }) => name === 'domain'))
    from.changed(`${option} domain`, 'the provider must say that it has verified the address (email_verified: true)')
  if (criteria.some(({ name }) => name === 'groups'))
    from.changed(
      `${option} groups`,
      'groups are those of the claim groups, and not of a directory; let the provider send them',
    )
  if (criteria.some(({ needsPerson, patterns }) => !needsPerson && patterns === undefined))
    from.changed(
      `${option} policy`,
      'people must also sign in where an address, a method or the time alone admitted them',
    )
}

function ruleFor(path: string, policy: Policy, option: string, from: Notes): Rule {
  if (isPublic(policy)) return { path, access: 'public' }
  const requirement = requirementOf(policy)
  if (requirement === true) return { path }
  if (requirement === false) return denyingRule(path, 'The policy denies all people.')
  if (!('lost' in requirement)) return { path, require: listOf(requirement) }
  const names = [...new Set(requirement.lost)].join(', ')
  from.decide(option, `rules cannot express ${names} of its policy; until you decide, its paths deny all people`)
  return denyingRule(path, `Decide what ${names} means.`)
}

function listOf(requirement: Requirement): readonly Requirement[] {
  return 'all' in requirement ? requirement.all : [requirement]
}

/**
 * Denies all people for routes whose prefix ends within a name: Pomerium also matches longer names,
 * which another route serves here, with another policy.
 */
export function notePrefixes(routes: readonly Route[], denials: HostDenials): void {
  for (const { origin, path, prefix, policy } of routes) {
    if (path !== undefined || prefix.endsWith('/')) continue
    const wider = routes.find(
      (other) =>
        other.origin === origin &&
        other.path === undefined &&
        other.prefix !== prefix &&
        prefix.startsWith(other.prefix),
    )
    if (wider === undefined) continue
    const text = `it also matched ${prefix}-other, which the route for ${wider.prefix} serves here`
    if (JSON.stringify(wider.policy) === JSON.stringify(policy)) continue
    const how = isPublic(wider.policy) ? 'without a sign-in' : 'with its policy'
    denials.deny(origin, `prefix: ${prefix}`, `${text}, ${how}; write ${prefix}/ if that is meant`)
  }
}
