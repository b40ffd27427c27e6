import { ipAddress } from '../../core/addresses.ts'
import { type NamePattern, parseNamePattern } from '../../core/name-pattern.ts'
import { parsePathPattern, type PathPattern } from '../../core/path-pattern.ts'
import { parseHost, parseHttpUrl, parseOrigin, parseUpstreamOrigin } from '../addresses.ts'
import { didYouMean } from '../document/did-you-mean.ts'
import { below, type Report } from '../document/report.ts'
import type {
  CorsConfig,
  EmbeddedTest,
  LogoutCall,
  LogoutLink,
  ProviderConfig,
  TokenExchangeConfig,
  UpstreamConfig,
} from '../model.ts'
import type { List, LogoutCallSettings, LogoutLinkSettings, TestSettings, UpstreamSettings } from '../settings.ts'
import { readAccessTokens } from './access-tokens.ts'
import { present, readDuration, standInUrl } from './build-context.ts'
import { readAuthorities } from './certificates.ts'
import { withLongNames } from './claim-names.ts'
import { type HeaderContext, readHeaders } from './headers.ts'
import { hintForFolder, hintForPath } from './path-hints.ts'
import { type BindingContext, readMethods, readRule, reportUselessBinding } from './rules.ts'
import { readServiceAccounts } from './service-accounts.ts'
import { readSignedIdentity } from './signed-identity.ts'

/** What an upstream needs from the rest of the file. */
export interface UpstreamContext extends HeaderContext, BindingContext {
  readonly providers: readonly Pick<ProviderConfig, 'name' | 'client_id'>[]
}

export function buildUpstream(
  name: string,
  settings: UpstreamSettings,
  at: string,
  context: UpstreamContext,
): UpstreamConfig {
  const { report, claims } = context
  const own = (setting: string) => below(at, setting)
  const externalUrl = readUpstreamOrigin(settings.external_url, own('external_url'), context)
  const duration = (
    setting: 'connect_timeout' | 'response_timeout' | 'idle_timeout' | 'keep_alive',
    from: string,
    to: string,
  ) => readDuration(settings[setting], own(setting), from, to, report)
  const path = report.parse(own('path'), '/', () => parseUpstreamPath(settings.path), hintForFolder(settings.path))
  const headers = readHeaders(settings.headers, own('headers'), context)
  const logoutLinks = present(settings.logout.paths).flatMap(([index, link]) =>
    readLogoutLink(link, below(below(own('logout'), 'paths'), index), report),
  )
  const trustedOrigins = readTrustedOrigins(settings.trusted_origins, own('trusted_origins'), report)
  const providers = readProviders(settings.providers, own('providers'), context)
  reportUselessBinding(settings, at, context)
  const serviceAccounts = readServiceAccounts(settings.service_accounts, own('service_accounts'), {
    ...{ report, claims, externalUrl },
  })
  return {
    name,
    place: report.keyPlace(at),
    hosts: readHosts(settings, externalUrl, own('hosts'), report),
    providers,
    path,
    url: settings.forward_auth === true ? otherProxyUrl : readUrl(settings.url, own('url'), report),
    forwardAuth: settings.forward_auth === true,
    needsDeviceBinding: (settings.device_binding ?? context.deviceBinding) === 'required',
    stripPath: settings.strip_path,
    alsoKnownAs: present(settings.also_known_as).flatMap(([index, origin]) =>
      report.parse(below(own('also_known_as'), index), [], () => [
        parseOrigin(origin, 'http://intranet.corp:8080').origin,
      ]),
    ),
    setCookie: {
      domain: settings.set_cookie.domain,
      path: settings.set_cookie.path,
      secure: settings.set_cookie.secure,
      sameSite: settings.set_cookie.same_site,
    },
    responseHeaders: {
      set: settings.response_headers.set,
      remove: present(settings.response_headers.remove).map(([, field]) => field),
    },
    rewriteContent: settings.rewrite_content,
    sessionNotice: settings.session_notice,
    externalUrl,
    hostHeader: settings.host_header,
    originHeader: settings.origin_header,
    headers,
    signedIdentity: readSignedIdentity(settings.signed_identity, own('signed_identity'), name, context),
    rules: present(settings.rules).flatMap(([index, rule]) =>
      readRule(rule, below(own('rules'), index), headers, {
        ...context,
        takesTokens: settings.access_tokens !== undefined,
        serviceAccounts,
      }),
    ),
    serviceAccounts,
    tokenExchange: readTokenExchange(settings.token_exchange),
    accessTokens: readAccessTokens(settings.access_tokens, own('access_tokens'), {
      report,
      providers: context.providers.filter((provider) => providers.includes(provider.name)),
    }),
    trustedOrigins,
    cors: readCors(settings.cors, trustedOrigins, own('cors'), report),
    cache: settings.cache,
    sessionCookies: readSessionCookies(settings.session_cookies),
    logout: {
      paths: logoutLinks,
      passFirst: settings.logout.pass_first,
      cookies: present(settings.logout.cookies).map(([, cookie]) => ({
        names: parseNamePattern(cookie),
        paths: cookiePaths(path, logoutLinks),
        domains: cookieDomains(externalUrl.hostname.replace(/^\*\./, '')),
      })),
      call: readLogoutCall(settings.logout.call, below(own('logout'), 'call'), report),
    },
    upgrade: present(settings.upgrade).map(([, protocol]) => protocol.toLowerCase()),
    connectTimeoutMs: duration('connect_timeout', '10ms', '5m'),
    responseTimeoutMs: duration('response_timeout', '10ms', '1d'),
    idleTimeoutMs: duration('idle_timeout', '0s', '1d'),
    keepAliveMs: duration('keep_alive', '0s', '1h'),
    maxConnections: settings.max_connections,
    maxStreams: settings.max_streams,
    maxStreamsPerClient: settings.max_streams_per_client,
    ca: readAuthorities(settings.ca_file, own('ca_file'), report),
    tests: present(settings.tests).flatMap(([index, test]) =>
      readTest(test, below(own('tests'), index), claims, report),
    ),
  }
}

