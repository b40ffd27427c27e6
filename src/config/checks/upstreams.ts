import { portOf } from '../../core/addresses.ts'
import { isDomainOf } from '../../core/domain.ts'
import { isCorsField, isHopByHop, isReservedField, kindOfField } from '../../core/header-fields.ts'
import type { PathPattern } from '../../core/path-pattern.ts'
import { isEveryAddress, isLoopback } from '../addresses.ts'
import { below, type Report } from '../document/report.ts'
import { claimsIn } from '../header-claims.ts'
import { commonHeaderLimit, expectedSizes, longestOf, sizeText, totalOf } from '../header-size.ts'
import { namesHost } from '../hosts.ts'
import type { Address } from '../model/address.ts'
import type { GatewayConfig } from '../model/gateway.ts'
import type { LogoutLink, UpstreamConfig } from '../model/upstream.ts'
import type { GatewaySettings } from '../settings.ts'
import { checkBoundTokens } from './provider.ts'
import { ruleIndexOf } from './rule-index.ts'

export type Check = (config: GatewayConfig, report: Report, settings: GatewaySettings) => void

export const upstreamChecks: readonly Check[] = [
  missingUpstreams,
  forwardAuth,
  overlaps,
  gatewayConflicts,
  paths,
  responseFields,
  hosts,
  headers,
  tokenExchange,
  peopleOfSeveralProviders,
  signedIdentity,
  headerBudget,
  rules,
  logout,
  logoutCalls,
  trustedOrigins,
  cors,
  cache,
]

/**
 * Warns when an application identifies people by claims without the issuer. People of different
 * providers can have the same value, so the operator of one provider could impersonate people of
 * another one.
 */
function peopleOfSeveralProviders({ upstreams }: GatewayConfig, report: Report): void {
  for (const { name, providers, headers } of upstreams) {
    const at = settingOf(name, 'headers')
    const claims = headers.flatMap(claimsIn).map(([claim]) => String(claim))
    if (providers.length < 2 || claims.length === 0 || claims.includes('iss') || !report.isValid(at)) continue
    report.warning(
      at,
      `do not say at which of ${providers.join(', ')} a person signed in: people of different providers may have the same ${[...new Set(claims)].join(', ')}`,
      'add a header such as X-Issuer: iss and let the application use it, or give the upstream one provider',
    )
  }
}

/** The pointer of a setting of an upstream. */
export function settingOf(upstream: string, name: string): string {
  return below(below('/upstreams', upstream), name)
}

function missingUpstreams({ upstreams }: GatewayConfig, report: Report): void {
  if (upstreams.length === 0 && report.isValid('/upstreams', '/include'))
    report.missing('/upstreams', 'contains no upstream', 'for example orders: { url: http://127.0.0.1:3000 }')
}

/** Settings of an upstream that change what the gateway itself carries. */
const settingsOfTraffic = [
  ...['strip_path', 'also_known_as', 'rewrite_content', 'session_notice', 'set_cookie', 'response_headers'],
  ...['host_header', 'origin_header', 'cors', 'cache', 'session_cookies', 'upgrade', 'connect_timeout'],
  ...['response_timeout', 'idle_timeout', 'keep_alive', 'max_connections', 'max_streams', 'max_streams_per_client'],
  'ca_file',
]

function forwardAuth({ upstreams, trustedProxies, extAuthz }: GatewayConfig, report: Report): void {
  if (extAuthz !== undefined && !upstreams.some((each) => each.forwardAuth) && report.isValid('/upstreams'))
    report.errorAtKey(
      '/ext_authz',
      'has no effect: no upstream has forward_auth',
      'set forward_auth: true in place of url',
    )
  for (const upstream of upstreams.filter((each) => each.forwardAuth)) {
    const own = (name: string) => settingOf(upstream.name, name)
    if (trustedProxies.length === 0 && report.isValid('/trusted_proxies'))
      report.error(
        own('forward_auth'),
        'needs trusted_proxies: the gateway responds only to proxies that it trusts',
        'name the address of the proxy that asks, such as trusted_proxies: [10.1.2.3]',
      )
    const carried = 'another proxy carries the requests of this upstream (forward_auth)'
    if (report.isSet(own('url')))
      report.errorAtKey(own('url'), `has no effect: ${carried}`, 'remove it, or remove forward_auth')
    if (report.isSet(own('preset')))
      report.errorAtKey(own('preset'), `cannot be used: ${carried}`, 'write its headers and logout.paths here')
    if (report.isSet(own('access_tokens')))
      report.errorAtKey(
        own('access_tokens'),
        'cannot be used with forward_auth',
        'let the other proxy or the application check the tokens, or use url instead',
      )
    const logout = below(own('logout'), 'call')
    const passFirst = below(own('logout'), 'pass_first')
    for (const at of [...settingsOfTraffic.map(own), logout, passFirst])
      if (report.isSet(at))
        report.errorAtKey(at, `has no effect: ${carried}`, 'configure it in that proxy, or use url instead')
  }
}

