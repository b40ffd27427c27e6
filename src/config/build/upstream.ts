import { ipAddress } from '../../core/addresses.ts'
import type { CertificateClaims } from '../../core/claims.ts'
import { type NamePattern, parseNamePattern, parsePathPattern, type PathPattern } from '../../core/patterns.ts'
import { parseHost, parseOrigin, parseUpstreamOrigin, parseUpstreamPath } from '../addresses.ts'
import { didYouMean } from '../document/did-you-mean.ts'
import type { Setting } from '../document/report.ts'
import type { ProviderConfig } from '../model/provider.ts'
import type { CorsConfig, EmbeddedTest, LogoutCall, LogoutLink, UpstreamConfig } from '../model/upstream.ts'
import type {
  List,
  LogoutCallSettings,
  LogoutLinkSettings,
  TestCertificateSettings,
  TestSettings,
  UpstreamSettings,
} from '../settings.ts'
import { parseEach, readEach, readOrigins, valuesOf } from './build-context.ts'
import { readAccessTokens, readServiceAccounts } from './callers.ts'
import { withLongNames } from './claim-names.ts'
import { type HeaderContext, readAuthorizeWith, readHeaders, readSignedIdentity } from './headers.ts'
import { hintForFolder, hintForPath } from './path-hints.ts'
import { readResponseHeaders } from './response-headers.ts'
import { type BindingContext, readMethods, readRule, reportUselessBinding } from './rules.ts'
import { readEject, readHealthCheck, readTargets, readUpstreamTls, respondsOnly } from './targets.ts'

/** What an upstream needs from the rest of the file. */
export interface UpstreamContext extends HeaderContext, BindingContext {
  readonly providers: readonly Pick<ProviderConfig, 'name' | 'client_id'>[]
  /** See `SessionConfig.embeddedIn`. */
  readonly embeddedIn: readonly string[]
}

export function buildUpstream(
  name: string,
  settings: UpstreamSettings,
  at: Setting,
  context: UpstreamContext,
): UpstreamConfig {
  const { claims, embeddedIn } = context
  const { preset: _, requestHeaders, deviceBinding = context.deviceBinding, ...rest } = settings
  const { caFile: _ca, serverName: _name, clientCertificate: _certificate, pinnedKeys: _keys, ...others } = rest
  const own: Setting['below'] = (...names) => at.below(...names)
  const externalUrl = own('external_url').parse(settings.externalUrl, parseUpstreamOrigin) ?? context.externalUrl
  const path = own('path').parse(settings.path, parseUpstreamPath, hintForFolder(settings.path)) ?? '/'
  const headers = readHeaders(settings.headers, own('headers'), context)
  const trustedOrigins =
    settings.trustedOrigins === 'any' ? 'any' : readOrigins(settings.trustedOrigins, own('trusted_origins'))
  const providers = readProviders(settings.providers, own('providers'), context)
  reportUselessBinding(settings, at, context)
  const serviceAccounts = readServiceAccounts(settings.serviceAccounts, own('service_accounts'), {
    claims,
    externalUrl,
  })
  const takesTokens = settings.accessTokens !== undefined || own('access_tokens').isReported
  return {
    ...others,
    ...{ name, externalUrl, path, headers, trustedOrigins, providers, serviceAccounts },
    place: at.place,
    hosts: readHosts(settings, externalUrl, own('hosts')),
    ...readApplication(settings, at),
    needsDeviceBinding: deviceBinding === 'required',
    removedFields: valuesOf(requestHeaders.remove),
    responseHeaders: readResponseHeaders(settings.responseHeaders, own('response_headers'), {
      externalUrl,
      embeddedIn,
    }),
    authorizeWith: readAuthorizeWith(settings.authorizeWith, own('authorize_with'), context),
    signedIdentity: readSignedIdentity(settings.signedIdentity, own('signed_identity'), name, context),
    rules: readEach(settings.rules, own('rules'), (rule, ruleAt) =>
      readRule(rule, ruleAt, headers, { ...context, takesTokens, serviceAccounts }),
    ),
    tokenExchange: settings.tokenExchange && {
      ...settings.tokenExchange,
      scopes: valuesOf(settings.tokenExchange.scopes ?? []),
    },
    accessTokens: readAccessTokens(
      settings.accessTokens,
      own('access_tokens'),
      context.providers.filter((provider) => providers.includes(provider.name)),
    ),
    cors: readCors(settings.cors, trustedOrigins, own('cors')),
    sessionCookies: readSessionCookies(settings.sessionCookies),
    logout: readLogout(settings.logout, own('logout'), { externalUrl, path }),
    upgrade: valuesOf(settings.upgrade).map((protocol) => protocol.toLowerCase()),
    tests: readEach(settings.tests, own('tests'), (test, testAt) => readTest(test, testAt, claims)),
  }
}

