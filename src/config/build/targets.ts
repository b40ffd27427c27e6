import { ipAddress } from '../../core/addresses.ts'
import { parseHost, parseHttpUrl, parseUpstreamPath } from '../addresses.ts'
import type { Setting } from '../document/report.ts'
import type {
  EjectConfig,
  HealthCheckConfig,
  ResolveConfig,
  TargetConfig,
  UpstreamTlsConfig,
} from '../model/upstream.ts'
import type {
  TargetSettings,
  UpstreamSettings,
  UpstreamTargetsResolveSettings,
  UpstreamTargetsSettings,
} from '../settings.ts'
import { parseEach, readEach, standInUrl, valuesOf } from './build-context.ts'
import { readAuthorities, readKeyPair } from './certificates.ts'

interface Targets {
  readonly targets: readonly [TargetConfig, ...TargetConfig[]]
  readonly resolve: ResolveConfig | undefined
}

/** Where the application of an upstream listens: at `url`, or at `targets`. */
export function readTargets(settings: UpstreamSettings, at: Setting): Targets {
  const { forwardAuth, url, targets } = settings
  const listed = (first = standIn, ...others: TargetConfig[]): Targets => ({
    targets: [first, ...others],
    resolve: undefined,
  })
  if (forwardAuth === true) return listed(otherProxy)
  if (respondsOnly(settings)) return listed(noApplication)
  const urlAt = at.below('url')
  if (targets === undefined && url === undefined && !urlAt.isReported && !at.below('targets').isReported)
    urlAt.missing('is missing', 'for example url: http://127.0.0.1:3000')
  if (targets === undefined) return listed({ ...alone, ...(urlAt.parse(url, parseTarget) ?? standIn) })
  if (!isResolved(targets)) return listed(...readEach(targets, at.below('targets'), readTarget))
  const resolve = targets.resolve && readResolve(targets.resolve, at.below('targets', 'resolve'))
  return { targets: [resolve === undefined ? standIn : namedTarget(resolve)], resolve }
}

function isResolved(targets: NonNullable<UpstreamSettings['targets']>): targets is UpstreamTargetsSettings {
  return !Array.isArray(targets)
}

function readResolve(settings: UpstreamTargetsResolveSettings, at: Setting): ResolveConfig | undefined {
  const { a, srv, scheme, port = scheme === 'https' ? 443 : 80, everyMs } = settings
  const servers = parseEach(settings.servers ?? [], at.below('servers'), parseServer)
  const kind = srv === undefined ? 'a' : 'srv'
  const name = at.below(kind).parse(srv ?? a, kind === 'a' ? parseHostName : parseService)
  return name === undefined ? undefined : { kind, name, scheme, port, everyMs, servers }
}

/** Represents the targets of a name: its host has the name. */
function namedTarget({ kind, name, scheme, port }: ResolveConfig): TargetConfig {
  const host = kind === 'a' ? name : name.replace(/^(?:_[^.]+\.)+/, '')
  return { ...alone, url: new URL(`${scheme}://${host}:${port}`), socketPath: undefined }
}

/** A host name whose first labels are those of a service (RFC 2782). */
function parseService(text: string): string {
  if (!/^_[\w-]+\._(?:tcp|udp)\.[\w.-]+$/i.test(text))
    throw new SyntaxError('must be the name of a service, as in _http._tcp.orders.internal')
  return text
}

function parseServer(text: string): string {
  const [, host = '', port] = /^(\[.*\]|[^:]*|[^\]]*:[^\]]*:[^\]]*?)(?::(\d{1,5}))?$/.exec(text) ?? []
  if (ipAddress(host.replace(/^\[(.*)\]$/, '$1')) === undefined || Number(port ?? 53) > 65535)
    throw new SyntaxError('must be an IP address such as 10.0.0.53, or 10.0.0.53:5353')
  return text
}

/** The health check of each target; `undefined` when there is none. */
export function readHealthCheck(settings: UpstreamSettings['healthCheck']): HealthCheckConfig | undefined {
  if (settings?.path === undefined) return undefined
  return { ...settings, path: settings.path, expect: valuesOf(settings.expect) }
}

