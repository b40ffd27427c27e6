import { availableParallelism } from 'node:os'
import { type ClaimPath, parseClaimPath } from '../../core/claims.ts'
import { parsePathPattern } from '../../core/path-pattern.ts'
import { mapInSteps, type Steps } from '../../core/steps.ts'
import { parseAddress, parseHost, parseSubnet } from '../addresses.ts'
import { below, type Report } from '../document/report.ts'
import { workersWithin } from '../memory.ts'
import type {
  Address,
  AdminConfig,
  AdminPageConfig,
  ClientLimitsConfig,
  ExtAuthzConfig,
  GatewayConfig,
  LimitsConfig,
  ListenConfig,
  ProviderConfig,
} from '../model.ts'
import { parseRate } from '../quantities.ts'
import type { AdminPageSettings, GatewaySettings } from '../settings.ts'
import { type BuildContext, present, readDuration, readOrigin, readSize, standInUrl } from './build-context.ts'
import { checkTls } from './certificates.ts'
import { type ShortNames, withLongName } from './claim-names.ts'
import { buildEgressProxy } from './egress-proxy.ts'
import { buildPages } from './pages.ts'
import { buildProviders, userinfoClaims } from './provider.ts'
import { readSecret } from './secrets.ts'
import { buildSession, deviceBindingMode } from './session.ts'
import { buildTracing } from './tracing.ts'
import { buildUpstream } from './upstream.ts'

/**
 * Builds a configuration from the settings. When it reports errors, the result contains stand-ins
 * and must not be used.
 */
export function* buildConfig(file: string, settings: GatewaySettings, context: BuildContext): Steps<GatewayConfig> {
  const { report } = context
  const externalUrl = readOrigin(settings.external_url, '/external_url', standInUrl, report)
  const reservedPrefix = readReservedPrefix(settings.reserved_prefix, report)
  const egressProxy = buildEgressProxy(settings.egress_proxy, '/egress_proxy', context)
  const session = buildSession(settings.session, '/session', { ...context, secure: externalUrl.protocol === 'https:' })
  const providers = buildProviders(settings, {
    ...context,
    egressProxy,
    reservedPrefix,
    cookieName: session.cookie.name,
  })
  const binding = { deviceBinding: deviceBindingMode(settings.session), cookieDomain: settings.session.cookie.domain }
  const inherited = { ...context, ...binding, externalUrl, claims: providers[0].claims, providers }
  const upstreams = yield* mapInSteps(Object.entries(settings.upstreams ?? {}), ([name, upstream]) =>
    buildUpstream(name, upstream, below('/upstreams', name), inherited),
  )
  const withUserinfoClaims = (provider: ProviderConfig): ProviderConfig => ({
    ...provider,
    userinfoClaims: userinfoClaims(upstreams, provider),
  })
  return {
    version: 1,
    file,
    listen: buildListen(settings.listen, hostOfBrowsers(settings, externalUrl, report), report),
    admin: buildAdmin(settings.admin, inherited),
    extAuthz: buildExtAuthz(settings.ext_authz, report),
    externalUrl,
    reservedPrefix,
    trustedProxies: present(settings.trusted_proxies).flatMap(([index, text]) =>
      report.parse(below('/trusted_proxies', index), [], () => [parseSubnet(text)]),
    ),
    workers: session.store.kind === 'memory' ? 1 : buildWorkers(settings.workers, report),
    providers: [withUserinfoClaims(providers[0]), ...providers.slice(1).map(withUserinfoClaims)],
    session,
    upstreams,
    signingKeys: {
      rotateEveryMs: readDuration(
        settings.signing_keys.rotate_every,
        '/signing_keys/rotate_every',
        '2h',
        '365d',
        report,
      ),
    },
    pages: buildPages(settings.pages, '/pages', report),
    limits: buildLimits(settings.limits, report),
    keptRequests: {
      maxSizeBytes: readSize(settings.kept_requests.max_size, '/kept_requests/max_size', '0b', '16mb', report),
      keepForMs: readDuration(settings.kept_requests.keep_for, '/kept_requests/keep_for', '1m', '1d', report),
    },
    shutdown: {
      drainTimeoutMs: readDuration(settings.shutdown.drain_timeout, '/shutdown/drain_timeout', '0s', '1h', report),
    },
    log: settings.log,
    tracing: buildTracing(settings.tracing, '/tracing', context),
  }
}