function overlaps({ upstreams }: GatewayConfig, report: Report): void {
  const served = new Map<string, string>()
  for (const { name, hosts, path } of upstreams) {
    if (!report.isValid(...['hosts', 'path', 'external_url'].map((part) => settingOf(name, part)))) continue
    const places = (hosts.length === 0 ? ['any host'] : hosts).map((host) => [host, `${host} ${path}`] as const)
    const [shared, place = ''] = places.find(([, place]) => served.has(place)) ?? []
    if (shared === undefined) for (const [, place] of places) served.set(place, name)
    else
      report.errorAtKey(
        below('/upstreams', name),
        `serves the path ${path} on ${shared}, and so does upstreams.${served.get(place)}`,
        'give them different hosts or different paths',
      )
  }
}

function gatewayConflicts({ upstreams, listen, reservedPrefix }: GatewayConfig, report: Report): void {
  for (const { name, url, path, ca } of upstreams) {
    const [urlAt, caAt, pathAt] = [settingOf(name, 'url'), settingOf(name, 'ca_file'), settingOf(name, 'path')]
    if (report.isValid(urlAt, '/listen') && isAddressOf(url, listen))
      report.error(urlAt, 'is the address of the gateway itself: requests would loop')
    if (report.isValid(urlAt, caAt) && ca !== undefined && url.protocol === 'http:')
      report.error(caAt, 'has no effect: the url is http')
    if (report.isValid(pathAt, '/reserved_prefix') && path.startsWith(reservedPrefix))
      report.error(pathAt, `is never reached: paths below ${reservedPrefix} belong to the gateway`)
  }
}

function paths({ upstreams }: GatewayConfig, report: Report): void {
  for (const { name, path, url, stripPath } of upstreams) {
    const [urlAt, pathAt, stripAt] = [settingOf(name, 'url'), settingOf(name, 'path'), settingOf(name, 'strip_path')]
    if (!report.isValid(urlAt, pathAt, stripAt) || !report.isSet(urlAt)) continue
    if (stripPath && path === '/')
      report.warning(stripAt, 'has no effect: the path of this upstream is /', 'name the path to remove in path')
    const base = url.pathname.replace(/\/$/, '')
    if (!stripPath && path !== '/' && `${base}/`.endsWith(path))
      report.warning(
        urlAt,
        `ends in ${path}, which the path of a request has too: the upstream gets ${base}${path}`,
        'remove the path from url, or set strip_path: true',
      )
  }
}

/** Fields of a response that the gateway writes itself or that frame the response. */
const gatewayFields: ReadonlyMap<string, string | undefined> = new Map([
  ['cache-control', 'use the setting cache'],
  ['vary', 'use the setting cache'],
  ['set-cookie', 'use the setting set_cookie'],
  ['content-length', undefined],
  ['content-encoding', undefined],
  ['date', undefined],
])

function responseFields({ upstreams }: GatewayConfig, report: Report): void {
  for (const { name, responseHeaders } of upstreams) {
    const at = settingOf(name, 'response_headers')
    const [setAt, removeAt] = [below(at, 'set'), below(at, 'remove')]
    const isForbidden = (field: string) => gatewayFields.has(field.toLowerCase()) || isHopByHop(field.toLowerCase())
    const advice = (field: string) => gatewayFields.get(field.toLowerCase())
    const text = 'is a header that only the gateway sets'
    if (report.isValid(setAt))
      for (const field of Object.keys(responseHeaders.set).filter(isForbidden))
        report.errorAtKey(below(setAt, field), text, advice(field))
    if (report.isValid(removeAt))
      for (const [index, field] of responseHeaders.remove.entries())
        if (isForbidden(field)) report.error(below(removeAt, index), text, advice(field))
  }
}

function isAddressOf(url: URL, listen: Address): boolean {
  if (portOf(url) !== listen.port) return false
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  return (
    host === listen.host ||
    isEveryAddress(host) ||
    (isLoopback(host) && (isEveryAddress(listen.host) || isLoopback(listen.host)))
  )
}

