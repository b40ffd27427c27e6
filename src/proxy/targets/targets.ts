import type { TargetConfig, UpstreamConfig } from '../../config/model/upstream.ts'
import { targetName } from '../../config/target-addresses.ts'
import { portOf } from '../../core/addresses.ts'
import { GatewayError } from '../../core/errors.ts'
import type { Log } from '../../observe/log.ts'
import type { Metrics } from '../../observe/metrics.ts'
import { Http1Transport } from '../../transport/http1/http1-transport.ts'
import { type Http2Target, Http2Transport } from '../../transport/http2/http2-transport.ts'
import type {
  Progress,
  ResponseHandler,
  TargetObserver,
  Transport,
  UpstreamRequest,
} from '../../transport/transport.ts'
import { Balancer, type Candidate, candidate } from './balancer.ts'
import { RetryBudget } from './retry-budget.ts'
import { TargetExchange, type TargetResults } from './target-exchange.ts'
import type { TargetState } from './target-health.ts'
import { Target, type TargetPool } from './target.ts'
import { TargetsWork } from './targets-work.ts'

/** What all upstreams of a process share. */
export interface TargetsParts {
  readonly pool: TargetPool
  readonly log: Log
  readonly metrics: Pick<Metrics, 'counter'>
}

/** After this time a connection takes no further request, so that the host is resolved again. */
const lifetimeMs = 60_000

/** Opens connections to a target. */
export function connectTo(config: UpstreamConfig, settings: TargetConfig, maxConnections?: number): Transport {
  const Client = config.protocol === 'http1' ? Http1Transport : Http2Transport
  const options = transportTarget(config, settings)
  return new Client({ ...options, maxConnections: maxConnections ?? options.maxConnections })
}

function transportTarget(config: UpstreamConfig, { url, socketPath }: TargetConfig): Http2Target {
  const { tls, connectTimeoutMs, keepAliveMs, maxConnections, maxStreams, connectionsPerTarget, proxyProtocol } = config
  return {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: portOf(url),
    socketPath,
    // A target that DNS gave is an address, and its certificate is for the name.
    tls: url.protocol === 'https:' ? { ...tls, serverName: tls.serverName ?? nameOf(config) } : undefined,
    tellsClient: proxyProtocol === 'v2',
    maxConnections: connectionsPerTarget ?? maxConnections + maxStreams,
    connectTimeoutMs,
    keepAliveMs,
    lifetimeMs,
    streamsPerConnection: config.streamsPerConnection,
  }
}

/** The name that DNS resolves to the targets; `undefined` when the configuration lists them. */
function nameOf({ resolve, url }: UpstreamConfig): string | undefined {
  return resolve === undefined ? undefined : url.hostname
}

/** What is shown about a target. */
export interface TargetView {
  readonly name: string
  readonly backup: boolean
  readonly state: TargetState
  /** Why it failed last. */
  readonly reason: string | undefined
  /** Its open requests and streams in this process. */
  readonly open: number
}

function targetCounters(metrics: Pick<Metrics, 'counter'>) {
  const labels = ['upstream']
  return {
    ejections: metrics.counter({
      name: 'gatehouse_target_ejections_total',
      labels,
      help: 'How often a target was ejected, because requests to it failed.',
    }),
    retries: metrics.counter({
      name: 'gatehouse_target_retries_total',
      labels,
      help: 'Requests that were sent to another target, because the first one had failed.',
    }),
  }
}

/** Methods whose requests have the same effect when they arrive twice (RFC 9110 §9.2.2). */
const idempotent: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'])

/** The client has not sent the whole request. */
function owesContent({ body }: UpstreamRequest): boolean {
  return body?.isIncomplete === true
}

/**
 * The targets of an upstream. A request goes to one of them, and is retried once at another one.
 */
export class Targets implements Transport, TargetResults {
  readonly #config: UpstreamConfig
  readonly #work: TargetsWork
  readonly #balancer: Balancer
  readonly #budget: RetryBudget
  readonly #pool: TargetPool
  readonly #log: Log
  readonly #counts: ReturnType<typeof targetCounters>
  #candidates: readonly Candidate[] = []
  #isClosed = false
  /** Requests that wait for the first answer of DNS. */
  #waiting = 0

