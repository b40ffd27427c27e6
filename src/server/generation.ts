import type { IncomingMessage } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import type { GatewayConfig } from '../config/model.ts'
import type { Clock } from '../core/clock.ts'
import { reason } from '../core/errors.ts'
import type { SessionKey } from '../core/names.ts'
import { Keyring } from '../core/seal.ts'
import { createAdmit } from '../gate/admit.ts'
import { identify } from '../gate/identify.ts'
import { TrustedProxies } from '../http/forwarded.ts'
import type { MemoryBudget } from '../limits/memory-budget.ts'
import type { RejectedClients } from '../limits/rejected-clients.ts'
import type { Audit } from '../observe/audit.ts'
import type { Log } from '../observe/log.ts'
import type { Metrics } from '../observe/metrics.ts'
import type { RequestRecord, RequestSink } from '../observe/request-record.ts'
import type { Tracer } from '../observe/tracing.ts'
import { Pages } from '../pages/pages.ts'
import { OpenidProvider } from '../provider/openid-provider.ts'
import type { LiveStreams } from '../proxy/live-streams.ts'
import { Upstreams } from '../proxy/upstream.ts'
import { SessionCookie } from '../session/cookie.ts'
import type { OwedEndings } from '../session/owed-endings.ts'
import { audienceOf } from '../session/record.ts'
import { Sessions } from '../session/sessions.ts'
import type { SessionStore } from '../session/store.ts'
import { Upkeep } from '../tokens/upkeep.ts'
import { createApp } from './endpoints.ts'
import { countedRefreshes } from './gateway-metrics.ts'
import type { ListenerHandlers } from './listener.ts'
import { createHandlers } from './request-handler.ts'
import { type KnownSessions, watchLiveSessions } from './watch-live-sessions.ts'

/** What outlasts a configuration. */
export interface LastingParts {
  readonly store: SessionStore
  readonly owed: OwedEndings
  readonly streamSessions: KnownSessions
  /** Those of all servings that are not let go. */
  readonly sessions: Set<Sessions>
  readonly live: LiveStreams
  readonly rejectedClients: RejectedClients
  readonly memory: Pick<MemoryBudget, 'isExceeded'>
  readonly log: Log
  readonly clock: Clock
  readonly audit: Audit
  readonly sink: RequestSink
  readonly tracer: Tracer | undefined
  readonly metrics: Metrics
  /**
   * Bytes of an upload or download have moved, or the person's side of a tunnel has sent something:
   * the session is in use.
   */
  readonly onActivity: (session: SessionKey) => void
}

/**
 * Everything that serves by one configuration. A reload puts another one in its place, as a whole.
 */
export interface Serving {
  readonly handlers: ListenerHandlers
  readonly sessions: Sessions
  readonly provider: OpenidProvider
  readonly trusted: TrustedProxies
  readonly upstreams: Upstreams
  /**
   * Another one has taken its place: what is under way may finish, then all is closed except
   * `upstreams`, whose exchanges may last as long as they like.
   */
  retire(): Promise<void>
  /** The gateway stops, and has no requests any more. */
  end(): Promise<void>
}

export async function createServing(config: GatewayConfig, lasting: LastingParts): Promise<Serving> {
  const { store, owed, live, rejectedClients, log, clock, audit, metrics } = lasting
  const keyring = new Keyring(config.session.keys)
  const cookie = new SessionCookie(config.session.cookie)
  const trusted = new TrustedProxies(config.trustedProxies)
  const sessions = new Sessions({
    ...{ store, owed, keyring, clock, log, audit, inThisProcess: lasting.sessions },
    audience: audienceOf(config.provider),
    config: config.session,
  })
  sessions.onEnded((keys) => live.closeAll(keys))
  const provider = new OpenidProvider(config.provider, { clock, log, metrics })
  const upkeep = new Upkeep(config.session, {
    ...{ sessions, clock, log, audit },
    provider: countedRefreshes(provider, metrics),
  })
  const pages = new Pages(config.pages, config.reservedPrefix)
  const upstreams = new Upstreams(config.upstreams, { isTracing: lasting.tracer !== undefined })
  const watching = watchLiveSessions({ live, sessions, known: lasting.streamSessions, clock, log })
  const stopListening = store.onNotice(({ kind }) => {
    if (kind === 'resumed') watching.look()
  })

  const records = new WeakMap<IncomingMessage, RequestRecord>()
  const app = await createApp(config, {
    ...{ provider, sessions, cookie, keyring, clock, log, audit, trusted, rejectedClients, pages },
    reservedPrefix: config.reservedPrefix,
    recordOf: (req) => records.get(req) as RequestRecord,
  })
  const handlers = createHandlers(config, {
    admit: createAdmit(config, { identify: (header) => identify(header, { cookie, sessions, upkeep }), cookie, log }),
    trusted,
    proxy: {
      ...{ upstreams, live, log, pages },
      isGatewayCookie: cookie.isOurs,
      bodyIdleTimeoutMs: config.limits.bodyIdleTimeoutMs,
      bodyBytesPerSecond: config.limits.bodyBytesPerSecond,
      onActivity: lasting.onActivity,
    },
    log,
    audit,
    pages,
    sink: lasting.sink,
    memory: lasting.memory,
    tracer: lasting.tracer,
    own: (req, res, record) => {
      records.set(req, record)
      app.routing(req, res)
    },
  })
  provider.start()

  /**
   * As long as a call to the provider and its repetition may take: a sign-in that comes back, a
   * refresh.
   */
  const callsEnd = () => wait(config.provider.timeoutMs * 2, undefined, { ref: false })
  const stopWatching = () => {
    watching.stop()
    stopListening()
  }
  let lettingGo: Promise<void> | undefined
  const letGo = () => {
    sessions.close()
    return (lettingGo ??= inTurn([() => app.close(), () => provider.close()], log))
  }
  return {
    ...{ handlers, sessions, provider, trusted, upstreams },
    retire: async () => {
      stopWatching()
      await callsEnd()
      await upkeep.settled()
      await letGo()
    },
    end: async () => {
      stopWatching()
      await Promise.race([upkeep.settled(), callsEnd()])
      await letGo()
      await inTurn([() => upstreams.destroy()], log)
    },
  }
}

/** What fails does not keep the rest from being closed. */
export async function inTurn(steps: readonly (() => Promise<unknown>)[], log: Log): Promise<void> {
  for (const step of steps)
    await step().catch((error: unknown) => log.warn('shutdown.step_failed', { reason: reason(error) }))
}
