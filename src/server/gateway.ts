import { startAdmin } from '../admin/listener.ts'
import { singleProcess, type ProcessApi } from '../admin/processes.ts'
import { checkMethod } from '../check-requests/ext-authz.ts'
import type { GrpcListener } from '../check-requests/grpc.ts'
import { freeMemory } from '../config/memory.ts'
import type { Address } from '../config/model/address.ts'
import type { ExtAuthzConfig, GatewayConfig } from '../config/model/gateway.ts'
import type { StoreConfig } from '../config/model/session.ts'
import { type Clock, systemClock } from '../core/clock.ts'
import { createAccountLimits } from '../limits/account-limits.ts'
import { connectionsWithin } from '../limits/file-descriptors.ts'
import { budgetBytes, MemoryBudget } from '../limits/memory-budget.ts'
import { RejectedClients } from '../limits/rejected-clients.ts'
import { listen, type ListenerHandlers } from '../listener/listener.ts'
import { UnreadableRequests } from '../listener/unreadable-requests.ts'
import { LiveStreams } from '../proxy/live-streams.ts'
import { hasEndedBy } from '../session/live/marks.ts'
import { NearCaches } from '../session/live/near-caches.ts'
import { PendingEndings } from '../session/live/pending-endings.ts'
import { measuredStore } from '../session/store/measured-store.ts'
import { createMemoryStore } from '../session/store/memory/store.ts'
import { createRedisStore, type RedisStoreParts } from '../session/store/redis/store.ts'
import type { SessionStore } from '../session/store/store.ts'
import { createProvenClients } from '../tokens/service-accounts.ts'
import { TokenEndings } from '../tokens/token-endings.ts'
import { makeStringsFast } from '../wire/fast-strings.ts'
import { type FoundAtStart, waitForDependencies } from './dependencies.ts'
import { addGatewayMetrics } from './gateway-metrics.ts'
import type { Generation } from './generation.ts'
import { Generations } from './generations.ts'
import { type Observing, startObserving, type ObservingParts } from './observing.ts'
import { createProcessApi } from './process-api.ts'
import type { SharedParts } from './shared-parts.ts'
import { runInOrder } from './shutdown.ts'

/** A gateway that serves requests. */
export interface Gateway {
  readonly address: Address
  readonly adminAddress: Address | undefined
  readonly extAuthzAddress: Address | undefined
  readonly foundAtStart: FoundAtStart
  /**
   * Serves by another configuration from the next request on. Sessions, connections and streams
   * stay, and a request that is in progress ends under the configuration that it began with.
   * Concurrent reloads take effect in the order of their calls.
   * @returns the settings that differ but take effect at the next start only
   */
  reload(config: GatewayConfig): Promise<readonly string[]>
  /** Lets requests finish for up to `shutdown.drain_timeout`, then closes everything. */
  close(): Promise<void>
}

export interface GatewayParts extends ObservingParts {
  /** What the process may hold for clients, in bytes. Absent: see `budgetBytes`. */
  readonly budgetBytes?: number
  /**
   * Gets the API of this process when another process listens on `admin.listen`. Absent: this
   * process listens on it.
   */
  readonly serveProcessApi?: (api: ProcessApi) => void
}

/**
 * Builds a gateway from its configuration and starts it. The provider and Redis may still be
 * unreachable.
 * @throws {OperatorError} when an address cannot be listened on or a certificate cannot be read
 */
