import { isDeepStrictEqual } from 'node:util'
import type { GatewayConfig } from '../config/model.ts'

/** A part of the configuration that the process is built on: it takes effect at the next start. */
interface Foundation {
  /** Where it stands in the file. */
  readonly setting: string
  readonly of: (config: GatewayConfig) => unknown
}

const foundations: readonly Foundation[] = [
  { setting: 'listen', of: ({ listen }) => listen },
  { setting: 'admin', of: ({ admin }) => admin },
  { setting: 'workers', of: ({ workers }) => workers },
  { setting: 'session.store', of: ({ session }) => session.store },
  { setting: 'log', of: ({ log }) => log },
  { setting: 'tracing', of: ({ tracing }) => tracing },
  { setting: 'limits.header_size', of: ({ limits }) => limits.headerSizeBytes },
  { setting: 'limits.header_count', of: ({ limits }) => limits.headerCount },
  { setting: 'limits.headers_timeout', of: ({ limits }) => limits.headersTimeoutMs },
  { setting: 'limits.connections', of: ({ limits }) => limits.connections },
  { setting: 'limits.per_client.connections', of: ({ limits }) => limits.perClient.connections },
]

/** As they are written, `session.store`; all that is below them too. */
export const settingsThatNeedRestart: readonly string[] = foundations.map(({ setting }) => setting)

/**
 * What of `next` a gateway that runs by `running` can take, and the settings that have to wait for
 * a start.
 */
export function reloadable(
  running: GatewayConfig,
  next: GatewayConfig,
): { readonly config: GatewayConfig; readonly needRestart: readonly string[] } {
  const needRestart = foundations
    .filter(({ of }) => !isDeepStrictEqual(of(running), of(next)))
    .map(({ setting }) => setting)
  const { listen, admin, workers, log, tracing } = running
  const { headerSizeBytes, headerCount, headersTimeoutMs, connections, perClient } = running.limits
  // What was sealed with a key that is in no file would be lost with it.
  const { keys } = running.session.isKeyGenerated && next.session.isKeyGenerated ? running.session : next.session
  const session = { ...next.session, keys, store: running.session.store }
  const limits = {
    ...{ ...next.limits, headerSizeBytes, headerCount, headersTimeoutMs, connections },
    perClient: { ...next.limits.perClient, connections: perClient.connections },
  }
  return { config: { ...next, listen, admin, workers, log, tracing, session, limits }, needRestart }
}
