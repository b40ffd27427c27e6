import { portOf } from '../../core/addresses.ts'
import type { Steps } from '../../core/steps.ts'
import { type Address, isEveryAddress, isLoopback } from '../addresses.ts'
import { contrast } from '../colors.ts'
import { areValid, type Report, type Setting } from '../document/report.ts'
import { isTemplate, templateFault } from '../document/spellings.ts'
import type { GatewayConfig } from '../model/gateway.ts'
import type { ProviderConfig } from '../model/provider.ts'
import { isShared, type RedisStoreConfig } from '../model/session.ts'
import { placeholder } from '../placeholder.ts'
import { durationText } from '../quantities.ts'
import type { GatewaySettings } from '../settings.ts'
import type { At, Check } from './check.ts'
import { claimChecks } from './claims.ts'
import { embedding } from './embedding.ts'
import { oauth2Checks } from './oauth2.ts'
import { providerChecks } from './provider.ts'
import { siteChecks } from './site.ts'
import { upstreamChecks } from './upstreams.ts'

/** Checks that compare several settings, and warnings about valid but risky settings. */
export function* checkConfig(config: GatewayConfig, report: Report, settings: GatewaySettings): Steps<void> {
  const at: At = (...names) => report.at('').below(...names)
  for (const check of checks) {
    check(config, at, settings)
    yield
  }
  for (const setting of report.unfilled) setting.warning(templateFault.message, templateFault.hint)
}

const day = 86_400_000

/**
 * `placeholder`, but not within a longer name, as in exchange-media.example.com. Also
 * `<client-id>`, templates that were not filled in, and quotation marks that YAML does not know.
 */
const isPlaceholder = new RegExp(
  `(?<![\\w-])${placeholder}(?![\\w-])|^<[^<>]+>$|\\$\\{\\w+\\}|\\{\\{|^[\\u2018\\u2019\\u201c-\\u201e]`,
)

const checks: readonly Check[] = [
  placeholders,
  addresses,
  adminPage,
  plainPort,
  externalUrls,
  ...siteChecks,
  embedding,
  trustedProxies,
  workers,
  providers,
  sessionTimes,
  storeOutageGrace,
  sessionKeys,
  redis,
  limits,
  tracing,
  ...upstreamChecks,
  ...claimChecks,
  ...oauth2Checks,
  pageColors,
]

function placeholders({ externalUrl, providers, session: { store } }: GatewayConfig, at: At): void {
  const redisAt = at('session', 'store', 'redis')
  const texts: readonly (readonly [Setting, text: string])[] = [
    [at('external_url'), externalUrl.hostname],
    ...providers.flatMap(({ setting, issuer, client_id }): [Setting, string][] => [
      [at(...setting.split('.'), 'issuer'), issuer],
      [at(...setting.split('.'), 'client_id'), client_id],
    ]),
    [redisAt.below('url'), store.kind === 'redis' ? store.url.hostname : ''],
    [redisAt.below('name'), store.kind === 'redis_sentinel' ? store.name : ''],
  ]
  for (const [setting, text] of texts)
    if (isPlaceholder.test(text) && !isTemplate(text) && setting.isValid)
      setting.warning('is a placeholder', 'replace it with the real value')
  for (const { setting, client_id } of providers)
    if (client_id !== client_id.trim())
      at(...setting.split('.'), 'client_id').warning('begins or ends with a space', 'remove it')
}

function addresses({ listen, admin }: GatewayConfig, at: At): void {
  if (admin === undefined || !at('admin', 'listen').isValid) return
  if (!isLoopback(admin.host) && admin.page === undefined)
    at('admin', 'listen').warning(
      'is reachable from other machines without a sign-in',
      'listen on 127.0.0.1, or allow only your monitoring to connect',
    )
  if (at('listen').isValid && admin.port === listen.port && admin.port !== 0 && overlap(admin, listen))
    at('admin', 'listen').error('is the same address as listen', 'use another port')
}

const portsOfTls: ReadonlySet<number> = new Set([443, 8443])

/** Browsers begin with TLS at the ports of https. */
function plainPort({ listen }: GatewayConfig, at: At): void {
  if (!at('listen').isValid || listen.tls !== undefined || !portsOfTls.has(listen.port)) return
  const place = at('listen', 'address').isSet ? at('listen', 'address') : at('listen')
  place.warning(
    `has port ${listen.port}, but no tls: browsers send TLS there, and the gateway speaks plain HTTP`,
    `write listen: { address: ${listen.host.includes(':') ? `"[${listen.host}]:${listen.port}"` : `${listen.host}:${listen.port}`}, tls: { cert_file: PATH, key_file: PATH } }`,
  )
}

/** Shorter tokens can be guessed. In characters. */
const minTokenLength = 16