export async function startGateway(config: GatewayConfig, parts: GatewayParts): Promise<Gateway> {
  makeStringsFast()
  const { clock = systemClock, serveProcessApi } = parts
  const startedAt = clock.now()
  const observing = startObserving(config, parts)
  const { log, metrics } = observing
  const shared = sharedParts(config, { ...observing, clock, budgetBytes: parts.budgetBytes })
  const { store, pending, rejectedClients, memory } = shared
  const generations = await Generations.start(config, shared)
  addGatewayMetrics(metrics, () => generations.current)

  const closeSteps = [
    () => generations.close(),
    async () => pending.clear(),
    () => store.close(),
    () => observing.close(),
  ]
  try {
    const listener = await listen(
      config.listen,
      { ...config.limits, connections: connectionsWithin(config.limits, log) },
      handlersOf(generations),
      {
        trusted: { has: (address) => generations.current.trusted.has(address) },
        rejectedClients,
        memory,
        log,
        unreadable: new UnreadableRequests(metrics, rejectedClients),
      },
    )
    closeSteps.unshift(() => listener.drain(generations.config.shutdown.drainTimeoutMs))
    const extAuthz = config.extAuthz && (await listenForExtAuthz(config.extAuthz, generations, shared))
    if (extAuthz !== undefined) closeSteps.unshift(() => extAuthz.close())
    const api = createProcessApi({ generations, observing, store, clock, startedAt })
    serveProcessApi?.(api)
    const admin =
      config.admin === undefined || serveProcessApi !== undefined
        ? undefined
        : await startAdmin(config.admin, config.limits, {
            ...{ clock, log, running: () => generations.config, processes: singleProcess(api) },
          })
    if (admin !== undefined) closeSteps.push(() => admin.close())
    return {
      foundAtStart: await waitForDependencies(store, generations.current, log),
      address: listener.address,
      extAuthzAddress: extAuthz?.address,
      adminAddress: admin?.address,
      reload: (next) => generations.reload(next),
      close: () => {
        generations.beginClosing()
        return runInOrder(closeSteps, log)
      },
    }
  } catch (error) {
    await runInOrder(closeSteps, log)
    throw error
  }
}

/** What outlives a reload. */
function sharedParts(
  config: GatewayConfig,
  {
    clock,
    budgetBytes: given,
    ...observing
  }: Observing & { readonly clock: Clock; readonly budgetBytes: number | undefined },
): SharedParts & { readonly memory: MemoryBudget } {
  const { log, metrics, pageHistory } = observing
  const onReached = pageHistory && pageHistory.timeline.reached.bind(pageHistory.timeline)
  const store = measuredStore(createStore(config.session.store, { log, clock, onReached }), metrics)
  const rejectedClients = new RejectedClients(log, clock)
  const free = freeMemory(config.workers)
  const growthBytes = given === undefined ? free / 2 : undefined
  const memory = new MemoryBudget(given ?? budgetBytes(free), { rejectedClients, growthBytes })
  memory.describe(metrics)
  return {
    ...observing,
    ...{ store, rejectedClients, memory, clock },
    pending: new PendingEndings(log),
    live: new LiveStreams(),
    caches: new NearCaches(),
    streamSessions: new Map(),
    accountLimits: { ...createAccountLimits({ clock, rejectedClients }), proven: createProvenClients() },
    tokenEndings: new TokenEndings({ clock, isRenewed: (key) => hasEndedBy(key, 'renewal', store) }),
  }
}

const untrustedHint = 'Add the address of Envoy to trusted_proxies; its connection to ext_authz was closed.'

function admitsToExtAuthz(peer: string, { trusted }: Generation, rejectedClients: RejectedClients): boolean {
  const isTrusted = trusted.hasPeer(peer)
  if (!isTrusted) rejectedClients.note('ext_authz', peer, untrustedHint)
  return isTrusted
}

/** Loads the gRPC server only when it is configured, because it loads HTTP/2. */
async function listenForExtAuthz(
  config: ExtAuthzConfig,
  generations: Generations,
  { rejectedClients, log }: SharedParts,
): Promise<GrpcListener> {
  const { listenForGrpc } = await import('../check-requests/grpc.ts')
  return listenForGrpc(config, {
    methods: { [checkMethod]: (message, peer) => generations.current.check(message, peer) },
    admits: (peer) => admitsToExtAuthz(peer, generations.current, rejectedClients),
    log,
  })
}

/** The handlers of the current generation, looked up for each request. */
function handlersOf(generations: Generations): ListenerHandlers {
  return {
    request: (req, res) => generations.current.handlers.request(req, res),
    expectation: (req, res) => generations.current.handlers.expectation(req, res),
    headersTooLarge: (beginning) => generations.current.handlers.headersTooLarge(beginning),
    upgrade: (req, socket, head) => generations.current.handlers.upgrade(req, socket, head),
    get upgradeProtocols() {
      return generations.current.handlers.upgradeProtocols
    },
    closeEndlessStreams: () => generations.current.handlers.closeEndlessStreams(),
  }
}

function createStore(config: StoreConfig, parts: RedisStoreParts): SessionStore {
  return config.kind === 'memory'
    ? createMemoryStore({ maxSessions: config.maxSessions, clock: parts.clock })
    : createRedisStore(config, parts)
}
