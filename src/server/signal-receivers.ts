import type { GatewayConfig } from '../config/model/gateway.ts'
import { securityEventsUri } from '../config/registration.ts'
import type { Clock } from '../core/clock.ts'
import type { Audit } from '../observe/audit.ts'
import type { Log } from '../observe/log.ts'
import type { SessionEndings } from '../session/live/endings.ts'
import type { SessionStore } from '../session/store/store.ts'
import { SignalReceiver } from '../signals/receiver.ts'
import { providerLog } from './provider-log.ts'
import type { Realm, Realms } from './realms.ts'

interface SignalReceiversParts {
  readonly store: SessionStore
  readonly endings: SessionEndings
  readonly clock: Clock
  readonly log: Log
  readonly audit: Audit
}

/** The receivers of the providers whose transmitter gets requests: to poll, or to keep a stream. */
export class SignalReceivers {
  readonly #receivers: ReadonlyMap<string, SignalReceiver>

  constructor(config: GatewayConfig, realms: Realms, parts: SignalReceiversParts) {
    const all = realms.all.flatMap((realm) => {
      const receiver = createReceiver(config, realm, parts)
      return receiver === undefined ? [] : [[realm.config.name, receiver] as const]
    })
    this.#receivers = new Map(all)
  }

  start(): void {
    for (const receiver of this.#receivers.values()) receiver.start()
  }

  /** Sends no further requests. Events that are being carried out are finished. */
  async stop(): Promise<void> {
    await Promise.all([...this.#receivers.values()].map((receiver) => receiver.stop()))
  }

  /** Whether the last request succeeded, for the providers whose requests this process sends. */
  states(): readonly (readonly [labels: readonly string[], value: number])[] {
    return [...this.#receivers].flatMap(([name, { isUp }]) =>
      isUp === undefined ? [] : [[[name], isUp ? 1 : 0] as const],
    )
  }
}

function createReceiver(config: GatewayConfig, realm: Realm, parts: SignalReceiversParts): SignalReceiver | undefined {
  const { provider, sessions, upkeep, streamRecord } = realm
  if (provider.streams === undefined) return undefined
  const { store, endings, clock, audit } = parts
  const log = providerLog(parts.log, realm.config)
  return new SignalReceiver({
    streams: provider.streams,
    signals: { provider, store, sessions, endings, upkeep, streamRecord, clock, log, audit },
    record: streamRecord,
    receiverUrl: securityEventsUri(realm.config, config),
  })
}