function adminPage({ admin }: GatewayConfig, at: At): void {
  if (admin?.page === undefined || !areValid(at('admin', 'listen'), at('admin', 'page', 'token'))) return
  const { token } = admin.page
  if (!isLoopback(admin.host))
    if (token === undefined)
      at('admin', 'page').errorAtKey(
        'lets everybody who reaches admin.listen see who is signed in and end sessions',
        'write token: { file: /run/secrets/admin_token } below it, or listen on 127.0.0.1',
      )
    else
      at('admin', 'listen').warning(
        'is reachable from other machines: health and metrics are open to them, and the token of the page is sent without TLS',
        'listen on 127.0.0.1 and connect with "ssh -L" or "kubectl port-forward", or allow only your monitoring and a proxy with TLS to connect',
      )
  if (token !== undefined && token.length < minTokenLength)
    at('admin', 'page', 'token').error(
      `is shorter than ${minTokenLength} characters, so it can be guessed`,
      'create one with openssl rand -base64 24',
    )
}

function overlap(one: Address, other: Address): boolean {
  return one.host === other.host || isEveryAddress(one.host) || isEveryAddress(other.host)
}

function externalUrls({ externalUrl, upstreams, listen }: GatewayConfig, at: At): void {
  if (!at('external_url').isValid) return
  const isSamePort = at('listen').isValid && portOf(externalUrl) === listen.port
  if (isSamePort && externalUrl.protocol === 'http:' && listen.tls !== undefined)
    at('external_url').warning(
      `is http, but listen has tls at port ${listen.port}, where browsers have to use https`,
      `write ${externalUrl.origin.replace('http:', 'https:')}`,
    )
  else warnOfHttp(externalUrl, at('external_url'))
  // `plainPort` is about the ports of https.
  if (isSamePort && externalUrl.protocol === 'https:' && listen.tls === undefined && !portsOfTls.has(listen.port))
    at('external_url').warning(
      `is https at port ${listen.port}, where the gateway itself listens without TLS`,
      'set listen.tls, or write the port of the proxy that has the certificate: for 443, no port',
    )
  for (const { name, externalUrl: own } of upstreams) {
    const ownAt = at('upstreams', name, 'external_url')
    if (!ownAt.isSet || !ownAt.isValid) continue
    if (own.protocol !== externalUrl.protocol)
      ownAt.error(`must begin with ${externalUrl.protocol}// as the external_url of the gateway does`)
    else warnOfHttp(own, ownAt)
  }
}

function warnOfHttp(url: URL, at: Setting): void {
  if (url.protocol !== 'http:') return
  if (isLoopback(url.hostname))
    at.warning('is http: use it only for tests on this machine; the session cookie has no Secure attribute')
  else
    at.warning(
      'is http: anybody on the network can read the session cookie and act in the name of the person',
      'serve browsers over https, here (listen.tls) or in a proxy in front of the gateway, and write https://',
    )
}

function trustedProxies({ trustedProxies }: GatewayConfig, at: At): void {
  if (!at('trusted_proxies').isValid) return
  for (const [index, { address, prefix }] of trustedProxies.entries())
    if (prefix === 0)
      at('trusted_proxies', index).warning(
        `${address}/0 matches every client: each one can claim any address, host and scheme with X-Forwarded-*`,
        'name only the addresses of your proxies',
      )
}

function workers({ session }: GatewayConfig, at: At, { workers: wanted }: GatewaySettings): void {
  if (!areValid(at('workers'), at('session', 'store'))) return
  if (!isShared(session.store) && wanted !== 'auto' && wanted > 1)
    at('workers').warning(
      session.store.kind === 'memory'
        ? 'does not apply: with the memory store sessions live in one process, so only one runs'
        : 'does not apply: one process at a time can use the file of session.store, so only one runs',
      'use session.store: { redis: … } for several',
    )
}

function providers({ providers, upstreams, externalUrl }: GatewayConfig, at: At): void {
  const placeOf = ({ setting }: ProviderConfig) => at(...setting.split('.'))
  for (const provider of providers) {
    for (const check of providerChecks) check(provider, (...names) => placeOf(provider).below(...names))
    const issuerAt = placeOf(provider).below('issuer')
    // Behind the gateway, a provider has a path of its own.
    const isOwn = provider.issuer.replace(/\/$/, '') === externalUrl.origin && !isPlaceholder.test(provider.issuer)
    if (isOwn && areValid(issuerAt, at('external_url')))
      issuerAt.error('is external_url, the address of the gateway itself', 'write the issuer of the provider')
    if (
      upstreams.length > 0 &&
      areValid(at('upstreams'), at('include')) &&
      upstreams.every((upstream) => !upstream.providers.includes(provider.name))
    )
      placeOf(provider).warning('is used by no upstream', 'name it in the providers of an upstream')
  }
  for (const [index, provider] of providers.entries()) {
    const { issuer, client_id } = provider
    const same = providers.slice(0, index).find((other) => other.issuer === issuer && other.client_id === client_id)
    if (same !== undefined && areValid(placeOf(provider), placeOf(same)))
      placeOf(provider)
        .below('client_id')
        .error(
          `is the same client at the same issuer as ${same.setting}`,
          'one provider is enough: upstreams can share it',
        )
  }
}

