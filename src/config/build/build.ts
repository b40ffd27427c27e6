import { availableParallelism } from 'node:os'
import { type ClaimPath, parseClaimPath } from '../../core/claims.ts'
import { parsePathPattern } from '../../core/path-pattern.ts'
import { parseAddress, parseHost, parseSubnet } from '../addresses.ts'
import { below, type Report } from '../document/report.ts'
import type {
  Address,
  AdminConfig,
  AdminPageConfig,
  ClientLimitsConfig,
  GatewayConfig,
  LimitsConfig,
  ListenConfig,
} from '../model.ts'
import { parseRate } from '../quantities.ts'
import type { AdminPageSettings, GatewaySettings } from '../settings.ts'
import { type Building, present, readDuration, readOrigin, readSize, standInUrl } from './building.ts'
import { checkTls } from './certificates.ts'
import { type ShortNames, withLongName } from './claim-names.ts'
import { buildPages } from './pages.ts'
import { buildProvider, userinfoClaims } from './provider.ts'
import { readSecret } from './secrets.ts'
import { buildSession } from './session.ts'
import { buildTracing } from './tracing.ts'
import { buildUpstream } from './upstream.ts'

/**
 * Builds a configuration from the settings. When it reports errors, the result contains stand-ins
 * and must not be used.
 */
export function buildConfig(file: string, written: GatewaySettings, building: Building): GatewayConfig {
  const { report } = building
  const externalUrl = readOrigin(written.external_url, '/external_url', standInUrl, report)
  const provider = buildProvider(written.provider, '/provider', building)
  const session = buildSession(written.session, '/session', { ...building, secure: externalUrl.protocol === 'https:' })
  const inherited = { ...building, externalUrl, claims: provider.claims }
  const upstreams = Object.entries(written.upstreams ?? {}).map(([name, upstream]) =>
    buildUpstream(name, upstream, below('/upstreams', name), inherited),
  )
  return {
    version: 1,
    file,
    listen: buildListen(written.listen, report),
    admin: buildAdmin(written.admin, inherited),
    externalUrl,
    reservedPrefix: readReservedPrefix(written.reserved_prefix, report),
    trustedProxies: present(written.trusted_proxies).flatMap(([index, text]) =>
      report.parse(below('/trusted_proxies', index), [], () => [parseSubnet(text)]),
    ),
    workers:
      session.store.kind === 'memory' ? 1 : written.workers === 'auto' ? availableParallelism() : written.workers,
    provider: { ...provider, userinfoClaims: userinfoClaims(upstreams, provider) },
    session,
    upstreams,
    pages: buildPages(written.pages, '/pages', report),
    limits: buildLimits(written.limits, report),
    shutdown: {
      drainTimeoutMs: readDuration(written.shutdown.drain_timeout, '/shutdown/drain_timeout', '0s', '1h', report),
    },
    log: written.log,
    tracing: buildTracing(written.tracing, '/tracing', building),
  }
}

function buildListen(written: GatewaySettings['listen'], report: Report): ListenConfig {
  const fallback: Address = { host: '0.0.0.0', port: 0 }
  if (typeof written !== 'object')
    return { ...report.parse('/listen', fallback, () => parseAddress(written, '0.0.0.0')), tls: undefined }
  return {
    ...report.parse('/listen/address', fallback, () => parseAddress(written.address, '0.0.0.0')),
    tls: checkTls(written.tls, '/listen/tls', report),
  }
}

type AdminBuilding = Building & { readonly claims: ShortNames }

function buildAdmin(written: GatewaySettings['admin'], building: AdminBuilding): AdminConfig | undefined {
  if (written?.listen === undefined) return undefined
  const { listen, page } = written
  const address = building.report.parse('/admin/listen', undefined, () => parseAddress(listen, '127.0.0.1'))
  const builtPage = page && buildAdminPage(page, '/admin/page', building)
  return address && { ...address, page: builtPage }
}

function buildAdminPage(
  { token, hosts, show_claim }: AdminPageSettings,
  at: string,
  { env, report, claims }: AdminBuilding,
): AdminPageConfig {
  return {
    token: token && readSecret(token, below(at, 'token'), env, report),
    hosts: present(hosts).flatMap(([index, host]) =>
      report.parse(below(below(at, 'hosts'), index), [], () => [parseOneHost(host)]),
    ),
    showClaim:
      show_claim === undefined
        ? undefined
        : report.parse(below(at, 'show_claim'), undefined, () => withLongName(parseOneClaim(show_claim), claims)),
  }
}

function parseOneClaim(text: string): ClaimPath {
  if (/\{[^}]*\}/.test(text)) throw new SyntaxError('takes one claim, not a template')
  return parseClaimPath(text)
}

function parseOneHost(text: string): string {
  if (text.includes('*')) throw new SyntaxError('must be one whole host name; "*" is not supported')
  return parseHost(text)
}

function readReservedPrefix(text: string, report: Report): string {
  return report.parse('/reserved_prefix', '/.gatehouse/', () => parsePathPattern(text).text)
}

function buildLimits(written: GatewaySettings['limits'], report: Report): LimitsConfig {
  return {
    headerSizeBytes: readSize(written.header_size, '/limits/header_size', '4kb', '1mb', report),
    headerCount: written.header_count,
    headersTimeoutMs: readDuration(written.headers_timeout, '/limits/headers_timeout', '1s', '10m', report),
    bodyIdleTimeoutMs: readDuration(written.body_idle_timeout, '/limits/body_idle_timeout', '1s', '1h', report),
    bodyRateBytesPerSecond: readSize(written.body_rate, '/limits/body_rate', '0b', '1mb', report),
    connections: written.connections,
    perClient: buildClientLimits(written.per_client, report),
  }
}

function buildClientLimits(written: GatewaySettings['limits']['per_client'], report: Report): ClientLimitsConfig {
  const rate = (setting: 'sign_ins' | 'callbacks' | 'refused_logout_tokens') =>
    report.parse(`/limits/per_client/${setting}`, parseRate('1/s'), () => parseRate(written[setting]))
  return {
    connections: written.connections,
    signIns: rate('sign_ins'),
    callbacks: rate('callbacks'),
    callbacksAtOnce: written.callbacks_at_once,
    refusedLogoutTokens: rate('refused_logout_tokens'),
  }
}
