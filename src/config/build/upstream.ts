import { ipAddress } from '../../core/addresses.ts'
import type { CertificateClaims } from '../../core/claims.ts'
import { type NamePattern, parseNamePattern, parsePathPattern, type PathPattern } from '../../core/patterns.ts'
import { didYouMean } from '../document/did-you-mean.ts'
import { hintForPath } from '../document/path-hints.ts'
import type { Setting } from '../document/report.ts'
import type { ProviderConfig } from '../model/provider.ts'
import type { CorsConfig, EmbeddedTest, LogoutCall, LogoutLink, UpstreamConfig } from '../model/upstream.ts'
import type {
  LogoutCallSettings,
  LogoutLinkSettings,
  SessionDeviceBindingSettings,
  TestCertificateSettings,
  TestSettings,
  UpstreamSettings,
} from '../settings.ts'
import { checkedTarget, readApplicationSignIn } from './application-sign-in.ts'
import { isList, readEach } from './build-context.ts'
import { readAccessTokens, readKeys, readServiceAccounts } from './callers.ts'
import { withLongNames } from './claim-names.ts'
import { type HeaderContext, readAuthorizeWith, readHeaders, readSignedIdentity } from './headers.ts'
import { readResponseHeaders } from './response-headers.ts'
import { readRule } from './rules.ts'
import { readEject, readHealthCheck, readTargets, readUpstreamTls, respondsOnly } from './targets.ts'

/** What an upstream needs from the rest of the file. */
export interface UpstreamContext extends HeaderContext {
  readonly externalUrl: URL
  /** `session.device_binding`. */
  readonly deviceBinding: SessionDeviceBindingSettings['mode']
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
  const { ca: _ca, serverName: _name, clientCertificate: _certificate, pinnedKeys: _keys, ...others } = rest
  const own: Setting['below'] = (...names) => at.below(...names)
  const { path, trustedOrigins, externalUrl = context.externalUrl } = settings
  const headers = readHeaders(settings.headers, own('headers'), context)
  const providers = readProviders(settings.providers, own('providers'), context)
  const serviceAccounts = readServiceAccounts(settings.serviceAccounts, own('service_accounts'), {
    claims,
    externalUrl,
  })
  return {
    ...others,
    ...{ name, externalUrl, headers, providers, serviceAccounts },
    place: at.place,
    hosts: settings.hosts ?? (settings.externalUrl === undefined ? [] : [externalUrl.hostname]),
    ...readApplication(settings, at),
    needsDeviceBinding: deviceBinding === 'required',
    keys: readKeys(settings.keys, own('keys'), context),
    removedFields: [...requestHeaders.remove, ...(settings.keys?.header === undefined ? [] : [settings.keys.header])],
    responseHeaders: readResponseHeaders(settings.responseHeaders, embeddedIn),
    authorizeWith: readAuthorizeWith(settings.authorizeWith, own('authorize_with'), context),
    signedIdentity: readSignedIdentity(settings.signedIdentity, name, context),
    rules: readEach(settings.rules, own('rules'), (rule, ruleAt) =>
      readRule(rule, ruleAt, headers, { ...context, serviceAccounts }),
    ),
    tokenExchange: settings.tokenExchange && { ...settings.tokenExchange, scopes: settings.tokenExchange.scopes ?? [] },
    accessTokens: readAccessTokens(
      settings.accessTokens,
      own('access_tokens'),
      context.providers.filter((provider) => providers.includes(provider.name)),
    ),
    cors: readCors(settings.cors, trustedOrigins),
    sessionCookies: readSessionCookies(settings.sessionCookies),
    applicationSignIn: readApplicationSignIn(settings.applicationSignIn, own('application_sign_in'), {
      ...context,
      path,
    }),
    logout: readLogout(settings.logout, own('logout'), { externalUrl, path }),
    upgrade: settings.upgrade.map((protocol) => protocol.toLowerCase()),
    tests: readEach(settings.tests, own('tests'), (test, testAt) => readTest(test, testAt, claims)),
  }
}

type Application =
  'url' | 'targets' | 'resolve' | 'eject' | 'healthCheck' | 'forwardAuth' | 'respondsOnly' | 'alsoKnownAs' | 'tls'

/** Where the application is, and how connections to it are made. */
function readApplication(settings: UpstreamSettings, at: Setting): Pick<UpstreamConfig, Application> {
  const { targets, resolve } = readTargets(settings, at)
  return {
    ...{ url: targets[0].url, targets, resolve },
    eject: readEject(settings.eject),
    healthCheck: readHealthCheck(settings.healthCheck),
    forwardAuth: settings.forwardAuth === true,
    respondsOnly: respondsOnly(settings),
    alsoKnownAs: [...settings.alsoKnownAs, ...targets.slice(1).map(({ url }) => url.origin)],
    tls: readUpstreamTls(settings),
  }
}

function readSessionCookies(cookies: UpstreamSettings['sessionCookies'] = []): readonly NamePattern[] {
  return isList(cookies) ? cookies : [parseNamePattern('*')]
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
    cookies: settings.cookies.map((names) => ({
      names,
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
  return path && { path, query: Object.entries(query), methods }
}

function readLogoutCall(call: LogoutCallSettings | undefined, at: Setting): LogoutCall | undefined {
  const { get, post, timeoutMs = 0 } = call ?? {}
  const read = (written: string): LogoutCall => {
    return { method: get === undefined ? 'POST' : 'GET', target: checkedTarget(written), timeoutMs }
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

function readProviders(
  names: UpstreamSettings['providers'],
  at: Setting,
  { providers }: UpstreamContext,
): readonly string[] {
  const known = providers.map(({ name }) => name)
  if (names === undefined) return known
  if (at.isReported) return names
  readEach(names, at, (name, nameAt) => {
    const meant = didYouMean(name, known)
    const hint = meant === undefined ? `the providers are ${known.join(', ')}` : `did you mean "${meant}"?`
    if (!known.includes(name)) nameAt.error('is not the name of a provider', hint)
  })
  return names
}

function readCors(
  cors: UpstreamSettings['cors'],
  trustedOrigins: UpstreamConfig['trustedOrigins'],
): CorsConfig | undefined {
  const trusted = trustedOrigins === 'any' ? [] : trustedOrigins
  return cors && { ...cors, origins: cors.origins ?? trusted }
}

function readTest(
  settings: TestSettings,
  at: Setting,
  claims: Readonly<Record<string, string>>,
): EmbeddedTest | undefined {
  const { get, post, put, patch, delete: remove, head, options, ...others } = settings
  const paths = Object.entries({ get, post, put, patch, delete: remove, head, options })
  const [method, path] = paths.find(([, path]) => path !== undefined) ?? []
  const { as, clientCertificate, expect, headers } = others
  if (method === undefined || path === undefined || expect === undefined) return undefined
  if (Object.keys(headers).length > 0 && expect !== 'pass')
    at.below('headers').error(`cannot be tested with expect: ${expect}, because the upstream gets no request`)
  return {
    ...others,
    ...{ place: at.place, setting: at.path, path, expect },
    as: as && withLongNames(as, claims),
    clientCertificate: clientCertificate && readCertificate(clientCertificate),
    method: method.toUpperCase(),
  }
}

function readCertificate(settings: TestCertificateSettings): CertificateClaims {
  const { issuer = '', serial = '', sha256 = '', cn, o, ou } = settings
  const parts = Object.entries({ O: o, OU: ou, CN: cn })
  const made = parts.flatMap(([type, names]) => names.map((name) => `${type}=${name}`)).join(', ')
  return { ...settings, subject: settings.subject ?? made, issuer, serial, sha256 }
}