function buildWorkers(wanted: GatewaySettings['workers'], report: Report): number {
  if (wanted === 'auto') return workersWithin(availableParallelism())
  const workers = workersWithin(wanted)
  if (workers < wanted)
    report.warning(
      '/workers',
      `there is memory for ${workers} only`,
      'Give the container more memory, or set workers: 1.',
    )
  return workers
}

/** The host that browsers request here. `undefined` if a proxy in front of the gateway has TLS. */
function hostOfBrowsers({ trusted_proxies }: GatewaySettings, externalUrl: URL, report: Report): string | undefined {
  const isBehindProxy = trusted_proxies.length > 0 || externalUrl.protocol !== 'https:'
  return isBehindProxy || !report.isValid('/external_url') ? undefined : externalUrl.hostname
}

function buildListen(settings: GatewaySettings['listen'], host: string | undefined, report: Report): ListenConfig {
  const fallback: Address = { host: '0.0.0.0', port: 0 }
  if (typeof settings !== 'object')
    return {
      ...report.parse('/listen', fallback, () => parseAddress(settings, '0.0.0.0')),
      tls: undefined,
      plainPath: true,
    }
  return {
    ...report.parse('/listen/address', fallback, () => parseAddress(settings.address, '0.0.0.0')),
    tls: checkTls(settings.tls, '/listen/tls', host, report),
    plainPath: settings.plain_path,
  }
}

function buildExtAuthz(settings: GatewaySettings['ext_authz'], report: Report): ExtAuthzConfig | undefined {
  if (settings?.listen === undefined) return undefined
  const { listen, message_size } = settings
  const address = report.parse('/ext_authz/listen', undefined, () => parseAddress(listen, '127.0.0.1'))
  const messageSizeBytes = readSize(message_size, '/ext_authz/message_size', '4kb', '4mb', report)
  return address && { ...address, messageSizeBytes }
}

type AdminContext = BuildContext & { readonly claims: ShortNames }

function buildAdmin(settings: GatewaySettings['admin'], context: AdminContext): AdminConfig | undefined {
  if (settings?.listen === undefined) return undefined
  const { listen, page } = settings
  const address = context.report.parse('/admin/listen', undefined, () => parseAddress(listen, '127.0.0.1'))
  const builtPage = page && buildAdminPage(page, '/admin/page', context)
  return address && { ...address, page: builtPage }
}

function buildAdminPage(
  { token, hosts, show_claim }: AdminPageSettings,
  at: string,
  { env, report, claims }: AdminContext,
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

function buildLimits(settings: GatewaySettings['limits'], report: Report): LimitsConfig {
  return {
    headerSizeBytes: readSize(settings.header_size, '/limits/header_size', '4kb', '1mb', report),
    headerCount: settings.header_count,
    headersTimeoutMs: readDuration(settings.headers_timeout, '/limits/headers_timeout', '1s', '10m', report),
    bodyIdleTimeoutMs: readDuration(settings.body_idle_timeout, '/limits/body_idle_timeout', '1s', '1h', report),
    bodyRateBytesPerSecond: readSize(settings.body_rate, '/limits/body_rate', '0b', '1mb', report),
    connections: settings.connections,
    areConnectionsSet: report.isSet('/limits/connections'),
    perClient: buildClientLimits(settings.per_client, report),
  }
}

function buildClientLimits(settings: GatewaySettings['limits']['per_client'], report: Report): ClientLimitsConfig {
  const rate = (setting: 'sign_ins' | 'callbacks' | 'refused_logout_tokens') =>
    report.parse(`/limits/per_client/${setting}`, parseRate('1/s'), () => parseRate(settings[setting]))
  return {
    connections: settings.connections,
    signIns: rate('sign_ins'),
    callbacks: rate('callbacks'),
    callbacksAtOnce: settings.callbacks_at_once,
    refusedLogoutTokens: rate('refused_logout_tokens'),
  }
}
