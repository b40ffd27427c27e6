import { setTimeout as wait } from 'node:timers/promises'
import type { Address, GatewayConfig, StoreConfig } from '../config/model.ts'
import { systemClock, type Clock } from '../core/clock.ts'
import { version } from '../core/version.ts'
import { createAccessLog } from '../observe/access-log.ts'
import { createAudit } from '../observe/audit.ts'
import type { Log } from '../observe/log.ts'
import { countedAudit, countedLog } from '../observe/event-metrics.ts'
import { type Family, Metrics } from '../observe/metrics.ts'
import { addProcessMetrics } from '../observe/process-metrics.ts'
import { createRequestMetrics } from '../observe/request-metrics.ts'
import { combinedSink } from '../observe/request-record.ts'
import type { OpenidProvider } from '../provider/openid-provider.ts'
import { LiveStreams } from '../proxy/live-streams.ts'
import { measuredStore } from '../session/measured-store.ts'
import { OwedEndings } from '../session/owed-endings.ts'
import { createMemoryStore } from '../session/memory-store.ts'
import { createRedisStore } from '../session/redis-store.ts'
import type { SessionStore } from '../session/store.ts'
import { startAdmin } from './admin.ts'
import { addGatewayMetrics } from './gateway-metrics.ts'
import { listen } from './listener.ts'
import { reloadable } from './reloadable.ts'
import { createServing, inTurn, type LastingParts, type Serving } from './serving.ts'
import { TurnedAway } from './turned-away.ts'

/** How long a start waits for Redis and the provider, in ms, before it goes on without them. */
const startupGraceMs = 2000

/** A gateway that serves. */
export interface Gateway {
  readonly address: Address
  readonly adminAddress: Address | undefined
  /** Whether Redis and the provider answered by the time it served. */
  readonly foundAtStart: { readonly store: boolean; readonly provider: boolean }
  /**
   * Serves by another configuration from the next request on. What is under way goes on by the one it began with; sessions,
   * connections and streams stay. Resolves to the settings that take effect at the next start only, because they differ.
   */
  reload(config: GatewayConfig): Promise<readonly string[]>
  /** Lets requests finish for as long as the configuration allows, then closes everything. */
  close(): Promise<void>
}

export interface GatewayParts {
  readonly log: Log
  /** Takes the lines of the access log, one for each request. Absent: there is none. */
  readonly access?: ((line: string) => void) | undefined
  /** Takes what is counted; absent: a fresh one. */
  readonly metrics?: Metrics
  /** How many lines of the log were dropped. */
  readonly droppedLines?: () => number
  /** Makes of what counts in this process what counts in all that serve. Absent: there is no other. */
  readonly metricsOfAll?: (own: () => Promise<readonly Family[]>) => () => Promise<readonly Family[]>
  readonly clock?: Clock
}

/**
 * Builds a gateway out of its configuration and starts it. Neither the provider nor Redis has to be there yet.
 * @throws {OperatorError} when an address cannot be listened on or a certificate cannot be read
 */
export async function startGateway(config: GatewayConfig, parts: GatewayParts): Promise<Gateway> {
  const { clock = systemClock, metrics = new Metrics(), droppedLines = () => 0, metricsOfAll = (own) => own } = parts
  const log = countedLog(parts.log, metrics)
  const store = measuredStore(createStore(config.session.store, { log, clock }), metrics)
  const owed = new OwedEndings(log)
  const live = new LiveStreams()
  const turnedAway = new TurnedAway(log, clock)
  const lasting: LastingParts = {
    ...{ store, owed, live, turnedAway, log, clock, metrics },
    audit: countedAudit(createAudit(log), metrics),
    sink: combinedSink([createRequestMetrics(metrics), ...(parts.access ? [createAccessLog(parts.access)] : [])]),
    onActivity: (key) => void serving.sessions.find(key).catch(() => {}),
  }
  let running = config
  let serving = await createServing(config, lasting)
  const retired = new Set<Serving>()
  addGatewayMetrics(metrics, { serving: () => serving, droppedLines })
  const stopProcessMetrics = addProcessMetrics(metrics, version)

  let draining = false
  const endAll = async () => void (await Promise.all([serving, ...retired].map((each) => each.end())))
  const tidyUp = [endAll, async () => owed.forget(), () => store.close(), async () => stopProcessMetrics()]
  try {
    const listener = await listen(
      config.listen,
      config.limits,
      {
        request: (req, res) => serving.handlers.request(req, res),
        upgrade: (req, socket, head) => serving.handlers.upgrade(req, socket, head),
        endEndless: () => serving.handlers.endEndless(),
      },
      { trusted: { has: (address) => serving.trusted.has(address) }, turnedAway, log },
    )
    tidyUp.unshift(() => listener.drain(running.shutdown.drainTimeoutMs))
    const admin =
      config.admin === undefined
        ? undefined
        : await startAdmin(config.admin, {
            storeAnswers: () => store.ping(),
            mayServeInOutage: () => serving.sessions.mayServeInOutage,
            providerIsKnown: () => serving.provider.isKnown,
            isDraining: () => draining,
            metrics: metricsOfAll(async () => {
              // The store may have come back since it was asked last.
              await store.ping().catch(() => {})
              return metrics.collect()
            }),
          })
    if (admin !== undefined) tidyUp.push(() => admin.close())
    const foundAtStart = await areThereSoon(store, serving.provider, log)
    return {
      foundAtStart,
      address: listener.address,
      adminAddress: admin?.address,
      reload: async (next) => {
        const { config: wanted, needRestart } = reloadable(running, next)
        const successor = await createServing(wanted, lasting)
        // Whoever signs in at this moment is not to wait for another discovery.
        await untilTrue(() => Promise.resolve(successor.provider.isKnown), Date.now() + startupGraceMs)
        if (draining) {
          await successor.end()
          return []
        }
        const predecessor = serving
        ;[running, serving] = [wanted, successor]
        retired.add(predecessor)
        void predecessor.retire().finally(() => retired.delete(predecessor))
        return needRestart
      },
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
