import type { IncomingMessage } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import type { Address, GatewayConfig, StoreConfig } from '../config/model.ts'
import { systemClock, type Clock } from '../core/clock.ts'
import { reason } from '../core/errors.ts'
import { Keyring } from '../core/seal.ts'
import { createAdmit } from '../gate/admit.ts'
import { TrustedProxies } from '../gate/forwarded.ts'
import { identify } from '../gate/identify.ts'
import { createAudit } from '../observe/audit.ts'
import { createAccessLog } from '../observe/access-log.ts'
import type { Log } from '../observe/log.ts'
import type { RequestRecord } from '../observe/request-record.ts'
import { OpenidProvider } from '../provider/openid-provider.ts'
import { LiveStreams } from '../proxy/live-streams.ts'
import { UpstreamPools } from '../proxy/upstream-pool.ts'
import { SessionCookie } from '../session/cookie.ts'
import { createMemoryStore } from '../session/memory-store.ts'
import { audienceOf } from '../session/record.ts'
import { createRedisStore } from '../session/redis-store.ts'
import { Sessions } from '../session/sessions.ts'
import type { SessionStore } from '../session/store.ts'
import { Upkeep } from '../tokens/upkeep.ts'
import { startAdmin } from './admin.ts'
import { createApp } from './app.ts'
import { listen } from './listener.ts'
import { createHandlers } from './serve.ts'
import { TurnedAway } from './turned-away.ts'
import { watchLiveSessions } from './watch-live-sessions.ts'

/** How long a start waits for Redis and the provider, in ms, before it goes on without them. */
const startupGraceMs = 2000

/** A gateway that serves. */
export interface Gateway {
  readonly address: Address
  readonly adminAddress: Address | undefined
  /** Whether Redis and the provider answered by the time it served. */
  readonly foundAtStart: { readonly store: boolean; readonly provider: boolean }
  /** Lets requests finish for as long as the configuration allows, then closes everything. */
  close(): Promise<void>
}

export interface GatewayParts {
  readonly log: Log
  /** Takes the lines of the access log, one for each request. Absent: there is none. */
  readonly access?: ((line: string) => void) | undefined
  readonly clock?: Clock
}

/**
 * Builds a gateway out of its configuration and starts it. Neither the provider nor Redis has to be there yet.
 * @throws {OperatorError} when an address cannot be listened on or a certificate cannot be read
 */
export async function startGateway(config: GatewayConfig, parts: GatewayParts): Promise<Gateway> {
  const { log, clock = systemClock } = parts
  const audit = createAudit(log)
  const keyring = new Keyring(config.session.keys)
  const cookie = new SessionCookie(config.session.cookie)
  const trusted = new TrustedProxies(config.trustedProxies)

  const store = createStore(config.session.store, { log, clock })
  const sessions = new Sessions({
    store,
    keyring,
    audience: audienceOf(config.provider),
    config: config.session,
    clock,
    log,
    audit,
  })
  const provider = new OpenidProvider(config.provider, { clock, log })
  const upkeep = new Upkeep(config.session, { sessions, provider, clock, log, audit })
  const pools = new UpstreamPools(config.upstreams)
  const live = new LiveStreams()
  sessions.onEnded((keys) => live.closeAll(keys))

  const records = new WeakMap<IncomingMessage, RequestRecord>()
  const turnedAway = new TurnedAway(log, clock)
  const app = await createApp(config, {
    ...{ provider, sessions, cookie, keyring, clock, log, audit, trusted, turnedAway },
    reservedPrefix: config.reservedPrefix,
    recordOf: (req) => records.get(req) as RequestRecord,
  })
  const handlers = createHandlers(config, {
    admit: createAdmit(config, { identify: (header) => identify(header, { cookie, sessions, upkeep }), cookie, log }),
    trusted,
    proxy: {
      pools,
      live,
      log,
      isGatewayCookie: cookie.isOurs,
      bodyIdleTimeoutMs: config.limits.bodyIdleTimeoutMs,
      bodyBytesPerSecond: config.limits.bodyBytesPerSecond,
      onActivity: (key) => void sessions.find(key).catch(() => {}),
    },
    log,
    audit,
    sink: parts.access === undefined ? { ended: () => {} } : createAccessLog(parts.access),
    own: (req, res, record) => {
      records.set(req, record)
      app.routing(req, res)
    },
  })

  let draining = false
  const upkeepEnds = () =>
    Promise.race([upkeep.settled(), wait(config.provider.timeoutMs * 2, undefined, { ref: false })])
  const tidyUp = [upkeepEnds, () => app.close(), () => provider.close(), () => pools.destroy(), () => store.close()]
  try {
    const listener = await listen(config.listen, config.limits, handlers, { trusted, turnedAway, log })
    tidyUp.unshift(() => listener.drain(config.shutdown.drainTimeoutMs))
    const admin =
      config.admin === undefined
        ? undefined
        : await startAdmin(config.admin, {
            storeAnswers: () => store.ping(),
            providerIsKnown: () => provider.isKnown,
            isDraining: () => draining,
          })
    const watching = watchLiveSessions({ live, sessions, clock, log })
    store.onNotice(({ kind }) => {
      if (kind === 'resumed') watching.look()
    })
    tidyUp.push(() => Promise.resolve(watching.stop()))
    if (admin !== undefined) tidyUp.push(() => admin.close())
    provider.start()
    const foundAtStart = await areThereSoon(store, provider, log)
    return {
      foundAtStart,
      address: listener.address,
      adminAddress: admin?.address,
      close: () => {
        draining = true
        return inTurn(tidyUp, log)
      },
    }
  } catch (error) {
    await inTurn(tidyUp, log)
    throw error
  }
}

/** Who starts at the same time is waited for, a moment: the first visitors are not to see that. Who does not come is not. */
async function areThereSoon(store: SessionStore, provider: OpenidProvider, log: Log): Promise<Gateway['foundAtStart']> {
  const end = Date.now() + startupGraceMs
  const isThere = (answers: () => Promise<boolean>) => untilTrue(answers, end)
  const [storeIsThere, providerIsThere] = await Promise.all([
    isThere(() =>
      store.ping().then(
        () => true,
        () => false,
      ),
    ),
    isThere(() => Promise.resolve(provider.isKnown)),
  ])
  if (!storeIsThere)
    log.warn('store.not_there_yet', { hint: 'pages behind the sign-in are answered with 503 until it is' })
  return { store: storeIsThere, provider: providerIsThere }
}

async function untilTrue(holds: () => Promise<boolean>, end: number): Promise<boolean> {
  while (!(await holds())) {
    if (Date.now() >= end) return false
    await wait(20)
  }
  return true
}

function createStore(config: StoreConfig, parts: { readonly log: Log; readonly clock: Clock }): SessionStore {
  return config.kind === 'memory'
    ? createMemoryStore({ maxSessions: config.maxSessions, clock: parts.clock })
    : createRedisStore(config, parts)
}

/** What fails does not keep the rest from being closed. */
async function inTurn(steps: readonly (() => Promise<unknown>)[], log: Log): Promise<void> {
  for (const step of steps)
    await step().catch((error: unknown) => log.warn('shutdown.step_failed', { reason: reason(error) }))
}
