import { isDomainOf } from '../../core/addresses.ts'
import { isCorsField, isHopByHop, isRemovableField, kindOfField } from '../../core/header-fields.ts'
import { matchesPath } from '../../core/patterns.ts'
import { isLoopback } from '../addresses.ts'
import { didYouMean } from '../document/did-you-mean.ts'
import { areValid, type Setting } from '../document/report.ts'
import { namesHost } from '../hosts.ts'
import type { GatewayConfig } from '../model/gateway.ts'
import type { RuleConfig } from '../model/rule.ts'
import type { LogoutLink, UpstreamConfig } from '../model/upstream.ts'
import { isInFolder } from '../published-folders.ts'
import { registrationFile } from '../registration.ts'
import { type At, type Check, ofEachUpstream } from './check.ts'
import { headerChecks } from './headers.ts'
import { canMatchBelow, narrowRules, outsideOf, rules } from './rules.ts'
import { targetChecks } from './targets.ts'

/** The checks of upstreams. */
export const upstreamChecks: readonly Check[] = [
  ...[missingUpstreams, extAuthz, overlaps],
  ...[responds, ...targetChecks, conflicts, requestFields, responseFields, hosts, ...headerChecks, rules].map(
    ofEachUpstream,
  ),
  ...[logoutLinks, logoutCookies, logoutCall, applicationSignIn, trustedOrigins, cors, cache].map(ofEachUpstream),
  narrowRules,
  ...[accessTokens, serviceAccounts, testedAccounts, keys].map(ofEachUpstream),
  clientCertificates,
]

function missingUpstreams({ upstreams }: GatewayConfig, at: At): void {
  if (upstreams.length === 0 && areValid(at('upstreams'), at('include')))
    at('upstreams').missing('contains no upstream', 'for example orders: { url: http://127.0.0.1:3000 }')
}

function extAuthz({ upstreams, extAuthz }: GatewayConfig, at: At): void {
  if (extAuthz !== undefined && !upstreams.some(({ forwardAuth }) => forwardAuth) && at('upstreams').isValid)
    at('ext_authz').errorAtKey('has no effect: no upstream has forward_auth', 'set forward_auth: true in place of url')
}

function responds(upstream: UpstreamConfig, at: At, config: GatewayConfig): void {
  const { respondsOnly, rules, externalUrl } = upstream
  if (!areValid(at('rules'), at('path'))) return
  for (const [index, rule] of rules.entries()) {
    const respondAt = at('rules', index, 'respond')
    if (respondsOnly && rule.respond === undefined)
      return at('url').missing(
        `is missing: the application gets the requests of rules[${index}]`,
        'for example http://127.0.0.1:3000, or write respond in each rule',
      )
    if (rule.respond?.kind === 'redirect' && /^http:/i.test(rule.respond.to) && externalUrl.protocol === 'https:')
      respondAt.below('to').warning('is http: anybody on the network can change that page', 'write https://')
    const secret = rule.respond?.kind === 'files' ? secretIn(rule.respond.folder, respondAt, config) : undefined
    if (secret !== undefined)
      respondAt
        .below('files')
        .error(`contains ${secret}, which is for the gateway only`, 'move the files to a folder of their own')
    if (leadsToItself(index, upstream, config))
      respondAt.below('to').error('leads to this rule again, and browsers stop with an error')
  }
}

/** A file in the folder that only the gateway may read, even if the gateway writes it later. */
function secretIn(folder: string, at: Setting, { file, session: { store } }: GatewayConfig): string | undefined {
  // The gateway writes further files beside it, with the same beginning.
  if (store.kind === 'file' && isInFolder(store.file, folder)) return 'session.store.file'
  const files = [file, at.place.file, registrationFile(file), ...at.report.secretFiles.map((secret) => secret.file)]
  return files.find((each) => isInFolder(each, folder))
}