/**
 * Stands for the URL of an application whose requests another proxy carries. It is the same for all
 * of these upstreams, so each one is treated as if it led to the same application.
 */
const otherProxyUrl = new URL('http://forward-auth.invalid')

function readTokenExchange(settings: UpstreamSettings['token_exchange']): TokenExchangeConfig | undefined {
  if (settings === undefined) return undefined
  const { audience, resource, requested_token_type: requestedTokenType } = settings
  return { audience, resource, scopes: present(settings.scopes ?? []).map(([, scope]) => scope), requestedTokenType }
}

function readSessionCookies(cookies: UpstreamSettings['session_cookies']): readonly NamePattern[] {
  if (cookies === undefined) return []
  const names = Array.isArray(cookies) ? present(cookies as List<string>).map(([, name]) => name) : ['*']
  return names.map(parseNamePattern)
}

function readLogoutLink(link: string | LogoutLinkSettings, at: string, report: Report): LogoutLink[] {
  const isShort = typeof link === 'string'
  const { path, query = {}, methods }: LogoutLinkSettings = isShort ? { path: link } : link
  if (path === undefined) return []
  return report.parse(
    isShort ? at : below(at, 'path'),
    [],
    () => [{ path: parsePathPattern(path), query: Object.entries(query), methods: readMethods(methods) }],
    hintForLogoutLink(path) ?? hintForPath(path),
  )
}

