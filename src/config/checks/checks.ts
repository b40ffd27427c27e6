import type { Steps } from '../../core/steps.ts'
import { isEveryAddress, isLoopback } from '../addresses.ts'
import { below, type Report } from '../document/report.ts'
import type { Address } from '../model/address.ts'
import type { GatewayConfig } from '../model/gateway.ts'
import type { ProviderConfig } from '../model/provider.ts'
import type { RedisStoreConfig } from '../model/session.ts'
import { placeholder } from '../placeholder.ts'
import { durationText } from '../quantities.ts'
import type { GatewaySettings } from '../settings.ts'
import { callerChecks } from './callers.ts'
import { type Check, settingOf } from './check.ts'
import { narrowRules } from './narrow-rules.ts'
import { pageColors } from './pages.ts'
import { checkProvider } from './provider.ts'
import { siteChecks } from './site.ts'
import { upstreamChecks } from './upstreams.ts'

/**
 * Checks that compare several settings, and warnings about valid but risky settings.
 */
export function* checkConfig(config: GatewayConfig, report: Report, settings: GatewaySettings): Steps<void> {
  for (const check of checks) {
    check(config, report, settings)
    yield
  }
}

const day = 86_400_000

/** `placeholder`, but not within a longer name, as in exchange-media.example.com. */
const isPlaceholder = new RegExp(`(?<![\\w-])${placeholder}(?![\\w-])`)

const checks: readonly Check[] = [
  placeholders,
  addresses,
  adminPage,
  externalUrls,
  ...siteChecks,
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
  narrowRules,
  ...callerChecks,
  pageColors,
]

function placeholders({ externalUrl, providers, session: { store } }: GatewayConfig, report: Report): void {
  const ofProviders = providers.flatMap((provider) => [
    [below(pointerOf(provider), 'issuer'), provider.issuer] as const,
    [below(pointerOf(provider), 'client_id'), provider.client_id] as const,
  ])
  const texts = {
    '/external_url': externalUrl.hostname,
    ...Object.fromEntries(ofProviders),
    '/session/store/redis/url': store.kind === 'redis' ? store.url.hostname : '',
    '/session/store/redis/name': store.kind === 'redis_sentinel' ? store.name : '',
  }
  for (const [at, text] of Object.entries(texts))
    if (isPlaceholder.test(text) && report.isValid(at))
      report.warning(at, 'is a placeholder', 'replace it with the real value')
}

function addresses({ listen, admin }: GatewayConfig, report: Report): void {
  if (admin === undefined || !report.isValid('/admin/listen')) return
  if (!isLoopback(admin.host) && admin.page === undefined)
    report.warning(
      '/admin/listen',
      'is reachable from other machines without a sign-in',
      'listen on 127.0.0.1, or allow only your monitoring to connect',
    )
  if (report.isValid('/listen') && admin.port === listen.port && admin.port !== 0 && overlap(admin, listen))
    report.error('/admin/listen', 'is the same address as listen', 'use another port')
}

/** Shorter tokens can be guessed. In characters. */
const minTokenLength = 16

function adminPage({ admin }: GatewayConfig, report: Report): void {
  if (admin?.page === undefined || !report.isValid('/admin/listen', '/admin/page/token')) return
  const { token } = admin.page
  if (!isLoopback(admin.host))
    if (token === undefined)
      report.errorAtKey(
        '/admin/page',
        'lets everybody who reaches admin.listen see who is signed in and end sessions',
        'write token: { file: /run/secrets/admin_token } below it, or listen on 127.0.0.1',
      )
    else
      report.warning(
        '/admin/listen',
        'is reachable from other machines: health and metrics are open to them, and the token of the page is sent without TLS',
        'listen on 127.0.0.1 and connect with "ssh -L" or "kubectl port-forward", or allow only your monitoring and a proxy with TLS to connect',
      )
  if (token !== undefined && token.length < minTokenLength)
    report.error(
      '/admin/page/token',
      `is shorter than ${minTokenLength} characters, so it can be guessed`,
      'create one with openssl rand -base64 24',
    )
}

function overlap(one: Address, other: Address): boolean {
  return one.host === other.host || isEveryAddress(one.host) || isEveryAddress(other.host)
}

function externalUrls({ externalUrl, upstreams }: GatewayConfig, report: Report): void {
  if (!report.isValid('/external_url')) return
  warnOfHttp(externalUrl, '/external_url', report)
  for (const { name, externalUrl: own } of upstreams) {
    const at = settingOf(name, 'external_url')
    if (!report.isSet(at) || !report.isValid(at)) continue
    if (own.protocol !== externalUrl.protocol)
      report.error(at, `must begin with ${externalUrl.protocol}// as the external_url of the gateway does`)
    else warnOfHttp(own, at, report)
  }
}

function warnOfHttp(url: URL, at: string, report: Report): void {
  if (url.protocol !== 'http:') return
  if (isLoopback(url.hostname))
    report.warning(at, 'is http: use it only for tests on this machine; the session cookie has no Secure attribute')
  else
    report.warning(
      at,
      'is http: anybody on the network can read the session cookie and act in the name of the person',
      'serve browsers over https, here (listen.tls) or in a proxy in front of the gateway, and write https://',
    )
}

function trustedProxies({ trustedProxies }: GatewayConfig, report: Report): void {
  if (!report.isValid('/trusted_proxies')) return
  for (const [index, { address, prefix }] of trustedProxies.entries())
    if (prefix === 0)
      report.warning(
        below('/trusted_proxies', index),
        `${address}/0 matches every client: each one can claim any address, host and scheme with X-Forwarded-*`,
        'name only the addresses of your proxies',
      )
}

