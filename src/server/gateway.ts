import { setTimeout as wait } from 'node:timers/promises'
import { administer } from '../admin/administration.ts'
import { startAdmin } from '../admin/listener.ts'
import { type Answers, onlyThis, type ProcessState, type Readiness } from '../admin/processes.ts'
import { type AdminSessionsParts, endByOrder, findSessions } from '../admin/sessions.ts'
import type { Address, GatewayConfig, StoreConfig } from '../config/model.ts'
import { systemClock, type Clock } from '../core/clock.ts'
import { reason } from '../core/errors.ts'
import { connectionsWithin } from '../limits/file-descriptors.ts'
import { MemoryBudget, processMemory } from '../limits/memory-budget.ts'
import { RejectedClients } from '../limits/rejected-clients.ts'
import type { Log } from '../observe/log.ts'
import type { OpenidProvider } from '../provider/openid-provider.ts'
import { LiveStreams } from '../proxy/live-streams.ts'
import type { Upstreams } from '../proxy/upstream.ts'
import { measuredStore } from '../session/measured-store.ts'
import { createMemoryStore } from '../session/memory-store.ts'
import { OwedEndings } from '../session/owed-endings.ts'
import { audienceOf } from '../session/record.ts'
import { createRedisStore } from '../session/redis/store.ts'
import type { Sessions } from '../session/sessions.ts'
import type { SessionStore } from '../session/store.ts'
import { addGatewayMetrics } from './gateway-metrics.ts'
import { createServing, inTurn, type LastingParts, type Serving } from './generation.ts'
import { listen } from './listener.ts'
import { startObserving, type ObservingParts, type Shown } from './observing.ts'
import { reloadable } from './reloadable.ts'

/** How many earlier configurations may stay in memory until what they began has ended. */
const mostRetiring = 4

/** How long a start waits for Redis and the provider, in ms, before it goes on without them. */
const startupGraceMs = 2000

/** A gateway that serves. */
export interface Gateway {
  readonly address: Address
  readonly adminAddress: Address | undefined
  /** Whether Redis and the provider answered by the time it served. */
  readonly foundAtStart: { readonly store: boolean; readonly provider: boolean }
  /**
   * Serves by another configuration from the next request on; several are taken one after the
   * other. What is under way goes on by the one it began with; sessions, connections and streams
   * stay. Resolves to the settings that take effect at the next start only, because they differ.
   */
  reload(config: GatewayConfig): Promise<readonly string[]>
  /** Lets requests finish for as long as the configuration allows, then closes everything. */
  close(): Promise<void>
}

export interface GatewayParts extends ObservingParts {
  /** The memory of this process, in bytes. Absent: as the container or the machine says. */
  readonly memoryBytes?: number
  /**
   * Is given the answers to what another process asks, which listens on `admin.listen`. Absent:
   * this one does.
   */
  readonly answering?: (answers: Answers) => void
}

/**
 * Builds a gateway out of its configuration and starts it. Neither the provider nor Redis has to be
 * there yet.
 * @throws {OperatorError} when an address cannot be listened on or a certificate cannot be read
 */
