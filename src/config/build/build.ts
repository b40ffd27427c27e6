import { availableParallelism } from 'node:os'
import { type ClaimPath, parseClaimPath } from '../../core/claims.ts'
import { parsePathPattern } from '../../core/patterns.ts'
import { mapInSteps, type Steps } from '../../core/steps.ts'
import { parseAddress, parseHttpUrl } from '../addresses.ts'
import type { Setting } from '../document/report.ts'
import { workersWithin } from '../memory.ts'
import type { AdminConfig, AdminPageConfig, GatewayConfig, ListenConfig, TracingConfig } from '../model/gateway.ts'
import type { ProviderConfig } from '../model/provider.ts'
import { isShared } from '../model/session.ts'
import type { AdminPageSettings, GatewaySettings, ListenSettings, TracingSettings } from '../settings.ts'
import { standInUrl } from './build-context.ts'
import { checkTls } from './certificates.ts'
import { type ShortNames, withLongName } from './claim-names.ts'
import { buildEgressProxy } from './egress-proxy.ts'
import { buildPages } from './pages.ts'
import { buildProviders, userinfoClaims } from './provider.ts'
import { buildSession } from './session.ts'
import { buildUpstream } from './upstream.ts'

/**
 * Builds a configuration from the settings. When it reports errors, the result contains stand-ins
 * and must not be used.
 */
export function* buildConfig(file: string, settings: GatewaySettings, at: Setting): Steps<GatewayConfig> {
  const { externalUrl = standInUrl } = settings
  const reservedPrefix =
    at.below('reserved_prefix').parse(settings.reservedPrefix, (text) => parsePathPattern(text).text) ?? '/.gatehouse/'
  const egressProxy = buildEgressProxy(settings.egressProxy, at.below('egress_proxy'))
  const session = buildSession(settings.session, at.below('session'), externalUrl.protocol === 'https:')
  const providers = buildProviders(settings, at, {
    egressProxy,
    reservedPrefix,
    cookieName: session.cookie.name,
  })
  const deviceBinding = settings.session.deviceBinding.mode
  const { embeddedIn } = session
  const inherited = { deviceBinding, embeddedIn, externalUrl, claims: providers[0].claims, providers }
  const upstreams = yield* mapInSteps(Object.entries(settings.upstreams ?? {}), ([name, upstream]) =>
    buildUpstream(name, upstream, at.below('upstreams', name), inherited),
  )
  const withUserinfoClaims = (provider: ProviderConfig): ProviderConfig => ({
    ...provider,
    userinfoClaims: userinfoClaims(upstreams, provider),
  })
  const { version: _version, provider: _provider, egressProxy: _proxy, include: _include, ...others } = settings
  return {
    ...others,
    file,
    listen: buildListen(settings.listen, at.below('listen'), hostOfBrowsers(settings, externalUrl, at)),
    admin: buildAdmin(settings.admin, at.below('admin'), providers[0].claims),
    extAuthz: settings.extAuthz?.listen && { ...settings.extAuthz, ...settings.extAuthz.listen },
    externalUrl,
    reservedPrefix,
    workers: isShared(session.store) ? buildWorkers(settings.workers, at.below('workers')) : 1,
    providers: [withUserinfoClaims(providers[0]), ...providers.slice(1).map(withUserinfoClaims)],
    session,
    upstreams,
    pages: buildPages(settings.pages, at.below('pages')),
    limits: { ...settings.limits, areConnectionsSet: at.below('limits', 'connections').isSet },
    tracing: buildTracing(settings.tracing, at.below('tracing')),
  }
}

function buildWorkers(wanted: GatewaySettings['workers'], at: Setting): number {
  if (wanted === 'auto') return workersWithin(availableParallelism())
  const workers = workersWithin(wanted)
  if (workers < wanted)
    at.warning(`there is memory for ${workers} only`, 'Give the container more memory, or set workers: 1.')
  return workers
}

/** The host that browsers request here. `undefined` if a proxy in front of the gateway has TLS. */
function hostOfBrowsers({ trustedProxies }: GatewaySettings, externalUrl: URL, at: Setting): string | undefined {
  const isBehindProxy = trustedProxies.length > 0 || externalUrl.protocol !== 'https:'
  return isBehindProxy || !at.below('external_url').isValid ? undefined : externalUrl.hostname
}

function buildListen(
  { address: written, tls, ...others }: ListenSettings,
  at: Setting,
  host: string | undefined,
): ListenConfig {
  const isPortOfTls = tls === undefined && /^[^\d]*:8?443$/.test(String(written))
  const hint = isPortOfTls ? 'set tls too: browsers send TLS to this port' : undefined
  const address = at.below('address').parse(written, (text) => parseAddress(text, '0.0.0.0'), hint)
  return {
    ...others,
    ...(address ?? { host: '0.0.0.0', port: 0 }),
    tls: checkTls(tls, at.below('tls'), host),
  }
}

function buildAdmin(settings: GatewaySettings['admin'], at: Setting, claims: ShortNames): AdminConfig | undefined {
  const page = settings?.page && buildAdminPage(settings.page, at.below('page'), claims)
  return settings?.listen && { ...settings.listen, page }
}

/** Of the secret of the administration page. Longer credentials are not read. */
const longestPasswordBytes = 512

function buildAdminPage(
  { token, hosts, showClaim }: AdminPageSettings,
  at: Setting,
  claims: ShortNames,
): AdminPageConfig {
  return {
    token: checkPassword(token, at.below('token')),
    hosts,
    showClaim: at.below('show_claim').parse(showClaim, (text) => withLongName(parseOneClaim(text), claims)),
  }
}

/** A secret that browsers send as a password (RFC 7617 §2). */
function checkPassword(text: string | undefined, at: Setting): string | undefined {
  if (text !== undefined && (Buffer.byteLength(text) > longestPasswordBytes || /\p{Cc}/u.test(text)))
    at.error(
      `must have at most ${longestPasswordBytes} bytes and no control characters: browsers send it as a password`,
      'create one: openssl rand -base64 24',
    )
  return text
}

function parseOneClaim(text: string): ClaimPath {
  if (/\{[^}]*\}/.test(text)) throw new SyntaxError('takes one claim, not a template')
  return parseClaimPath(text)
}

/** Headers that the exporter sets itself. */
const ours = /^(?:content-.*|transfer-encoding|connection|host|user-agent|expect|te|upgrade|keep-alive)$/i

function buildTracing(settings: TracingSettings | undefined, at: Setting): TracingConfig | undefined {
  if (settings?.otlp === undefined) return undefined
  if ('service.name' in settings.resource)
    at.below('resource', 'service.name').errorAtKey('is set by service_name', 'write it there')
  for (const [name, value] of Object.entries(settings.headers)) {
    const headerAt = at.below('headers', name)
    if (ours.test(name)) headerAt.errorAtKey('is a header that the gateway sets itself')
    if (/[^\x20-\x7e]/.test(value)) headerAt.error('must consist of printable ASCII characters')
  }
  return { ...settings, otlp: at.below('otlp').parse(settings.otlp, collectorUrl) ?? standInUrl }
}

/** Like OTEL_EXPORTER_OTLP_ENDPOINT: the address of the collector, or the full URL for traces. */
function collectorUrl(text: string): URL {
  const url = parseHttpUrl(text, 'http://127.0.0.1:4318')
  if (url.pathname === '/') url.pathname = '/v1/traces'
  return url
}