function hosts({ upstreams, session }: GatewayConfig, report: Report): void {
  const { domain } = session.cookie
  for (const { name, hosts, externalUrl } of upstreams) {
    const at = settingOf(name, 'hosts')
    if (!report.isValid(at, '/external_url', settingOf(name, 'external_url'))) continue
    for (const [index, host] of hosts.entries())
      // With one session for a domain, a sign-in returns to the host where it began.
      if (!namesHost({ hosts: [externalUrl.hostname] }, host) && (domain === undefined || !isDomainOf(domain, host)))
        report.warning(
          below(at, index),
          `is not the host of external_url: a sign-in that begins here returns to ${externalUrl.host}`,
          `make it an upstream of its own with external_url: ${externalUrl.protocol}//${host}`,
        )
  }
}

/** Words that people write for a separator. */
const separators: ReadonlyMap<string, string> = new Map([
  ['comma', ','],
  ['semicolon', ';'],
  ['colon', ':'],
  ['space', ' '],
  ['pipe', '|'],
  ['tab', '\\t'],
])

/** Tokens, which other proxies offer like claims. */
const tokens = ['access_token', 'id_token', 'refresh_token']

/** The maps of headers of an upstream and of its rules, each with its place. */
function headerMaps({ name, headers, rules, providers }: UpstreamConfig) {
  const ofRules = rules.map(({ headers: all = [] }, index) => ({
    at: below(below(settingOf(name, 'rules'), index), 'headers'),
    headers: all.filter((header) => !headers.includes(header)),
  }))
  return [{ at: settingOf(name, 'headers'), headers }, ...ofRules].map((map) => ({ ...map, names: providers }))
}

/** A header sends the token, and `token_exchange` says which one. */
function tokenExchange({ upstreams }: GatewayConfig, report: Report): void {
  for (const upstream of upstreams) {
    const at = settingOf(upstream.name, 'token_exchange')
    const sent = headerMaps(upstream).flatMap(({ at, headers }) =>
      headers.filter(({ source }) => source.kind === 'exchanged').map(({ name }) => below(below(at, name), 'bearer')),
    )
    const isSet = upstream.tokenExchange !== undefined
    if (!isSet && !report.isSet(at))
      for (const place of sent)
        if (report.isSet(place))
          report.error(
            place,
            'needs token_exchange of the upstream, which says which token it gets',
            'add token_exchange: { audience: NAME } to the upstream',
          )
    if (
      isSet &&
      sent.length === 0 &&
      report.isValid(settingOf(upstream.name, 'headers'), settingOf(upstream.name, 'rules'))
    )
      report.errorAtKey(
        at,
        'has no effect: no header sends the token',
        'add headers: { Authorization: { bearer: exchanged_token } }',
      )
  }
}

function headers({ providers, upstreams }: GatewayConfig, report: Report): void {
  for (const { at, headers, names } of upstreams.flatMap(headerMaps)) {
    for (const provider of providers) if (names.includes(provider.name)) checkBoundTokens(provider, headers, at, report)
    for (const [index, header] of headers.entries()) {
      const twin = headers.slice(0, index).find((earlier) => earlier.name.toLowerCase() === header.name.toLowerCase())
      if (twin)
        report.errorAtKey(below(at, header.name), `is the same header as ${twin.name}`, 'case makes no difference')
      if (header.name.toLowerCase() === 'authorization' && header.source.kind === 'constant' && !header.source.isSecret)
        report.warning(
          below(below(at, header.name), 'value'),
          'is a credential, which everybody can read who reads this file',
          'write { env: NAME } or { file: PATH }',
        )
      if (header.encode === 'latin1')
        report.warning(
          below(below(at, header.name), 'encode'),
          'is latin1: this encoding has only the letters of western Europe, so it cannot encode every name',
          'use utf8, or percent when the upstream accepts ASCII only',
        )
      const claims = claimsIn(header).map(([claim]) => String(claim))
      const swapped = claims.find((claim) => /^[A-Z][A-Za-z]*-[A-Za-z-]+$/.test(claim))
      if (swapped !== undefined)
        report.warning(
          below(at, header.name),
          `sends a claim named ${swapped}, which looks like a header`,
          `the name of the header comes first: ${swapped}: ${header.name}`,
        )
      const joinAt = below(below(at, header.name), 'join')
      const separator = separators.get(header.join.toLowerCase())
      if (separator !== undefined && report.isSet(joinAt))
        report.warning(joinAt, `puts the word "${header.join}" between the members`, `write join: "${separator}"`)
      const token = claims.find((claim) => tokens.includes(claim))
      if (token !== undefined)
        report.warning(
          below(at, header.name),
          `names ${token}, which is a token and not a claim: the header will be absent`,
          token === 'refresh_token'
            ? 'the gateway does not pass this token on; name a claim such as sub or email'
            : `name a claim such as sub or email, or write Authorization: { bearer: ${token} } to pass the token on`,
        )
    }
  }
}

