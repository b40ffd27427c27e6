import { portOf } from '../../core/addresses.ts'
import { isDomainOf } from '../../core/domain.ts'
import { isCorsField, isHopByHop } from '../../core/header-fields.ts'
import { isEveryAddress, isLoopback } from '../addresses.ts'
import { below, type Report } from '../document/report.ts'
import { namesHost } from '../hosts.ts'
import type { Address } from '../model/address.ts'
import type { GatewayConfig } from '../model/gateway.ts'
import { type Check, settingOf } from './check.ts'
import { headerChecks } from './headers.ts'
import { logoutChecks } from './logout.ts'
import { rules } from './rules.ts'

/** The checks of upstreams. */
export const upstreamChecks: readonly Check[] = [
  ...[missingUpstreams, forwardAuth, overlaps, gatewayConflicts, paths, responseFields, hosts],
  ...[...headerChecks, rules, ...logoutChecks, trustedOrigins, cors, cache],
]

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