function workers({ session }: GatewayConfig, report: Report, { workers: wanted }: GatewaySettings): void {
  if (!report.isValid('/workers', '/session/store')) return
  if (session.store.kind === 'memory' && wanted !== 'auto' && wanted > 1)
    report.warning(
      '/workers',
      'does not apply: with the memory store sessions live in one process, so only one runs',
      'use session.store: { redis: … } for several',
    )
}

/** The pointer of a provider. */
function pointerOf({ setting }: ProviderConfig): string {
  return `/${setting.replace('.', '/')}`
}

function providers({ providers, upstreams }: GatewayConfig, report: Report): void {
  for (const provider of providers) {
    checkProvider(provider, pointerOf(provider), report)
    if (report.isValid('/upstreams') && upstreams.every((upstream) => !upstream.providers.includes(provider.name)))
      report.warning(pointerOf(provider), 'is used by no upstream', 'name it in the providers of an upstream')
  }
  for (const [index, provider] of providers.entries()) {
    const { issuer, client_id } = provider
    const same = providers.slice(0, index).find((other) => other.issuer === issuer && other.client_id === client_id)
    if (same !== undefined && report.isValid(pointerOf(provider), pointerOf(same)))
      report.error(
        below(pointerOf(provider), 'client_id'),
        `is the same client at the same issuer as ${same.setting}`,
        'one provider is enough: upstreams can share it',
      )
  }
}

function sessionTimes(config: GatewayConfig, report: Report): void {
  const { session } = config
  const [idle, absolute, poll] = [
    '/session/idle_timeout',
    '/session/absolute_timeout',
    '/session/poll_userinfo',
  ] as const
  if (report.isValid(idle, absolute) && session.idleTimeoutMs > session.absoluteTimeoutMs)
    reportIdleBeyondAbsolute(report, config)
  if (report.isValid(absolute) && session.absoluteTimeoutMs > 30 * day)
    report.warning(absolute, 'is more than 30d: a stolen cookie stays valid that long')
  if (report.isValid(poll) && session.pollUserinfoMs !== undefined && session.pollUserinfoMs < 30_000)
    report.warning(poll, 'is less than 30s: the provider gets a request that often for each session in use')
}

function storeOutageGrace({ session }: GatewayConfig, report: Report): void {
  const at = '/session/store_outage_grace'
  if (report.isValid(at, '/session/store') && session.storeOutageGraceMs > 0 && session.store.kind === 'memory')
    report.warning(at, 'does not apply: the memory store is always available')
}

function reportIdleBeyondAbsolute(report: Report, { session }: GatewayConfig): void {
  const [idle, absolute] = [durationText(session.idleTimeoutMs), durationText(session.absoluteTimeoutMs)]
  if (report.isSet('/session/idle_timeout'))
    report.error('/session/idle_timeout', `must not be longer than session.absolute_timeout, which is ${absolute}`)
  else
    report.error(
      '/session/absolute_timeout',
      `must not be shorter than session.idle_timeout, which is ${idle} by default`,
      `write idle_timeout: ${absolute} beside it, or less`,
    )
}

function sessionKeys({ session }: GatewayConfig, report: Report): void {
  if (!report.isValid('/session/keys')) return
  for (const [index, key] of session.keys.entries()) {
    const first = session.keys.findIndex((other) => other.equals(key))
    if (first < index)
      report.warning(below('/session/keys', index), `is the same key as session.keys[${first}]`, 'remove one of them')
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

function redis({ session }: GatewayConfig, report: Report): void {
  const { store } = session
  const at = '/session/store/redis'
  if (store.kind === 'memory') return
  if (store.username !== undefined && store.password === undefined && report.isValid(below(at, 'password')))
    report.error(below(at, 'username'), 'needs a password beside it', 'for example password: { env: REDIS_PASSWORD }')
  if (store.kind === 'redis_sentinel' && store.sentinelUsername !== undefined && store.sentinelPassword === undefined)
    if (report.isValid(below(at, 'sentinel_password')))
      report.error(
        below(at, 'sentinel_username'),
        'needs a sentinel_password beside it',
        'for example sentinel_password: { env: SENTINEL_PASSWORD }',
      )
  const [setting, hosts] = serversOf(store)
  if (store.tls !== undefined || !report.isValid(below(at, setting)) || hosts.every(isLoopback)) return
  const hasPassword =
    store.password !== undefined || (store.kind === 'redis_sentinel' && store.sentinelPassword !== undefined)
  const isWanted = !report.isValid(below(at, 'password')) || !report.isValid(below(at, 'sentinel_password'))
  const [what, remedy] = hasPassword || isWanted ? readablePassword : noPassword
  report.warning(below(at, setting), what, remedy)
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

function tracing({ tracing }: GatewayConfig, report: Report): void {
  if (tracing === undefined || !report.isValid('/tracing/otlp') || tracing.otlp.protocol !== 'http:') return
  if (tracing.ca !== undefined) report.error('/tracing/ca_file', 'has no effect: the collector’s URL is http')
  if (Object.keys(tracing.headers).length > 0 && !isLoopback(tracing.otlp.hostname))
    report.warning(
      '/tracing/otlp',
      'is http: anybody on the network can read the values of headers',
      'write https://, or run a collector on this machine',
    )
}

function limits({ limits }: GatewayConfig, report: Report): void {
  const at = '/limits/per_client/connections'
  if (limits.perClient.connections > limits.connections && report.isSet(at))
    report.warning(at, `does not apply: limits.connections is ${limits.connections}`)
}