function sessionTimes({ session }: GatewayConfig, at: At): void {
  const [idle, absolute] = [at('session', 'idle_timeout'), at('session', 'absolute_timeout')]
  const poll = at('session', 'poll_userinfo')
  const [idleText, absoluteText] = [durationText(session.idleTimeoutMs), durationText(session.absoluteTimeoutMs)]
  if (areValid(idle, absolute) && session.idleTimeoutMs > session.absoluteTimeoutMs)
    if (idle.isSet) idle.error(`must not be longer than session.absolute_timeout, which is ${absoluteText}`)
    else
      absolute.error(
        `must not be shorter than session.idle_timeout, which is ${idleText} by default`,
        `write idle_timeout: ${absoluteText} beside it, or less`,
      )
  if (absolute.isValid && session.absoluteTimeoutMs > 30 * day)
    absolute.warning('is more than 30d: a stolen cookie stays valid that long')
  if (poll.isValid && session.pollUserinfoMs !== undefined && session.pollUserinfoMs < 30_000)
    poll.warning('is less than 30s: the provider gets a request that often for each session in use')
}

function storeOutageGrace({ session }: GatewayConfig, at: At): void {
  const grace = at('session', 'store_outage_grace')
  if (areValid(grace, at('session', 'store')) && session.storeOutageGraceMs > 0 && !isShared(session.store))
    grace.warning(
      session.store.kind === 'memory'
        ? 'does not apply: the memory store is always available'
        : 'does not apply: no other process ends the sessions in the file, so those in memory are always up to date',
    )
}

function sessionKeys({ session }: GatewayConfig, at: At): void {
  if (!at('session', 'keys').isValid) return
  for (const [index, key] of session.keys.entries()) {
    const first = session.keys.findIndex((other) => other.equals(key))
    if (first < index)
      at('session', 'keys', index).warning(`is the same key as session.keys[${first}]`, 'remove one of them')
  }
}

const readablePassword = [
  'is without TLS: anybody on the network can read the password, and then end all sessions',
  'write rediss://, which is Redis with TLS',
] as const
const noPassword = [
  'is without TLS, and Redis has no password: anybody who reaches it can end all sessions, but not read them, because they are encrypted',
  'write rediss:// and a password, or use a network that only the gateway can reach',
] as const

function redis({ session }: GatewayConfig, at: At): void {
  const { store } = session
  const own: At = (...names) => at('session', 'store', 'redis', ...names)
  if (!isShared(store)) return
  const [setting, hosts] = serversOf(store)
  if (store.tls !== undefined || !own(setting).isValid || hosts.every(isLoopback)) return
  const hasPassword =
    store.password !== undefined || (store.kind === 'redis_sentinel' && store.sentinelPassword !== undefined)
  const isWanted = !own('password').isValid || !own('sentinel_password').isValid
  const [what, remedy] = hasPassword || isWanted ? readablePassword : noPassword
  own(setting).warning(what, remedy)
}

function serversOf(store: RedisStoreConfig): [setting: string, hosts: readonly string[]] {
  switch (store.kind) {
    case 'redis':
      return ['url', [store.url.hostname]]
    case 'redis_sentinel':
      return ['sentinels', store.sentinels.map(({ host }) => host)]
    case 'redis_cluster':
      return ['cluster', store.nodes.map(({ host }) => host)]
  }
}

function tracing({ tracing }: GatewayConfig, at: At): void {
  const otlpAt = at('tracing', 'otlp')
  if (tracing === undefined || !otlpAt.isValid) return
  if (tracing.otlp.port === '4317') otlpAt.warning('has port 4317, where collectors take gRPC only', 'write port 4318')
  if (tracing.otlp.protocol !== 'http:') return
  if (Object.keys(tracing.headers).length > 0 && !isLoopback(tracing.otlp.hostname))
    otlpAt.warning(
      'is http: anybody on the network can read the values of headers',
      'write https://, or run a collector on this machine',
    )
}

function limits({ limits }: GatewayConfig, at: At): void {
  const ofClient = at('limits', 'per_client', 'connections')
  if (limits.perClient.connections > limits.connections && ofClient.isSet && ofClient.isValid)
    ofClient.warning(`does not apply: limits.connections is ${limits.connections}`)
}

/** WCAG 2.2 §1.4.3 (AA), for text of ordinary size. */
const minContrast = 4.5

/** The text on a button always has enough contrast, because `textColorOn` chooses its color. */
function pageColors({ pages }: GatewayConfig, at: At): void {
  for (const scheme of ['light', 'dark'] as const) {
    const schemeAt = at('pages', 'colours', scheme)
    const colors = pages.colours[scheme]
    if (!schemeAt.isValid || !schemeAt.isSet) continue
    for (const part of ['text', 'accent'] as const) {
      const found = contrast(colors[part], colors.surface)
      if (found >= minContrast) continue
      const setting = [part, 'surface'].find((name) => schemeAt.below(name).isSet) ?? part
      schemeAt
        .below(setting)
        .warning(
          `${part} (${colors[part]}) on surface (${colors.surface}) has a contrast of ${(Math.floor(found * 100) / 100).toFixed(2)}, which some people cannot read`,
          `WCAG 2.2 AA requires ${minContrast}`,
        )
    }
  }
}
