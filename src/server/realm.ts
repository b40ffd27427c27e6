import type { GatewayConfig } from '../config/model/gateway.ts'
import type { ProviderConfig } from '../config/model/provider.ts'
import { inSettingsOf } from '../config/provider-setting.ts'
import { securityEventsUri } from '../config/registration.ts'
import type { Keyring } from '../core/seal.ts'
import type { Realm as GateRealm } from '../gate/identify.ts'
import { KeptRequests } from '../kept-forms/kept-requests.ts'
import { DecryptionKeys } from '../keys/decryption-keys.ts'
import type { Instruments } from '../observe/instruments.ts'
import type { Log, LogFields } from '../observe/log.ts'
import type { Metrics } from '../observe/metrics.ts'
import { createProvider } from '../provider/create-provider.ts'
import type { Provider } from '../provider/provider.ts'
import { BoundCookie, PersonCookie, RefusedSignIns } from '../session/cookies/gateway-cookies.ts'
import { type ExpiredCookies, SessionCookie } from '../session/cookies/session-cookie.ts'
import { hasEndedBy, type SessionEndings } from '../session/live/endings.ts'
import { type Sessions, SessionsOfAudience } from '../session/live/live-sessions.ts'
import { PersonSessions } from '../session/people/person-sessions.ts'
import { audienceOf } from '../session/record/record.ts'
import type { SessionStore } from '../session/store/store.ts'
import { Returns } from '../sign-in/transaction.ts'
import { StreamRecord } from '../signals/keep-stream.ts'
import { SignalReceiver } from '../signals/receiver.ts'
import { Upkeep } from '../tokens/upkeep.ts'

export interface RealmParts extends Instruments {
  readonly store: SessionStore
  readonly sessions: Sessions
  readonly endings: SessionEndings
  readonly expiredCookies: ExpiredCookies
  readonly keyring: Keyring
  readonly metrics: Metrics
}

/** A provider with what is its own: its sessions, its cookies, its URLs. */
export class Realm implements GateRealm {
  readonly config: ProviderConfig
  readonly prefix: string
  readonly clockToleranceMs: number
  readonly provider: Provider
  readonly decryptionKeys: DecryptionKeys
  readonly cookie: SessionCookie
  readonly boundCookie: BoundCookie
  readonly sessions: SessionsOfAudience
  readonly upkeep: Upkeep
  readonly personCookie: PersonCookie
  readonly kept: KeptRequests
  readonly personSessions: PersonSessions
  readonly refusedSignIns: RefusedSignIns
  readonly returns: Returns
  readonly expiredCookies: ExpiredCookies
  readonly hasEndedElsewhere: GateRealm['hasEndedElsewhere']
  readonly streamRecord: StreamRecord
  /** Polls the transmitter, or keeps its stream. Absent: the transmitter gets no requests. */
  readonly receiver: SignalReceiver | undefined

  constructor(config: ProviderConfig, gateway: GatewayConfig, parts: RealmParts) {
    const { session, keptRequests } = gateway
    const { store, keyring, endings, clock, metrics } = parts
    const log = providerLog(parts.log, config)
    const audience = audienceOf(config)
    this.config = config
    this.prefix = config.prefix
    this.expiredCookies = parts.expiredCookies
    this.clockToleranceMs = config.clockToleranceMs
    const isForFrames = session.embeddedIn.length > 0
    this.cookie = new SessionCookie({ ...session.cookie, name: config.cookieName }, { isForFrames })
    this.boundCookie = new BoundCookie({ config: session.deviceBinding, cookie: this.cookie, keyring, clock })
    this.sessions = new SessionsOfAudience(audience, parts.sessions)
    const address = gateway.externalUrl.origin + config.prefix
    this.decryptionKeys = new DecryptionKeys(config, { store, keyring, audience, address, clock, log })
    this.provider = createProvider(config, { clock, log, metrics, decryptionKeys: this.decryptionKeys })
    this.upkeep = new Upkeep(session, {
      ...parts,
      log,
      sessions: this.sessions,
      provider: countedRefreshes(this.provider, metrics),
    })
    this.personCookie = new PersonCookie({
      ...parts,
      audience,
      cookie: this.cookie,
      absoluteTimeoutMs: session.absoluteTimeoutMs,
    })
    const { provider, sessions, cookie, upkeep } = this
    this.personSessions = new PersonSessions({ store, sessions, endings, max: session.maxPerPerson })
    this.hasEndedElsewhere =
      session.maxPerPerson?.whenExceeded === 'end_oldest' ? (key) => hasEndedBy(key, 'elsewhere', store) : undefined
    this.refusedSignIns = new RefusedSignIns({ keyring, audience, clock, store, cookie })
    this.returns = new Returns({ clock, log })
    const streamRecord = (this.streamRecord = new StreamRecord({ store, keyring, audience }))
    this.receiver =
      provider.streams &&
      new SignalReceiver({
        streams: provider.streams,
        signals: { ...parts, log, provider, sessions, upkeep, streamRecord },
        record: streamRecord,
        receiverUrl: securityEventsUri(config, gateway),
      })
    this.kept = new KeptRequests(keptRequests, { keyring, audience, metrics, store: store.kept, cookie })
  }

  get audience(): string {
    return this.sessions.audience
  }
}

type Refreshing = Pick<Provider, 'refresh' | 'userinfo' | 'apis' | 'config'>

/** The provider, with its refreshes counted. */
function countedRefreshes(provider: Refreshing, metrics: Metrics): Refreshing {
  const refreshes = metrics.counter({
    name: 'gatehouse_refreshes_total',
    help: 'Token refreshes: refreshed, invalid_grant (the session ends), or failed (retried).',
    labels: ['outcome'],
  })
  for (const outcome of ['refreshed', 'invalid_grant', 'failed']) refreshes.of(outcome)
  return {
    config: provider.config,
    apis: provider.apis,
    userinfo: (tokens, sub) => provider.userinfo(tokens, sub),
    refresh: async (tokens, sub) => {
      try {
        const refreshed = await provider.refresh(tokens, sub)
        refreshes.of(refreshed.kind).add()
        return refreshed
      } catch (error) {
        refreshes.of('failed').add()
        throw error
      }
    },
  }
}

/** The log of one of several providers: it names the provider and its settings. */
export function providerLog(log: Log, config: ProviderConfig): Log {
  if (config.setting === 'provider') return log
  const named = (fields: LogFields = {}): LogFields => ({
    provider: config.name,
    ...Object.fromEntries(
      Object.entries(fields).map(([name, value]) => [
        name,
        typeof value === 'string' && (name === 'reason' || name === 'hint') ? inSettingsOf(config, value) : value,
      ]),
    ),
  })
  return {
    debug: (message, fields) => log.debug(message, named(fields)),
    info: (message, fields) => log.info(message, named(fields)),
    warn: (message, fields) => log.warn(message, named(fields)),
    error: (message, fields) => log.error(message, named(fields)),
    announce: (message, fields) => log.announce(message, named(fields)),
  }
}
