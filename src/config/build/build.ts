import { availableParallelism } from 'node:os'
import { type ClaimPath, parseClaimPath } from '../../core/claims.ts'
import { parsePathPattern } from '../../core/path-pattern.ts'
import { mapInSteps, type Steps } from '../../core/steps.ts'
import { parseAddress, parseHost, parseSubnet } from '../addresses.ts'
import { below, type Report } from '../document/report.ts'
import { workersWithin } from '../memory.ts'
import type { AdminConfig, AdminPageConfig, ExtAuthzConfig, GatewayConfig, ListenConfig } from '../model/gateway.ts'
import type { ProviderConfig } from '../model/provider.ts'
import type { AdminPageSettings, GatewaySettings, ListenSettings } from '../settings.ts'
import { type BuildContext, parseEach, readOrigin, standInUrl } from './build-context.ts'
import { checkTls } from './certificates.ts'
import { type ShortNames, withLongName } from './claim-names.ts'
import { buildEgressProxy } from './egress-proxy.ts'
import { buildPages } from './pages.ts'
import { buildProviders, userinfoClaims } from './provider.ts'
import { readSecret } from './secrets.ts'
import { buildSession } from './session.ts'
import { buildTracing } from './tracing.ts'
import { buildUpstream } from './upstream.ts'

/**
 * Builds a configuration from the settings. When it reports errors, the result contains stand-ins
 * and must not be used.
 */
export function* buildConfig(file: string, settings: GatewaySettings, context: BuildContext): Steps<GatewayConfig> {
  const { report } = context
  const externalUrl = readOrigin(settings.externalUrl, '/external_url', standInUrl, report)
  const reservedPrefix = readReservedPrefix(settings.reservedPrefix, report)
  const egressProxy = buildEgressProxy(settings.egressProxy, '/egress_proxy', context)
  const session = buildSession(settings.session, '/session', { ...context, secure: externalUrl.protocol === 'https:' })
  const providers = buildProviders(settings, {
    ...context,
    egressProxy,
    reservedPrefix,
    cookieName: session.cookie.name,
  })
  const binding = { deviceBinding: settings.session.deviceBinding.mode, cookieDomain: settings.session.cookie.domain }
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
    extAuthz: buildExtAuthz(settings.extAuthz, report),
    externalUrl,
    reservedPrefix,
    trustedProxies: parseEach(settings.trustedProxies, '/trusted_proxies', report, parseSubnet),
    workers: session.store.kind === 'memory' ? 1 : buildWorkers(settings.workers, report),
    providers: [withUserinfoClaims(providers[0]), ...providers.slice(1).map(withUserinfoClaims)],
    session,
    upstreams,
    signingKeys: settings.signingKeys,
    pages: buildPages(settings.pages, '/pages', report),
    limits: { ...settings.limits, areConnectionsSet: report.isSet('/limits/connections') },
    keptRequests: settings.keptRequests,
    shutdown: settings.shutdown,
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
function hostOfBrowsers({ trustedProxies }: GatewaySettings, externalUrl: URL, report: Report): string | undefined {
  const isBehindProxy = trustedProxies.length > 0 || externalUrl.protocol !== 'https:'
  return isBehindProxy || !report.isValid('/external_url') ? undefined : externalUrl.hostname
}

function buildListen(settings: ListenSettings, host: string | undefined, report: Report): ListenConfig {
  const address = report.parse('/listen/address', undefined, () => parseAddress(settings.address, '0.0.0.0'))
  return {
    ...(address ?? { host: '0.0.0.0', port: 0 }),
    tls: checkTls(settings.tls, '/listen/tls', host, report),
    plainPath: settings.plainPath,
  }
}

function buildExtAuthz(settings: GatewaySettings['extAuthz'], report: Report): ExtAuthzConfig | undefined {
  if (settings?.listen === undefined) return undefined
  const { listen, messageSizeBytes } = settings
  const address = report.parse('/ext_authz/listen', undefined, () => parseAddress(listen, '127.0.0.1'))
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

/** Of the secret of the administration page. Longer credentials are not read. */
const longestPasswordBytes = 512

function buildAdminPage(
  { token, hosts, showClaim }: AdminPageSettings,
  at: string,
  { env, report, claims }: AdminContext,
): AdminPageConfig {
  return {
    token: token && readPassword(token, below(at, 'token'), { env, report }),
    hosts: parseEach(hosts, below(at, 'hosts'), report, parseOneHost),
    showClaim:
      showClaim === undefined
        ? undefined
        : report.parse(below(at, 'show_claim'), undefined, () => withLongName(parseOneClaim(showClaim), claims)),
  }
}

/** A secret that browsers send as a password (RFC 7617 §2). */
function readPassword(
  setting: Parameters<typeof readSecret>[0],
  at: string,
  { env, report }: Pick<AdminContext, 'env' | 'report'>,
): string | undefined {
  const text = readSecret(setting, at, env, report)
  if (text !== undefined && (Buffer.byteLength(text) > longestPasswordBytes || /\p{Cc}/u.test(text)))
    report.error(
      at,
      `must have at most ${longestPasswordBytes} bytes and no control characters: browsers send it as a password`,
      'create one: openssl rand -base64 24',
    )
  return text
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