function signedIdentity({ upstreams }: GatewayConfig, report: Report): void {
  for (const upstream of upstreams) {
    const { name, signedIdentity } = upstream
    if (signedIdentity === undefined) continue
    const header = signedIdentity.header.toLowerCase()
    const at = below(settingOf(name, 'signed_identity'), 'header')
    const twin = headerMaps(upstream).find(({ headers }) =>
      headers.some((other) => other.name.toLowerCase() === header),
    )
    if (isReservedField(header) && kindOfField(header) !== 'signed_identity')
      report.error(at, 'is a header that only the gateway sets', 'use another name, such as X-Gatehouse-Identity')
    else if (header === 'authorization')
      report.error(
        at,
        'is for credentials, and this JWT is not a credential',
        'use another name, such as X-Gatehouse-Identity',
      )
    else if (twin !== undefined) report.error(at, `is also a header of ${report.pathText(twin.at)}`, 'use another name')
  }
}

/** The list with the longest headers is reported: that of the upstream, or that of a rule. */
function headerBudget({ upstreams }: GatewayConfig, report: Report): void {
  for (const upstream of upstreams) {
    const { name, headers, rules } = upstream
    const lists = [
      { at: settingOf(name, 'headers'), headers },
      ...rules.flatMap(({ headers: own }, index) =>
        own === undefined ? [] : [{ at: below(below(settingOf(name, 'rules'), index), 'headers'), headers: own }],
      ),
    ].map((list) => ({ ...list, sizes: expectedSizes(list.headers, upstream) }))
    const longest = lists.reduce((one, other) => (totalOf(other.sizes) > totalOf(one.sizes) ? other : one))
    const bytes = totalOf(longest.sizes)
    if (bytes > commonHeaderLimit && report.isValid(longest.at))
      report.warning(
        longest.at,
        `may have ${sizeText(bytes)} together (${longestOf(longest.sizes).join(', ')}): many applications reject more than ${sizeText(commonHeaderLimit)} of headers`,
        'lower max_bytes, send fewer groups, or raise the limit of the application',
      )
  }
}

function rules({ upstreams }: GatewayConfig, report: Report): void {
  for (const { name, path, rules } of upstreams) {
    const at = settingOf(name, 'rules')
    if (!report.isValid(at, settingOf(name, 'path'))) continue
    for (const [index, rule] of rules.entries()) {
      const place = below(at, index)
      // A rule covers itself.
      const earlier = ruleIndexOf(rules).firstCovering(rule)
      if (earlier >= 0 && earlier < index)
        report.warning(
          place,
          `is never reached: rules[${earlier}] matches all of its requests`,
          'the first rule that matches decides',
        )
      if (!canMatchBelow(rule.path, path))
        report.warning(below(place, 'path'), `is never reached: this upstream serves only paths below ${path}`)
      if (
        rule.access !== 'signed_in' &&
        rule.path.suffix !== undefined &&
        rule.path.segments.every((name) => name === '*')
      )
        report.warning(
          below(place, 'path'),
          `lets everybody request any path with this ending: many applications take /admin/x${rule.path.suffix} for /admin`,
          `name the folder of these files, such as /static/*${rule.path.suffix}`,
        )
      if (rule.access !== 'signed_in' && report.isSet(below(place, 'unauthenticated')))
        report.warning(below(place, 'unauthenticated'), `does not apply: access: ${rule.access} requires no sign-in`)
    }
  }
}

/** Whether a pattern can match a path of the upstream. */
function canMatchBelow(pattern: PathPattern, path: UpstreamConfig['path']): boolean {
  const wanted = path.split('/').slice(1, -1)
  const { segments, below: isOpen } = pattern
  if (!isOpen && segments.length < wanted.length) return false
  return wanted.every(
    (name, index) => segments[index] === undefined || segments[index] === '*' || segments[index] === name,
  )
}