  constructor(config: UpstreamConfig, { pool, log, metrics }: TargetsParts) {
    this.#config = config
    this.#balancer = new Balancer(config)
    this.#budget = new RetryBudget(config.retryBudget)
    this.#pool = pool
    this.#log = log
    this.#counts = targetCounters(metrics)
    this.#work = new TargetsWork(config, {
      pool,
      log,
      candidates: () => this.#candidates,
      use: (targets) => this.#use(targets),
    })
    this.#use(this.#work.lastAnswer ?? (config.resolve === undefined ? config.targets : []))
  }

  /** Begins to resolve the name of the targets, and to check their health. */
  start(): void {
    this.#work.start()
  }

  /** The only target; `undefined` when there are several. */
  get only(): Target | undefined {
    const { resolve, targets } = this.#config
    return resolve === undefined && targets.length === 1 ? this.#candidates[0]?.target : undefined
  }

  get states(): readonly TargetView[] {
    return this.#candidates.map(({ target: { name, health, open }, backup }) => ({
      name,
      backup,
      open,
      state: health.state(this.#config.slowStartMs),
      reason: health.reason,
    }))
  }

  dispatch(request: UpstreamRequest, handler: ResponseHandler, observer?: TargetObserver): void {
    this.#budget.note()
    const chosen = this.#balancer.choose(this.#candidates, request.session)
    if (chosen !== undefined) new TargetExchange(this, request, handler, observer).start(chosen)
    else if (this.#work.isResolving) {
      this.#waiting += 1
      void this.#work.resolved.then(() => this.dispatch(request, handler, observer))
    } else {
      const { reason = 'it is closed' } = this.#work
      handler.onDone()
      handler.onError(new GatewayError('ERR_UPSTREAM_UNREACHABLE', `the upstream has no target: ${reason}`))
    }
  }

  /** Targets that another generation uses stay open. Requests that wait for DNS are sent before. */
  async close(): Promise<void> {
    if (this.#waiting > 0) await this.#work.resolved
    await Promise.all(this.#release().map(({ transport }) => transport.close()))
  }

  async destroy(): Promise<void> {
    await Promise.all(this.#release().map(({ transport }) => transport.destroy()))
  }

  /** Gives the targets back. @returns those that no other upstream uses */
  #release(): readonly Target[] {
    this.#isClosed = true
    this.#work.stop()
    return this.#candidates.map(({ target }) => target).filter((target) => this.#pool.release(target, this))
  }

  /** Takes these targets from now on. One that stays keeps its connections and its health. */
  #use(targets: readonly TargetConfig[]): void {
    if (this.#isClosed) return
    const former = this.#candidates
    this.#candidates = targets.map((target) => this.#take(target, former))
    const kept = new Set(this.#candidates.map(({ target }) => target))
    for (const { target } of former)
      if (!kept.has(target) && this.#pool.release(target, this)) void target.transport.close()
  }

  #take(settings: TargetConfig, former: readonly Candidate[]): Candidate {
    const { name, healthCheck, protocol } = this.#config
    const options = transportTarget(this.#config, settings)
    const connect = (maxConnections?: number) => connectTo(this.#config, settings, maxConnections)
    const create = () => new Target(targetName(settings), connect, () => performance.now())
    const target = this.#pool.take(JSON.stringify([name, protocol, options]), this, create)
    if (healthCheck === undefined) target.health.forgetChecks()
    const known = former.find((each) => each.target === target)
    if (former.length > 0 && known === undefined) target.health.beginSlowStart()
    return candidate(target, { ...settings, limit: options.maxConnections }, known)
  }

  noteResponse({ target }: Candidate, request: UpstreamRequest, status: number): void {
    const { name, eject } = this.#config
    if (eject?.statuses.includes(status) === true) {
      if (!owesContent(request)) this.#fail(target, `status ${status}`)
    } else if (target.health.succeed())
      this.#log.info('upstream.target_returned', { upstream: name, target: target.name })
  }

  noteFailure({ target }: Candidate, request: UpstreamRequest, error: GatewayError, progress: Progress): void {
    // Otherwise one client could eject all targets of an application that does not wait for it.
    if (progress !== 'unsent' && owesContent(request)) return
    const isBroken = error.code === 'ERR_UPSTREAM_UNREACHABLE' && progress !== 'responding'
    if (isBroken || error.code === 'ERR_UPSTREAM_TIMEOUT') this.#fail(target, error.message)
  }

  #fail(target: Target, reason: string): void {
    const { name: upstream, eject } = this.#config
    const ejection = target.health.fail(reason, eject)
    if (ejection === undefined) return
    this.#counts.ejections.of(upstream).add()
    const hint = 'Requests go to the other targets meanwhile. Find out why this one fails.'
    this.#log.warn('upstream.target_ejected', { upstream, target: target.name, reason, for_ms: ejection.forMs, hint })
  }

  targetForRetry(
    failed: Candidate,
    request: UpstreamRequest,
    error: GatewayError,
    progress: Progress,
  ): Candidate | undefined {
    const isSafe = request.body === undefined && idempotent.has(request.method)
    const isLost =
      error.code === 'ERR_UPSTREAM_UNREACHABLE' && (progress === 'unsent' || (progress === 'sent' && isSafe))
    const isUnconnected = error.code === 'ERR_UPSTREAM_TIMEOUT' && progress === 'unsent'
    if (!isLost && !isUnconnected) return undefined
    const next = this.#balancer.choose(this.#candidates, request.session, failed)
    if (next === undefined || !this.#budget.take()) return undefined
    this.#counts.retries.of(this.#config.name).add()
    return next
  }
}