/** Whether an upstream has no application. Each rule then has to have `respond`. */
export function respondsOnly({ url, targets, forwardAuth, rules }: UpstreamSettings): boolean {
  return (
    url === undefined &&
    targets === undefined &&
    forwardAuth !== true &&
    rules.some((rule) => rule?.respond !== undefined)
  )
}

function readTarget({ url, weight, backup }: TargetSettings, at: Setting): TargetConfig {
  return { weight, backup, ...(at.below('url').parse(url, parseTarget) ?? standIn) }
}

const alone = { weight: 1, backup: false } as const
const standIn: TargetConfig = { ...alone, url: standInUrl, socketPath: undefined }

const noApplication: TargetConfig = { ...alone, url: new URL('http://no-application.invalid'), socketPath: undefined }

/**
 * Represents the application whose requests another proxy carries. It is the same for all of these
 * upstreams, so each one is treated as if it led to the same application.
 */
const otherProxy: TargetConfig = { ...alone, url: new URL('http://forward-auth.invalid'), socketPath: undefined }

/**
 * An http or https URL, or `unix:` and the path of a socket.
 * @throws {SyntaxError} names what is wrong
 */
function parseTarget(text: string): Pick<TargetConfig, 'url' | 'socketPath'> {
  const socketPath = /^unix:(.*)$/s.exec(text)?.[1]
  if (socketPath === undefined) return { url: parseUrl(text), socketPath }
  if (!/^\/(?!\/)/.test(socketPath))
    throw new SyntaxError('must have an absolute path after "unix:", as in unix:/run/app.sock')
  // sun_path of unix(7), with the byte that ends it.
  if (Buffer.byteLength(socketPath) > 107) throw new SyntaxError('has a path that is longer than 107 bytes')
  return { url: new URL('http://localhost'), socketPath }
}

function parseUrl(text: string): URL {
  const scheme = /^(grpcs?|h2c?|http2|wss?|tcp|fcgi|fastcgi|uwsgi):\/\//i.exec(text)?.[1]?.toLowerCase()
  if (scheme !== undefined) throw new SyntaxError(`must not begin with ${scheme}://; ${hintForScheme(scheme)}`)
  const url = parseHttpUrl(text, 'http://127.0.0.1:3000')
  // Checks the path as it is written, because the URL parser removes dot segments.
  parseUpstreamPath(/^[^:]+:\/\/[^/]*(\/.*)?$/.exec(text)?.[1] ?? '/')
  return url
}

function hintForScheme(scheme: string): string {
  if (/^(?:grpc|h2c)$/.test(scheme)) return 'write http:// here, and protocol: h2c beside it'
  if (/^(?:grpcs|h2|http2)$/.test(scheme)) return 'write https:// here, and protocol: h2 beside it'
  if (/^wss?$/.test(scheme)) return `write ${scheme === 'ws' ? 'http' : 'https'}://: WebSockets need no setting`
  return 'the application has to speak HTTP: write http:// or https://'
}

type TlsSettings = Pick<UpstreamSettings, 'caFile' | 'serverName' | 'clientCertificate' | 'pinnedKeys'>

/** @param own finds the settings of the upstream */
export function readUpstreamTls(
  { caFile, serverName, clientCertificate, pinnedKeys }: TlsSettings,
  own: Setting['below'],
): UpstreamTlsConfig {
  return {
    ca: readAuthorities(caFile, own('ca_file')),
    serverName: own('server_name').parse(serverName, parseHostName),
    clientCertificate: clientCertificate && readKeyPair(clientCertificate, own('client_certificate')),
    pinnedKeys: valuesOf(pinnedKeys ?? []).map((pin) => pin.replace('sha256/', '')),
  }
}

function parseHostName(text: string): string {
  const host = parseHost(text)
  // RFC 6066 §3.
  if (ipAddress(host.replace(/^\[(.*)\]$/, '$1')) !== undefined)
    throw new SyntaxError('must be a host name, not an IP address')
  return host
}

/** When a target is ejected; `undefined`: never. */
export function readEject(settings: UpstreamSettings['eject']): EjectConfig | undefined {
  return settings === false ? undefined : { ...settings, statuses: valuesOf(settings.statuses) }
}