function readLogoutCall(
  call: string | LogoutCallSettings | undefined,
  at: string,
  report: Report,
): LogoutCall | undefined {
  if (call === undefined) return undefined
  const isShort = typeof call === 'string'
  const { get, post, timeout = '5s' }: Partial<LogoutCallSettings> = isShort ? { post: call } : call
  const target = get ?? post
  if (target === undefined) return undefined
  const timeoutMs = readDuration(timeout, below(at, 'timeout'), '100ms', '30s', report)
  const read = (): LogoutCall => {
    const [, path = '', query = ''] = /^([^?]*)(.*)$/s.exec(target) ?? []
    if (parsePathPattern(path).text.includes('*')) throw new SyntaxError('must not contain "*": it is one address')
    if (/[^\x21-\x7e]|#/.test(query)) throw new SyntaxError('must have a percent-encoded query, without "#"')
    return { method: get === undefined ? 'POST' : 'GET', target, timeoutMs }
  }
  const hint = /^\w[^:]*$/.test(target) ? `did you mean "/${target}"?` : undefined
  return report.parse(isShort ? at : below(at, get === undefined ? 'post' : 'get'), undefined, read, hint)
}

function hintForLogoutLink(text: string): string | undefined {
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

/**
 * The names of the folders above the paths that a pattern matches, up to its first "*".
 */
function folderOf({ segments, below: isOpen }: PathPattern): readonly string[] {
  const folders = isOpen ? segments : segments.slice(0, -1)
  const star = folders.indexOf('*')
  return star < 0 ? folders : folders.slice(0, star)
}

function readUpstreamOrigin(text: string | undefined, at: string, { externalUrl, report }: UpstreamContext): URL {
  return text === undefined ? externalUrl : report.parse(at, externalUrl, () => parseUpstreamOrigin(text))
}

function readHosts(settings: UpstreamSettings, externalUrl: URL, at: string, report: Report): readonly string[] {
  if (settings.hosts !== undefined)
    return present(settings.hosts).flatMap(([index, host]) =>
      report.parse(below(at, index), [], () => [parseHost(host)]),
    )
  return settings.external_url === undefined ? [] : [externalUrl.hostname]
}

function readProviders(
  names: UpstreamSettings['providers'],
  at: string,
  { providers, report }: UpstreamContext,
): readonly string[] {
  const known = providers.map(({ name }) => name)
  if (names === undefined) return known
  if (!report.isSet('/providers')) report.errorAtKey(at, 'needs providers at the top level, and provider is one only')
  for (const [index, name] of present(names))
    if (report.isSet('/providers') && !known.includes(name)) {
      const meant = didYouMean(name, known)
      const hint = meant === undefined ? `the providers are ${known.join(', ')}` : `did you mean "${meant}"?`
      report.error(below(at, index), 'is not the name of a provider', hint)
    }
  return present(names).map(([, name]) => name)
}

function readTrustedOrigins(
  origins: UpstreamSettings['trusted_origins'],
  at: string,
  report: Report,
): UpstreamConfig['trustedOrigins'] {
  return origins === 'any' ? 'any' : readOrigins(origins, at, report)
}

function readCors(
  cors: UpstreamSettings['cors'],
  trustedOrigins: UpstreamConfig['trustedOrigins'],
  at: string,
  report: Report,
): CorsConfig | undefined {
  if (cors === undefined) return undefined
  const texts = (list: List<string>) => present(list).map(([, text]) => text)
  const trusted = trustedOrigins === 'any' ? [] : trustedOrigins
  return {
    origins: cors.origins === undefined ? trusted : readOrigins(cors.origins, below(at, 'origins'), report),
    methods: texts(cors.methods),
    headers: texts(cors.headers),
    expose: texts(cors.expose),
    credentials: cors.credentials,
    maxAgeMs: readDuration(cors.max_age, below(at, 'max_age'), '0s', '1d', report),
  }
}

function readOrigins(origins: List<string>, at: string, report: Report): readonly string[] {
  return present(origins).flatMap(([index, origin]) =>
    report.parse(below(at, index), [], () => [parseOrigin(origin, 'https://portal.example.com').origin]),
  )
}

function parseUpstreamPath(text: string): string {
  if (parsePathPattern(text).text.includes('*'))
    throw new SyntaxError('must not contain "*": the upstream serves everything below its path')
  return text.endsWith('/') ? text : `${text}/`
}

function readUrl(text: string | undefined, at: string, report: Report): URL {
  if (text === undefined) return standInUrl
  return report.parse(at, standInUrl, () => {
    const url = parseHttpUrl(text, 'http://127.0.0.1:3000')
    // Checks the path as it is written, because the URL parser removes dot segments.
    parseUpstreamPath(/^[^:]+:\/\/[^/]*(\/.*)?$/.exec(text)?.[1] ?? '/')
    return url
  })
}

const testMethods = ['get', 'post', 'put', 'patch', 'delete', 'head', 'options'] as const

function readTest(
  settings: TestSettings,
  at: string,
  claims: Readonly<Record<string, string>>,
  report: Report,
): EmbeddedTest[] {
  const { from, host, at: time } = settings
  const method = testMethods.find((name) => settings[name] !== undefined)
  if (method === undefined || settings.expect === undefined) return []
  if (Object.keys(settings.headers).length > 0 && settings.expect !== 'pass')
    report.error(
      below(at, 'headers'),
      `cannot be tested with expect: ${settings.expect}, because the upstream gets no request`,
    )
  if (settings.bearer && settings.as === undefined)
    report.error(below(at, 'bearer'), 'needs as beside it: the claims of the access token')
  if (settings.service_account !== undefined && (settings.as !== undefined || settings.bearer))
    report.error(
      below(at, 'service_account'),
      'must not have as or bearer beside it: the claims are those of service_accounts',
    )
  return [
    {
      place: report.keyPlace(at),
      setting: report.pathText(at),
      as: settings.as && withLongNames(settings.as, claims),
      bearer: settings.bearer,
      serviceAccount: settings.service_account,
      method: method.toUpperCase(),
      path: settings[method] ?? '/',
      host: host === undefined ? undefined : report.parse(below(at, 'host'), undefined, () => parseHost(host)),
      from: from && report.parse(below(at, 'from'), undefined, () => parseClientAddress(from)),
      at: time === undefined ? undefined : report.parse(below(at, 'at'), undefined, () => parseTime(time)),
      expect: settings.expect,
      headers: settings.headers,
    },
  ]
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