type Application =
  'url' | 'targets' | 'resolve' | 'eject' | 'healthCheck' | 'forwardAuth' | 'respondsOnly' | 'alsoKnownAs' | 'tls'

/** Where the application is, and how connections to it are made. */
function readApplication(settings: UpstreamSettings, at: Setting): Pick<UpstreamConfig, Application> {
  const own: Setting['below'] = (...names) => at.below(...names)
  const { targets, resolve } = readTargets(settings, at)
  const otherOrigins = parseEach(
    settings.alsoKnownAs,
    own('also_known_as'),
    (origin) => parseOrigin(origin, 'http://intranet.corp:8080').origin,
  )
  return {
    ...{ url: targets[0].url, targets, resolve },
    eject: readEject(settings.eject),
    healthCheck: readHealthCheck(settings.healthCheck),
    forwardAuth: settings.forwardAuth === true,
    respondsOnly: respondsOnly(settings),
    alsoKnownAs: [...otherOrigins, ...targets.slice(1).map(({ url }) => url.origin)],
    tls: readUpstreamTls(settings, own),
  }
}

function readSessionCookies(cookies: UpstreamSettings['sessionCookies']): readonly NamePattern[] {
  if (cookies === undefined) return []
  const names = Array.isArray(cookies) ? valuesOf(cookies as List<string>) : ['*']
  return names.map(parseNamePattern)
}

function readLogout(
  settings: UpstreamSettings['logout'],
  at: Setting,
  { externalUrl, path }: Pick<UpstreamConfig, 'externalUrl' | 'path'>,
): UpstreamConfig['logout'] {
  const paths = readEach(settings.paths, at.below('paths'), (link, linkAt) => readLogoutLink(link, linkAt, externalUrl))
  return {
    paths,
    passFirst: settings.passFirst,
    cookies: valuesOf(settings.cookies).map((cookie) => ({
      names: parseNamePattern(cookie),
      paths: cookiePaths(path, paths),
      domains: cookieDomains(externalUrl.hostname.replace(/^\*\./, '')),
    })),
    call: readLogoutCall(settings.call, at.below('call')),
  }
}

function readLogoutLink(link: LogoutLinkSettings, at: Setting, externalUrl: URL): LogoutLink | undefined {
  const { path: text = '', query = {}, methods } = link
  const hint = hintForLogoutLink(text, externalUrl) ?? hintForPath(text)
  const path = at.below('path').parse(link.path, parsePathPattern, hint)
  return path && { path, query: Object.entries(query), methods: readMethods(methods) }
}

