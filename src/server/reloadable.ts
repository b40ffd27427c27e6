import { isDeepStrictEqual } from 'node:util'
import type { GatewayConfig } from '../config/model/gateway.ts'
import type { StoreConfig } from '../config/model/session.ts'

/** A setting that takes effect at the next start only. */
interface StartSetting {
  /** Its place in the YAML file. */
  readonly setting: string
  readonly of: (config: GatewayConfig) => unknown
}

/** The store authenticates its next connections with new credentials by itself. */
function withoutCredentials(store: StoreConfig): object {
  return { ...store, username: '', password: '', sentinelUsername: '', sentinelPassword: '' }
}

const startSettings: readonly StartSetting[] = [
  { setting: 'listen', of: ({ listen }) => listen },
  { setting: 'admin', of: ({ admin }) => admin },
  { setting: 'ext_authz', of: ({ extAuthz }) => extAuthz },
  { setting: 'workers', of: ({ workers }) => workers },
  { setting: 'session.store', of: ({ session }) => withoutCredentials(session.store) },
  { setting: 'log', of: ({ log }) => log },
  { setting: 'tracing', of: ({ tracing }) => tracing },
  { setting: 'limits.header_size', of: ({ limits }) => limits.headerSizeBytes },
  { setting: 'limits.header_count', of: ({ limits }) => limits.headerCount },
  { setting: 'limits.headers_timeout', of: ({ limits }) => limits.headersTimeoutMs },
  { setting: 'limits.connections', of: ({ limits }) => limits.connections },
  { setting: 'limits.per_client.connections', of: ({ limits }) => limits.perClient.connections },
]

/** Settings, such as `session.store`, that need a restart with all settings below them. */
export const settingsThatNeedRestart: readonly string[] = startSettings.map(({ setting }) => setting)

/** What a reload to `next` can use, and the settings that differ but need a new start. */
export function reloadable(
  running: GatewayConfig,
  next: GatewayConfig,
): { readonly config: GatewayConfig; readonly needRestart: readonly string[] } {
  const needRestart = startSettings
    .filter(({ of }) => !isDeepStrictEqual(of(running), of(next)))
    .map(({ setting }) => setting)
  const { listen, admin, extAuthz, workers, log, tracing } = running
  const { headerSizeBytes, headerCount, headersTimeoutMs, connections, perClient } = running.limits
  // A generated key stays in use. Otherwise the sessions that are sealed with it would be lost.
  const { keys } = running.session.isKeyGenerated && next.session.isKeyGenerated ? running.session : next.session
  const store = needRestart.includes('session.store') ? running.session.store : next.session.store
  const session = { ...next.session, keys, store }
  const limits = {
    ...next.limits,
    headerSizeBytes,
    headerCount,
    headersTimeoutMs,
    connections,
    perClient: { ...next.limits.perClient, connections: perClient.connections },
  }
  return { config: { ...next, listen, admin, extAuthz, workers, log, tracing, session, limits }, needRestart }
}