/** Whether the target of a redirect is a path at the same host that the same rule redirects. */
function leadsToItself(index: number, upstream: UpstreamConfig, { upstreams }: GatewayConfig): boolean {
  const { path, rules, hosts } = upstream
  const { hostname, origin } = upstream.externalUrl
  const { respond, access, path: pattern } = rules[index] as RuleConfig
  if (respond?.kind !== 'redirect') return false
  const isOfHost = hosts.includes(hostname) || upstreams.every((each) => each.hosts.length === 0)
  const to = isOfHost && respond.to.startsWith(`${origin}/`) ? respond.to.slice(origin.length) : respond.to
  const target = to.replace(/[?#].*$/s, '')
  const isOfAnother = upstreams.some((other) => other.path.length > path.length && target.startsWith(other.path))
  if (!to.startsWith(path) || isOfAnother) return false
  // A rule that requires a sign-in also matches with a slash at the end.
  const segments = (access === 'signed_in' ? target.replace(/\/$/, '') : target).slice(1).split('/')
  const decides = ({ path, methods, clients }: RuleConfig) =>
    methods === undefined && clients === undefined && matchesPath(path, segments)
  return matchesPath(pattern, segments) && !rules.slice(0, index).some(decides)
}

function overlaps({ upstreams }: GatewayConfig, at: At): void {
  const served = new Map<string, string>()
  for (const { name, hosts, path } of upstreams) {
    if (!areValid(...['hosts', 'path', 'external_url'].map((part) => at('upstreams', name, part)))) continue
    const places = (hosts.length === 0 ? ['any host'] : hosts).map((host) => [host, `${host} ${path}`] as const)
    const [shared, place = ''] = places.find(([, place]) => served.has(place)) ?? []
    if (shared === undefined) for (const [, place] of places) served.set(place, name)
    else
      at('upstreams', name).errorAtKey(
        `serves the path ${path} on ${shared}, and so does upstreams.${served.get(place)}`,
        'give them different hosts or different paths',
      )
  }
}

function conflicts({ path }: UpstreamConfig, at: At, { reservedPrefix }: GatewayConfig, file: At): void {
  if (areValid(at('path'), file('reserved_prefix')) && path.startsWith(reservedPrefix))
    at('path').error(`is never reached: paths below ${reservedPrefix} belong to the gateway`)
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

function requestFields({ removedFields, keys }: UpstreamConfig, at: At): void {
  const removeAt = at('request_headers', 'remove')
  if (!removeAt.isValid) return
  for (const [index, field] of removedFields.entries()) {
    if (field === keys?.header) continue
    const isBeginning = field.endsWith('*')
    // The gateway compares with `-` in place of `_`, and a beginning may lack the last one.
    const name = field.toLowerCase().replaceAll('_', '-').replace(/-?\*$/, '-*')
    if (kindOfField(name) === 'trace')
      removeAt
        .below(index)
        .error(
          'belongs to a trace, and cannot be removed here',
          'remove it: with tracing, the gateway replaces this header of clients; without tracing, let the proxy in front remove it',
        )
    else if (name !== 'cookie' && !isRemovableField(name))
      removeAt
        .below(index)
        .error(
          isBeginning
            ? 'is the beginning of headers that only the gateway sets'
            : 'is a header that only the gateway sets',
          'remove it: a client can never set it',
        )
  }
}

function responseFields({ responseHeaders: { set, remove, defaults } }: UpstreamConfig, at: At): void {
  const [setAt, removeAt] = [at('response_headers', 'set'), at('response_headers', 'remove')]
  const isForbidden = (field: string) => gatewayFields.has(field.toLowerCase()) || isHopByHop(field.toLowerCase())
  const advice = (field: string) => gatewayFields.get(field.toLowerCase())
  const text = 'is a header that only the gateway sets'
  if (setAt.isValid)
    for (const field of Object.keys(set).filter(isForbidden)) setAt.below(field).errorAtKey(text, advice(field))
  const named = new Set(defaults.flatMap(({ name, unless }) => (unless === undefined ? name.toLowerCase() : [])))
  if (setAt.isValid)
    for (const field of Object.keys(set).filter((name) => named.has(name.toLowerCase())))
      setAt.below(field).errorAtKey('is set by another setting of response_headers too', 'remove one of them')
  if (removeAt.isValid)
    for (const [index, field] of remove.entries())
      if (isForbidden(field)) removeAt.below(index).error(text, advice(field))
}

function hosts({ hosts, externalUrl }: UpstreamConfig, at: At, { session }: GatewayConfig, file: At): void {
  const { domain } = session.cookie
  if (!areValid(at('hosts'), file('external_url'), at('external_url'), file('session', 'cookie', 'domain'))) return
  const isNamed = hosts.includes(externalUrl.hostname)
  for (const [index, host] of hosts.entries())
    // With one session for a domain, a sign-in returns to the host where it began.
    if (!namesHost({ hosts: [externalUrl.hostname] }, host) && (domain === undefined || !isDomainOf(domain, host)))
      at('hosts', index).warning(
        `is not the host of external_url: a sign-in that begins here returns to ${externalUrl.host}`,
        didYouMean(host, [externalUrl.hostname]) === undefined
          ? `${isNamed ? 'make it an upstream of its own with' : 'in place of hosts, write'} external_url: ${externalUrl.protocol}//${host}`
          : `did you mean ${externalUrl.hostname}? Otherwise, write external_url: ${externalUrl.protocol}//${host} in place of hosts`,
      )
}

function logoutLinks({ path, logout }: UpstreamConfig, at: At, { reservedPrefix }: GatewayConfig, file: At): void {
  if (!areValid(at('logout', 'paths'), at('path'), file('reserved_prefix'))) return
  for (const [index, link] of logout.paths.entries()) {
    const linkAt = at('logout', 'paths', index)
    if (!canMatchBelow(link.path, path)) linkAt.warning(...outsideOf(path, link.path))
    else if (`${link.path.text}/`.startsWith(reservedPrefix))
      linkAt.warning(`is never reached: paths below ${reservedPrefix} belong to the gateway`)
    else if (isEveryPage(link, path))
      linkAt.warning(
        'matches every page of this upstream, so each request signs the person out',
        'name the logout link of the application, such as /logout',
      )
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

function logoutCookies({ logout, sessionCookies }: UpstreamConfig, at: At): void {
  const [cookiesAt, firstAt] = [at('logout', 'cookies'), at('logout', 'pass_first')]
  if (areValid(at('session_cookies'), cookiesAt))
    for (const [index, { names }] of logout.cookies.entries())
      if (cookiesAt.below(index).isSet && sessionCookies.some(({ text }) => text === names.text))
        cookiesAt
          .below(index)
          .warning('has no effect: session_cookies keeps this cookie out of the browser', 'remove it here')
  if (logout.passFirst && logout.paths.length === 0 && areValid(at('logout', 'paths'), firstAt))
    firstAt.warning('has no effect: there is no logout link', 'name the logout link in logout.paths')
}

function logoutCall({ path, logout: { call } }: UpstreamConfig, at: At): void {
  const callAt = at('logout', 'call')
  if (call === undefined || !callAt.isValid) return
  if (at('path').isValid && !isBelow(call.target, path))
    callAt.error(
      `is not below ${path}, the path of this upstream`,
      `write the path that clients use, such as ${path}logout`,
    )
}

function applicationSignIn({ path, headers, applicationSignIn: signIn }: UpstreamConfig, at: At): void {
  const signInAt = at('application_sign_in')
  if (signIn === undefined || !areValid(signInAt, at('path'), at('headers'))) return
  for (const setting of ['page', 'action'] as const)
    if (signIn[setting] !== undefined && !isBelow(signIn[setting], path))
      signInAt
        .below(setting)
        .error(
          `is not below ${path}, the path of this upstream`,
          `write the path that clients use, such as ${path}login`,
        )
  const own = headers.find(({ name }) => name.toLowerCase() === 'authorization')
  if (own !== undefined && (signIn.kind === 'basic' || signIn.token !== undefined))
    at('headers', own.name).errorAtKey('is what application_sign_in sends', 'remove one of them')
}

/** Whether a path with a query is the path of an upstream, or below it. */
function isBelow(target: string, path: UpstreamConfig['path']): boolean {
  return `${target.replace(/\?.*$/s, '').replace(/\/$/, '')}/`.startsWith(path)
}

function trustedOrigins({ trustedOrigins, externalUrl }: UpstreamConfig, at: At): void {
  const originsAt = at('trusted_origins')
  if (!originsAt.isValid) return
  if (trustedOrigins === 'any')
    originsAt.warning(
      'is any: every page below the same domain can act in the name of the person who opens it',
      'name the origins that need it',
    )
  else
    for (const [index, origin] of trustedOrigins.entries())
      if (origin.startsWith('http:') && externalUrl.protocol === 'https:')
        originsAt.below(index).warning('is http: anybody on the network can change that page')
}

function cors({ cors, trustedOrigins, responseHeaders }: UpstreamConfig, at: At): void {
  if (cors === undefined || !areValid(at('cors'), at('trusted_origins'))) return
  if (cors.origins.length === 0)
    at('cors').error('names no origin', 'name the origins in cors.origins or trusted_origins')
  for (const field of Object.keys(responseHeaders.set).filter((name) => isCorsField(name.toLowerCase())))
    at('response_headers', 'set', field).errorAtKey('is a header that cors sets', 'remove it here, or remove cors')
  const actingMethods = cors.methods.filter((method) => method !== 'GET' && method !== 'HEAD')
  if (!cors.credentials || actingMethods.length === 0 || trustedOrigins === 'any') return
  for (const origin of cors.origins.filter((each) => !trustedOrigins.includes(each)))
    at('cors').warning(
      `lets pages of ${origin} send ${actingMethods.join(', ')}, but such requests of a signed-in person are refused`,
      'name the origin in trusted_origins, or set methods: [GET, HEAD]',
    )
}

function cache({ cache }: UpstreamConfig, at: At): void {
  if (cache === 'upstream')
    at('cache').warning(
      'is upstream: when the application marks a personal page as cacheable, a shared cache can give it to another person',
      'use private: browsers cache what the application allows, and shared caches cache nothing',
    )
}

function accessTokens({ accessTokens, rules, forwardAuth }: UpstreamConfig, at: At): void {
  if (accessTokens === undefined || forwardAuth || !areValid(at('access_tokens'), at('rules'))) return
  if (rules.every((rule) => rule.accessTokens === undefined))
    at('access_tokens').warning(
      'has no effect: no rule accepts access tokens',
      'write access_tokens: true in the rules of the API',
    )
}

function serviceAccounts({ serviceAccounts, rules }: UpstreamConfig, at: At): void {
  const accountsAt = at('service_accounts')
  if (serviceAccounts === undefined || !areValid(accountsAt, at('rules'))) return
  if (rules.every((rule) => rule.serviceAccounts === undefined))
    accountsAt.warning(
      'has no effect: no rule accepts service accounts',
      'write service_accounts: true, or a list of accounts, in a rule',
    )
  // An error would keep the removal of the last account from taking effect.
  if (serviceAccounts.accounts.length === 0)
    accountsAt.below('file').warning('has no account', 'make a line with: gatehouse service-account NAME')
}

function clientCertificates({ upstreams, listen, clientCertHeader }: GatewayConfig, at: At): void {
  const [headerAt, authoritiesAt] = [at('client_cert_header'), at('listen', 'tls', 'client_ca_file')]
  if (!areValid(headerAt, authoritiesAt, at('upstreams'), at('listen'))) return
  const isRead = clientCertHeader || listen.tls?.clientCaFile !== undefined
  const accepting = upstreams.flatMap((upstream) =>
    upstream.rules.flatMap((rule, index) =>
      rule.clientCertificates === true
        ? [{ upstream, rule, place: at('upstreams', upstream.name, 'rules', index, 'client_certificates') }]
        : [],
    ),
  )
  for (const { upstream, rule, place } of accepting) {
    if (upstream.forwardAuth && !upstream.clientCertHeader)
      place.error(
        'needs client certificates, and the proxy that asks may pass on a Client-Cert that its client wrote',
        `let the proxy set Client-Cert in each check request (docs/apis.md), and write upstreams.${upstream.name}.client_cert_header: true`,
      )
    else if (!upstream.forwardAuth && !isRead)
      place.error(
        'needs client certificates, which the gateway does not read',
        'set listen.tls.client_ca_file, or client_cert_header behind a proxy that verifies them',
      )
    if (rule.require.length === 0)
      place.warning(
        'has no requirement: each certificate of the authority has access',
        'name the certificates, such as require: [{ claim: certificate.dns, any_of: [billing.internal] }]',
      )
  }
  const unused = 'has no effect: no rule has client_certificates'
  if (accepting.every(({ upstream }) => upstream.forwardAuth))
    for (const setting of [headerAt, authoritiesAt]) if (isRead && setting.isSet) setting.warning(unused)
  for (const { name, rules, clientCertHeader: isSaid } of upstreams)
    if (isSaid && rules.every((rule) => rule.clientCertificates !== true))
      at('upstreams', name, 'client_cert_header').warning(unused)
}

function keys({ keys, rules, needsDeviceBinding, externalUrl }: UpstreamConfig, at: At): void {
  const keysAt = at('keys')
  if (keys === undefined || !areValid(keysAt, at('rules'))) return
  if (externalUrl.protocol === 'http:' && !isLoopback(externalUrl.hostname))
    keysAt.errorAtKey(
      'needs an https external_url: everybody on the network could read the keys',
      'serve the gateway with https, as the session cookie needs it too',
    )
  const accepting = rules.filter((rule) => rule.keys === true)
  if (accepting.length === 0)
    keysAt.warning('has no effect: no rule accepts keys', 'write keys: true in the rules for programs')
  else if (accepting.every((rule) => rule.needsDeviceBinding ?? needsDeviceBinding))
    keysAt.warning(
      'has no effect: device_binding is required, and a key is bound to no device',
      'write device_binding: when_supported in the rules with keys',
    )
}

function testedAccounts({ serviceAccounts, tests }: UpstreamConfig, at: At): void {
  if (serviceAccounts === undefined || !areValid(at('service_accounts'), at('tests'))) return
  const known = new Set(serviceAccounts.accounts.map((account) => account.name))
  for (const [index, { serviceAccount }] of tests.entries()) {
    const accountAt = at('tests', index, 'service_account')
    if (serviceAccount !== undefined && !known.has(serviceAccount) && accountAt.isSet)
      accountAt.warning(
        `is not in the file of service_accounts: without its line, ${serviceAccount} gets 401 and not the tested outcome`,
      )
  }
}