function logout({ upstreams, reservedPrefix }: GatewayConfig, report: Report): void {
  for (const { name, path, logout, sessionCookies } of upstreams) {
    const at = settingOf(name, 'logout')
    const pathsAt = below(at, 'paths')
    if (report.isValid(pathsAt, settingOf(name, 'path'), '/reserved_prefix'))
      for (const [index, link] of logout.paths.entries()) {
        const isOwn = `${link.path.text}/`.startsWith(reservedPrefix)
        if (!canMatchBelow(link.path, path))
          report.warning(below(pathsAt, index), `is never reached: this upstream serves only paths below ${path}`)
        else if (isOwn)
          report.warning(below(pathsAt, index), `is never reached: paths below ${reservedPrefix} belong to the gateway`)
        else if (isEveryPage(link, path))
          report.warning(
            below(pathsAt, index),
            'matches every page of this upstream, so each request signs the person out',
            'name the logout link of the application, such as /logout',
          )
      }
    if (report.isValid(settingOf(name, 'session_cookies'), below(at, 'cookies')))
      for (const [index, cookie] of logout.cookies.entries()) {
        const cookieAt = below(below(at, 'cookies'), index)
        if (report.isSet(cookieAt) && sessionCookies.some(({ text }) => text === cookie.names.text))
          report.warning(
            cookieAt,
            'has no effect: session_cookies keeps this cookie out of the browser',
            'remove it here',
          )
      }
    const firstAt = below(at, 'pass_first')
    if (logout.passFirst && logout.paths.length === 0 && report.isValid(pathsAt, firstAt))
      report.warning(firstAt, 'has no effect: there is no logout link', 'name the logout link in logout.paths')
  }
}

/** Whether a logout link is the whole folder of the upstream. */
function isEveryPage({ path: link, query, methods }: LogoutLink, path: UpstreamConfig['path']): boolean {
  return (
    link.below &&
    link.suffix === undefined &&
    query.length === 0 &&
    methods === undefined &&
    link.segments.length < path.split('/').length - 1
  )
}

function logoutCalls({ upstreams }: GatewayConfig, report: Report): void {
  for (const { name, path, logout, sessionCookies } of upstreams) {
    const at = below(settingOf(name, 'logout'), 'call')
    const { call } = logout
    if (call === undefined || !report.isValid(at)) continue
    if (report.isValid(settingOf(name, 'path')) && !isBelow(call.target, path))
      report.error(
        at,
        `is not below ${path}, the path of this upstream`,
        `write the path that clients use, such as ${path}logout`,
      )
    if (report.isValid(settingOf(name, 'session_cookies')) && sessionCookies.length === 0)
      report.error(
        at,
        'needs session_cookies: without a cookie, the application does not know whose session to end',
        'name the session cookies of the application in session_cookies, such as [JSESSIONID]',
      )
  }
}

/** Whether a path with a query is the path of an upstream, or below it. */
function isBelow(target: string, path: UpstreamConfig['path']): boolean {
  return `${target.replace(/\?.*$/s, '').replace(/\/$/, '')}/`.startsWith(path)
}

function trustedOrigins({ upstreams }: GatewayConfig, report: Report): void {
  for (const { name, trustedOrigins, externalUrl } of upstreams) {
    const at = settingOf(name, 'trusted_origins')
    if (!report.isValid(at)) continue
    if (trustedOrigins === 'any')
      report.warning(
        at,
        'is any: every page below the same domain can act in the name of the person who opens it',
        'name the origins that need it',
      )
    else
      for (const [index, origin] of trustedOrigins.entries())
        if (origin.startsWith('http:') && externalUrl.protocol === 'https:')
          report.warning(below(at, index), 'is http: anybody on the network can change that page')
  }
}

function cors({ upstreams }: GatewayConfig, report: Report): void {
  for (const { name, cors, trustedOrigins, responseHeaders } of upstreams) {
    const at = settingOf(name, 'cors')
    const trustedAt = settingOf(name, 'trusted_origins')
    if (cors === undefined || !report.isValid(at, trustedAt)) continue
    if (cors.origins.length === 0)
      report.error(at, 'names no origin', 'name the origins in cors.origins or trusted_origins')
    for (const field of Object.keys(responseHeaders.set).filter((name) => isCorsField(name.toLowerCase())))
      report.errorAtKey(
        below(below(settingOf(name, 'response_headers'), 'set'), field),
        'is a header that cors sets',
        'remove it here, or remove cors',
      )
    const actingMethods = cors.methods.filter((method) => method !== 'GET' && method !== 'HEAD')
    if (!cors.credentials || actingMethods.length === 0 || trustedOrigins === 'any') continue
    for (const origin of cors.origins.filter((each) => !trustedOrigins.includes(each)))
      report.warning(
        at,
        `lets pages of ${origin} send ${actingMethods.join(', ')}, but such requests of a signed-in person are refused`,
        'name the origin in trusted_origins, or set methods: [GET, HEAD]',
      )
  }
}

function cache({ upstreams }: GatewayConfig, report: Report): void {
  for (const { name, cache } of upstreams)
    if (cache === 'upstream')
      report.warning(
        settingOf(name, 'cache'),
        'is upstream: when the application marks a personal page as cacheable, a shared cache can give it to another person',
        'use private: browsers cache what the application allows, and shared caches cache nothing',
      )
}