function readLogoutCall(call: LogoutCallSettings | undefined, at: Setting): LogoutCall | undefined {
  const { get, post, timeoutMs = 0 } = call ?? {}
  const read = (target: string): LogoutCall => {
    const [, path = '', query = ''] = /^([^?]*)(.*)$/s.exec(target) ?? []
    if (parsePathPattern(path).text.includes('*')) throw new SyntaxError('must not contain "*": it is one address')
    if (/[^\x21-\x7e]|#/.test(query)) throw new SyntaxError('must have a percent-encoded query, without "#"')
    return { method: get === undefined ? 'POST' : 'GET', target, timeoutMs }
  }
  const target = get ?? post
  const hint = /^\w[^:]*$/.test(target ?? '') ? `did you mean "/${target}"?` : undefined
  return at.below(get === undefined ? 'post' : 'get').parse(target, read, hint)
}

function hintForLogoutLink(text: string, externalUrl: URL): string | undefined {
  const url = URL.parse(text)
  if (url?.host === externalUrl.host)
    return hintForLogoutLink(url.pathname + url.search, externalUrl) ?? `write ${url.pathname}`
  if (url !== null && /^https?:$/.test(url.protocol))
    return 'write the logout link of the application, such as /logout; the gateway itself signs people out at the provider'
  const [, path, query = ''] = /^(\/[^?#]*)\?([^#]+)$/.exec(text) ?? []
  if (path === undefined) return undefined
  const parameters = [...new URLSearchParams(query)].map(([name, value]) => `${name}: ${value}`)
  return `did you mean { path: ${path}, query: { ${parameters.join(', ')} } }?`
}

/**
 * The paths, besides `/`, for which an application may set cookies: its own path, the folders of
 * its logout links, and the folders above. Each path is listed with and without the last slash,
 * because these are two cookies for a browser (RFC 6265 §5.3).
 */
function cookiePaths(upstreamPath: string, links: readonly LogoutLink[]): readonly string[] {
  const folders = [upstreamPath.split('/').slice(1, -1), ...links.map(({ path }) => folderOf(path))]
  const paths = folders.flatMap((names) => names.map((_, last) => `/${names.slice(0, last + 1).join('/')}`))
  return [...new Set(paths)].flatMap((path) => [path, `${path}/`])
}

/** A response expires a cookie for each of these, so the number is bounded. */
const maxCookieDomains = 4

/**
 * The domains that a host may set cookies for: itself and those above it, down to two labels.
 * Browsers ignore the field for a public suffix such as `co.uk` (RFC 6265 §5.3 step 5). An IP
 * address or a host with one label has none.
 */
function cookieDomains(hostname: string): readonly string[] {
  if (ipAddress(hostname.replace(/^\[(.*)\]$/, '$1')) !== undefined) return []
  const labels = hostname.split('.')
  const domains = labels.slice(0, -1).map((_, first) => labels.slice(first).join('.'))
  return domains.slice(-maxCookieDomains)
}

/** The names of the folders above the paths that a pattern matches, up to its first "*". */
function folderOf({ segments, below: isOpen }: PathPattern): readonly string[] {
  const folders = isOpen ? segments : segments.slice(0, -1)
  const star = folders.indexOf('*')
  return star < 0 ? folders : folders.slice(0, star)
}

function readHosts(settings: UpstreamSettings, externalUrl: URL, at: Setting): readonly string[] {
  if (settings.hosts !== undefined) return parseEach(settings.hosts, at, parseHost)
  return settings.externalUrl === undefined ? [] : [externalUrl.hostname]
}

function readProviders(
  names: UpstreamSettings['providers'],
  at: Setting,
  { providers }: UpstreamContext,
): readonly string[] {
  const known = providers.map(({ name }) => name)
  if (names === undefined) return known
  if (!at.report.at('/providers').isSet) {
    at.errorAtKey('needs providers at the top level, and provider is one only')
    return valuesOf(names)
  }
  return readEach(names, at, (name, nameAt) => {
    const meant = didYouMean(name, known)
    const hint = meant === undefined ? `the providers are ${known.join(', ')}` : `did you mean "${meant}"?`
    if (!known.includes(name)) nameAt.error('is not the name of a provider', hint)
    return name
  })
}

function readCors(
  cors: UpstreamSettings['cors'],
  trustedOrigins: UpstreamConfig['trustedOrigins'],
  at: Setting,
): CorsConfig | undefined {
  if (cors === undefined) return undefined
  const trusted = trustedOrigins === 'any' ? [] : trustedOrigins
  return {
    ...cors,
    origins: cors.origins === undefined ? trusted : readOrigins(cors.origins, at.below('origins')),
    methods: valuesOf(cors.methods),
    headers: valuesOf(cors.headers),
    expose: valuesOf(cors.expose),
  }
}

const testMethods = ['get', 'post', 'put', 'patch', 'delete', 'head', 'options'] as const

function readTest(
  settings: TestSettings,
  at: Setting,
  claims: Readonly<Record<string, string>>,
): EmbeddedTest | undefined {
  const method = testMethods.find((name) => settings[name] !== undefined)
  if (method === undefined || settings.expect === undefined) return undefined
  if (Object.keys(settings.headers).length > 0 && settings.expect !== 'pass')
    at.below('headers').error(`cannot be tested with expect: ${settings.expect}, because the upstream gets no request`)
  return {
    place: at.place,
    setting: at.path,
    as: settings.as && withLongNames(settings.as, claims),
    bearer: settings.bearer,
    serviceAccount: settings.serviceAccount,
    clientCertificate: settings.clientCertificate && readCertificate(settings.clientCertificate),
    method: method.toUpperCase(),
    path: settings[method] ?? '/',
    host: at.below('host').parse(settings.host, parseHost),
    from: at.below('from').parse(settings.from, parseClientAddress),
    at: at.below('at').parse(settings.at, parseTime),
    expect: settings.expect,
    headers: settings.headers,
  }
}

function readCertificate(settings: TestCertificateSettings): CertificateClaims {
  const { issuer = '', serial = '', sha256 = '' } = settings
  const [cn, o, ou] = [valuesOf(settings.cn), valuesOf(settings.o), valuesOf(settings.ou)]
  const [dns, uri, email, ip] = [settings.dns, settings.uri, settings.email, settings.ip]
  const parts = Object.entries({ O: o, OU: ou, CN: cn })
  const made = parts.flatMap(([type, names]) => names.map((name) => `${type}=${name}`)).join(', ')
  const alternatives = { dns: valuesOf(dns), uri: valuesOf(uri), email: valuesOf(email), ip: valuesOf(ip) }
  return { subject: settings.subject ?? made, cn, o, ou, issuer, ...alternatives, serial, sha256 }
}

function parseClientAddress(text: string): string {
  const address = ipAddress(text)
  if (address === undefined) throw new SyntaxError('must be an IP address such as 10.1.2.3')
  return address
}

function parseTime(text: string): number {
  const time = Date.parse(text)
  if (Number.isNaN(time)) throw new SyntaxError('must be a time such as 2026-01-05T09:30:00Z')
  return time
}
