import { ipAddress } from '../../core/addresses.ts'
import { parseHost, parseHttpUrl, parseUpstreamPath } from '../addresses.ts'
import type { Setting } from '../document/report.ts'
import type { EjectConfig, TargetConfig, UpstreamTlsConfig } from '../model/upstream.ts'
import type { TargetSettings, UpstreamSettings } from '../settings.ts'
import { readEach, standInUrl, valuesOf } from './build-context.ts'
import { readAuthorities, readKeyPair } from './certificates.ts'

type Targets = readonly [TargetConfig, ...TargetConfig[]]

/** Where the application of an upstream listens: at `url`, or at `targets`. */
export function readTargets(settings: UpstreamSettings, at: Setting): Targets {
  if (settings.forwardAuth === true) return [otherProxy]
  if (respondsOnly(settings)) return [noApplication]
  const urlAt = at.below('url')
  if (settings.targets === undefined && settings.url === undefined && !urlAt.isReported)
    urlAt.missing('is missing', 'for example url: http://127.0.0.1:3000')
  if (settings.targets === undefined) return [{ ...alone, ...(urlAt.parse(settings.url, parseTarget) ?? standIn) }]
  const [first, ...others] = readEach(settings.targets, at.below('targets'), readTarget)
  return first === undefined ? [standIn] : [first, ...others]
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
 * Stands for the application whose requests another proxy carries. It is the same for all of these
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
  const url = parseHttpUrl(text, 'http://127.0.0.1:3000')
  // Checks the path as it is written, because the URL parser removes dot segments.
  parseUpstreamPath(/^[^:]+:\/\/[^/]*(\/.*)?$/.exec(text)?.[1] ?? '/')
  return url
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
    throw new SyntaxError('must be a host name: SNI has no IP addresses')
  return host
}

export function readEject(settings: UpstreamSettings['eject']): EjectConfig | undefined {
  return settings === false ? undefined : { ...settings, statuses: valuesOf(settings.statuses) }
}