export async function startGateway(config: GatewayConfig, parts: GatewayParts): Promise<Gateway> {
  const { clock = systemClock, answering } = parts
  const startedAt = clock.now()
  const observing = startObserving(config, parts)
  const { log, metrics } = observing
  const store = measuredStore(createStore(config.session.store, { log, clock }), metrics)
  const owed = new OwedEndings(log)
  const live = new LiveStreams()
  const rejectedClients = new RejectedClients(log, clock)
  const memory = new MemoryBudget(parts.memoryBytes ?? processMemory(config.workers), { rejectedClients })
  memory.describe(metrics)
  const lasting: LastingParts = {
    ...observing,
    ...{ store, owed, live, rejectedClients, memory, clock, sessions: new Set<Sessions>(), streamSessions: new Map() },
    onActivity: (key) => void serving.sessions.find(key).catch(() => {}),
  }
  let running = config
  let serving = await createServing(config, lasting)
  const retired = new Set<Serving>()
  /**
   * Of earlier configurations: exchanges have their connections until they end, or the gateway
   * stops.
   */
  const earlierUpstreams = new Set<Upstreams>()
  const retire = async (predecessor: Serving): Promise<void> => {
    retired.add(predecessor)
    await predecessor.retire().finally(() => retired.delete(predecessor))
    closeWhenUnused(predecessor.upstreams)
  }
  const closeWhenUnused = (upstreams: Upstreams): void => {
    earlierUpstreams.add(upstreams)
    void upstreams
      .close()
      .catch(() => {})
      .finally(() => earlierUpstreams.delete(upstreams))
  }
  let retiring: Promise<unknown>[] = []
  addGatewayMetrics(metrics, () => serving)

  let draining = false
  let lastReload: Promise<unknown> = Promise.resolve()
  /**
   * One after the other: what was asked for last is what it comes to, whichever provider answers
   * first.
   */
  const inOrder = <T>(work: () => Promise<T>): Promise<T> => {
    const done = lastReload.then(work)
    lastReload = done.catch(() => {})
    return done
  }
  const reload = async (next: GatewayConfig): Promise<readonly string[]> => {
    // A configuration that was replaced stays in memory for seconds. Whoever reloads again and
    // again is slowed down.
    if (retiring.length >= mostRetiring) await Promise.race(retiring)
    const { config: wanted, needRestart } = reloadable(running, next)
    const successor = await createServing(wanted, lasting)
    // Whoever signs in at this moment is not to wait for another discovery.
    await untilTrue(() => Promise.resolve(draining || successor.provider.isKnown), performance.now() + startupGraceMs)
    if (draining) {
      await successor.end()
      return []
    }
    const predecessor = serving
    if (honourTheSame(running, wanted)) successor.sessions.takeOver(predecessor.sessions)
    ;[running, serving] = [wanted, successor]
    const done = retire(predecessor).finally(() => (retiring = retiring.filter((each) => each !== done)))
    retiring.push(done)
    return needRestart
  }
  const adminSessions: AdminSessionsParts = {
    running: () => running,
    administration: () => administer({ ...serving, config: running, audit: observing.audit }),
    clock,
  }
  const answers: Answers = {
    live: async () => {},
    readiness: () => readiness(store, serving, draining),
    metrics: async () => {
      // The store may have come back since it was asked last.
      await store.ping().catch(() => {})
      return metrics.collect()
    },
    state: async () => processState(startedAt, serving, running, observing.shown),
    sessions: (looking) => findSessions(looking, adminSessions),
    end: (order, client) => endByOrder(order, client, adminSessions),
  }
  const endAll = async () => {
    await Promise.all([serving, ...retired].map((each) => each.end()))
    await Promise.all([...earlierUpstreams].map((upstreams) => upstreams.destroy()))
  }
  const tidyUp = [endAll, async () => owed.forget(), () => store.close(), () => observing.close()]
  try {
    const listener = await listen(
      config.listen,
      { ...config.limits, connections: connectionsWithin(config.limits.connections, log) },
      {
        request: (req, res) => serving.handlers.request(req, res),
        expectation: (req, res) => serving.handlers.expectation(req, res),
        upgrade: (req, socket, head) => serving.handlers.upgrade(req, socket, head),
        get upgradeProtocols() {
          return serving.handlers.upgradeProtocols
        },
        endEndless: () => serving.handlers.endEndless(),
      },
      { trusted: { has: (address) => serving.trusted.has(address) }, rejectedClients, memory, log },
    )
    tidyUp.unshift(() => listener.drain(running.shutdown.drainTimeoutMs))
    answering?.(answers)
    const admin =
      config.admin === undefined || answering !== undefined
        ? undefined
        : await startAdmin(config.admin, config.limits, {
            ...{ clock, log, running: () => running, processes: onlyThis(answers) },
          })
    if (admin !== undefined) tidyUp.push(() => admin.close())
    const foundAtStart = await areThereSoon(store, serving.provider, log)
    return {
      foundAtStart,
      address: listener.address,
      adminAddress: admin?.address,
      reload: (next) => inOrder(() => reload(next)),
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

/** Whether sessions of the one configuration are good by the other. */
function honourTheSame(one: GatewayConfig, other: GatewayConfig): boolean {
  const keys = other.session.keys.map((key) => key.toString('base64'))
  return (
    audienceOf(one.provider) === audienceOf(other.provider) &&
    one.session.keys.every((key) => keys.includes(key.toString('base64')))
  )
}

async function readiness(store: SessionStore, { sessions, provider }: Serving, draining: boolean): Promise<Readiness> {
  const answer = await store.ping().then(
    () => 'answers',
    (error: unknown) => reason(error),
  )
  // Taken out of service, a process could serve nobody in the grace either.
  const grace = answer !== 'answers' && sessions.mayServeInOutage
  return {
    ready: (answer === 'answers' || grace) && !draining,
    store: answer,
    ...(grace && { grace }),
    provider: provider.isKnown ? 'found' : 'not found yet',
    draining,
  }
}

function processState(
  startedAt: number,
  { provider, upstreams: current }: Serving,
  { upstreams }: GatewayConfig,
  shown: Shown | undefined,
): ProcessState {
  if (shown === undefined) throw new Error('there is no page to show it')
  const loads = new Map(current.loads())
  return {
    startedAt,
    provider: provider.state,
    upstreams: upstreams.map(({ name }) => ({
      ...shown.upstreams.of(name),
      name,
      waiting: loads.get(name)?.waiting ?? 0,
    })),
    logouts: shown.logouts.latest,
  }
}

/**
 * Who starts at the same time is waited for, a moment: the first visitors are not to see that. Who
 * does not come is not.
 */
async function areThereSoon(store: SessionStore, provider: OpenidProvider, log: Log): Promise<Gateway['foundAtStart']> {
  const end = performance.now() + startupGraceMs
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
  const late = wait(Math.max(0, end - performance.now()), false, { ref: false })
  while (!(await Promise.race([holds(), late]))) {
    if (performance.now() >= end) return false
    await wait(20)
  }
  return true
}

function createStore(config: StoreConfig, parts: { readonly log: Log; readonly clock: Clock }): SessionStore {
  return config.kind === 'memory'
    ? createMemoryStore({ maxSessions: config.maxSessions, clock: parts.clock })
    : createRedisStore(config, parts)
}
