import type { Setting } from '../document/report.ts'
import type {
  EjectConfig,
  HealthCheckConfig,
  ResolveConfig,
  TargetConfig,
  UpstreamTlsConfig,
} from '../model/upstream.ts'
import type { TargetSettings, UpstreamSettings, UpstreamTargetsResolveSettings } from '../settings.ts'
import { isList, readEach, standInUrl } from './build-context.ts'

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
  if (targets === undefined) return listed({ ...standIn, ...url })
  if (isList(targets)) return listed(...readEach(targets, at.below('targets'), readTarget))
  const resolve = targets.resolve && readResolve(targets.resolve)
  return { targets: [resolve === undefined ? standIn : namedTarget(resolve)], resolve }
}

function readResolve(settings: UpstreamTargetsResolveSettings): ResolveConfig | undefined {
  const { a, srv, scheme, port = scheme === 'https' ? 443 : 80, everyMs, servers = [] } = settings
  const name = srv ?? a
  return name === undefined
    ? undefined
    : { kind: srv === undefined ? 'a' : 'srv', name, scheme, port, everyMs, servers }
}

/** Represents the targets of a name: its host has the name. */
function namedTarget({ kind, name, scheme, port }: ResolveConfig): TargetConfig {
  const host = kind === 'a' ? name : name.replace(/^(?:_[^.]+\.)+/, '')
  return { ...alone, url: new URL(`${scheme}://${host}:${port}`), socketPath: undefined }
}

/** The health check of each target; `undefined` when there is none. */
export function readHealthCheck(settings: UpstreamSettings['healthCheck']): HealthCheckConfig | undefined {
  if (settings?.path === undefined) return undefined
  return { ...settings, path: settings.path }
}

/** Whether an upstream has no application. Each rule then has to have `respond`. */
export function respondsOnly({ url, targets, forwardAuth, rules }: UpstreamSettings): boolean {
  return (
    url === undefined &&
    targets === undefined &&
    forwardAuth !== true &&
    rules.some((rule) => rule.respond !== undefined)
  )
}

function readTarget({ url, weight, backup }: TargetSettings): TargetConfig {
  return { ...standIn, weight, backup, ...url }
}

const alone = { weight: 1, backup: false } as const
const standIn: TargetConfig = { ...alone, url: standInUrl, socketPath: undefined }

const noApplication: TargetConfig = { ...alone, url: new URL('http://no-application.invalid'), socketPath: undefined }

/**
 * Represents the application whose requests another proxy carries. It is the same for all of these
 * upstreams, so each one is treated as if it led to the same application.
 */
const otherProxy: TargetConfig = { ...alone, url: new URL('http://forward-auth.invalid'), socketPath: undefined }

type TlsSettings = Pick<UpstreamSettings, 'ca' | 'serverName' | 'clientCertificate' | 'pinnedKeys'>

export function readUpstreamTls({
  ca,
  serverName,
  clientCertificate,
  pinnedKeys = [],
}: TlsSettings): UpstreamTlsConfig {
  return { ca, serverName, clientCertificate, pinnedKeys: pinnedKeys.map((pin) => pin.replace('sha256/', '')) }
}

/** When a target is ejected; `undefined`: never. */
export function readEject(settings: UpstreamSettings['eject']): EjectConfig | undefined {
  return settings === false ? undefined : settings
}
