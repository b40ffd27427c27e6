import { startAdmin } from '../admin/listener.ts'
import { singleProcess, type ProcessApi } from '../admin/processes.ts'
import { checkMethod } from '../check-requests/ext-authz.ts'
import type { GrpcListener } from '../check-requests/grpc.ts'
import type { Address } from '../config/addresses.ts'
import type { ExtAuthzConfig, GatewayConfig } from '../config/model/gateway.ts'
import { systemClock } from '../core/clock.ts'
import { connectionsWithin } from '../limits/connection-limits.ts'
import { listen } from '../listener/listener.ts'
import { tryPrivateParts } from '../listener/private-parts-trial.ts'
import { makeStringsFast } from '../wire/fast-strings.ts'
import { addGatewayMetrics } from './gateway-metrics.ts'
import { createSharedParts, type SharedParts } from './generation-parts.ts'
import { runInOrder } from './generation.ts'
import { type FoundAtStart, Generations, waitForDependencies } from './generations.ts'
import { startObserving, type ObservingParts } from './observing.ts'
import { createProcessApi } from './process-api.ts'

/** A gateway that serves requests. */
export interface Gateway {
  readonly address: Address
  readonly adminAddress: Address | undefined
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
  /** The descriptor of a listening socket, which is used instead of a new one for `listen`. */
  readonly socket?: number | undefined
  /** What the process may hold for clients, in bytes. Absent: see `budgetBytes`. */
  readonly budgetBytes?: number
  /** Gets the API of this process. Absent: this process listens on `admin.listen` itself. */
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
  const shared = createSharedParts(config, observing, { clock, budgetBytes: parts.budgetBytes })
  const { store, pending } = shared
  const generations = new Generations(config, shared)
  addGatewayMetrics(metrics, () => generations.current.parts)

  const closeSteps = [
    () => generations.close(),
    async () => pending.clear(),
    () => store.close(),
    () => observing.close(),
  ]
  try {
    // A worker gets its first requests as soon as it listens.
    const foundAtStart = await waitForDependencies(store, generations.current.parts, log)
    await tryPrivateParts(log)
    const listener = await listen(
      config.listen,
      { ...config.limits, connections: connectionsWithin(config.limits, log) },
      generations.handlers,
      {
        ...shared,
        trusted: { has: (address) => generations.current.parts.trusted.has(address) },
        socket: parts.socket,
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
            clock,
            log,
            running: () => generations.config,
            processes: singleProcess(api),
          })
    if (admin !== undefined) closeSteps.push(() => admin.close())
    return {
      foundAtStart,
      address: listener.address,
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

const untrustedHint = 'Add the address of Envoy to trusted_proxies; its connection to ext_authz was closed.'

/** Loads the gRPC server only when it is configured, because it loads HTTP/2. */
async function listenForExtAuthz(
  config: ExtAuthzConfig,
  generations: Generations,
  { rejectedClients, log }: SharedParts,
): Promise<GrpcListener> {
  const { listenForGrpc } = await import('../check-requests/grpc.ts')
  return listenForGrpc(config, {
    methods: { [checkMethod]: (message, peer) => generations.current.check(message, peer) },
    admits: (peer) => {
      const isTrusted = generations.current.parts.trusted.hasPeer(peer)
      if (!isTrusted) rejectedClients.note('ext_authz', peer, untrustedHint)
      return isTrusted
    },
    log,
  })
}
