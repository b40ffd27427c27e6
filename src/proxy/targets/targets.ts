import { targetName } from '../../config/addresses.ts'
import type { TargetConfig, UpstreamConfig } from '../../config/model/upstream.ts'
import { portOf } from '../../core/addresses.ts'
import { GatewayError } from '../../core/errors.ts'
import type { Log } from '../../observe/log.ts'
import { Http1Transport } from '../../transport/http1/http1-transport.ts'
import type {
  ExchangeControl,
  Progress,
  RawFields,
  ResponseHandler,
  SwitchedConnection,
  TargetObserver,
  Transport,
  TransportTarget,
  UpstreamRequest,
} from '../../transport/transport.ts'
import type { GiveBack } from '../../wire/read-buffers.ts'
import { Balancer, type Candidate, candidate } from './balancer.ts'
import { RetryBudget } from './retry-budget.ts'
import { Target, type TargetPool } from './target.ts'

export interface TargetsParts {
  readonly pool: TargetPool
  readonly log: Log
}

/** After this time a connection takes no further request, so that the host is resolved again. */
const lifetimeMs = 60_000

function transportTarget(config: UpstreamConfig, { url, socketPath }: TargetConfig): TransportTarget {
  const { tls, connectTimeoutMs, keepAliveMs, maxConnections, maxStreams, connectionsPerTarget, proxyProtocol } = config
  return {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: portOf(url),
    socketPath,
    tls: url.protocol === 'https:' ? tls : undefined,
    tellsClient: proxyProtocol === 'v2',
    maxConnections: connectionsPerTarget ?? maxConnections + maxStreams,
    ...{ connectTimeoutMs, keepAliveMs, lifetimeMs },
  }
}

/** Methods whose requests have the same effect when they arrive twice (RFC 9110 §9.2.2). */
const idempotent: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'])

/** The targets of an upstream. Each request goes to one, and to another one when that fails. */
export class Targets implements Transport {
  readonly #config: UpstreamConfig
  readonly #candidates: readonly Candidate[]
  readonly #balancer: Balancer
  readonly #budget: RetryBudget
  readonly #pool: TargetPool
  readonly #log: Log

  constructor(config: UpstreamConfig, { pool, log }: TargetsParts) {
    this.#config = config
    this.#candidates = config.targets.map((target) => {
      const options = transportTarget(config, target)
      const create = () => new Target(targetName(target), new Http1Transport(options), () => performance.now())
      return candidate(pool.take(JSON.stringify([config.name, options]), this, create), target)
    })
    this.#balancer = new Balancer(config)
    this.#budget = new RetryBudget(config.retryBudget)
    this.#pool = pool
    this.#log = log
  }

  /** The only target; `undefined` when there are several. */
  get only(): Target | undefined {
    return this.#candidates.length === 1 ? this.#candidates[0]?.target : undefined
  }

  dispatch(request: UpstreamRequest, handler: ResponseHandler, observer?: TargetObserver): void {
    this.#budget.note()
    const chosen = this.#balancer.choose(this.#candidates, request.session)
    if (chosen === undefined) {
      handler.onDone()
      handler.onError(new GatewayError('ERR_UPSTREAM_UNREACHABLE', 'the upstream has no target'))
      return
    }
    new TargetExchange(this, request, handler, observer).start(chosen)
  }

  /** Targets that another generation uses stay open. */
  async close(): Promise<void> {
    await Promise.all(this.#release().map(({ transport }) => transport.close()))
  }

  async destroy(): Promise<void> {
    await Promise.all(this.#release().map(({ transport }) => transport.destroy()))
  }

  /** Gives the targets back. @returns those that no other upstream uses */
  #release(): readonly Target[] {
    return this.#candidates.map(({ target }) => target).filter((target) => this.#pool.release(target, this))
  }

  /** @internal of {@link TargetExchange}: the response has this status. */
  noteResponse({ target }: Candidate, status: number): void {
    const { name, eject } = this.#config
    if (eject?.statuses.includes(status) === true) this.#fail(target, `status ${status}`)
    else if (target.health.succeed())
      this.#log.info('upstream.target_returned', { upstream: name, target: target.name })
  }

  /** @internal of {@link TargetExchange} */
  noteFailure({ target }: Candidate, error: GatewayError, progress: Progress): void {
    const isBroken = error.code === 'ERR_UPSTREAM_UNREACHABLE' && progress !== 'responding'
    if (isBroken || error.code === 'ERR_UPSTREAM_TIMEOUT') this.#fail(target, error.message)
  }

  #fail(target: Target, reason: string): void {
    const { name: upstream, eject } = this.#config
    const ejection = target.health.fail(reason, eject)
    if (ejection !== undefined)
      this.#log.warn('upstream.target_ejected', {
        ...{ upstream, target: target.name, reason, for_ms: ejection.forMs },
        hint: 'Requests go to the other targets meanwhile. Find out why this one fails.',
      })
  }

  /**
   * @internal of {@link TargetExchange}: the target that a failed request is sent to; `undefined`
   * when it must not be sent again.
   */
  another(failed: Candidate, request: UpstreamRequest, error: GatewayError, progress: Progress): Candidate | undefined {
    const isSafe = request.body === undefined && idempotent.has(request.method)
    const isLost =
      error.code === 'ERR_UPSTREAM_UNREACHABLE' && (progress === 'unsent' || (progress === 'sent' && isSafe))
    const isUnconnected = error.code === 'ERR_UPSTREAM_TIMEOUT' && progress === 'unsent'
    if (!isLost && !isUnconnected) return undefined
    const next = this.#balancer.choose(this.#candidates, request.session, failed)
    return next !== undefined && this.#budget.take() ? next : undefined
  }
}

/** One request, until a target has responded or no other one may get it. */
class TargetExchange implements ResponseHandler {
  readonly #targets: Targets
  readonly #request: UpstreamRequest
  readonly #handler: ResponseHandler
  readonly #observer: TargetObserver | undefined
  #candidate!: Candidate
  #isRetry = false
  /** Neither `onEnd` nor `onError` follows `onDone`. */
  #isDoneLast = false

  constructor(
    targets: Targets,
    request: UpstreamRequest,
    handler: ResponseHandler,
    observer: TargetObserver | undefined,
  ) {
    this.#targets = targets
    this.#request = request
    this.#handler = handler
    this.#observer = observer
  }

  start(candidate: Candidate): void {
    this.#candidate = candidate
    candidate.target.open += 1
    this.#observer?.onTarget(candidate.target.name)
    candidate.target.transport.dispatch(this.#request, this)
  }

  onSend(control: ExchangeControl): boolean {
    const isWanted = this.#handler.onSend(control)
    this.#isDoneLast = !isWanted
    return isWanted
  }

  onResponse(status: number, statusMessage: string, fields: RawFields): void {
    if (status >= 200) this.#targets.noteResponse(this.#candidate, status)
    this.#handler.onResponse(status, statusMessage, fields)
  }

  onShortPart(part: Buffer): void {
    this.#handler.onShortPart(part)
  }

  onContent(part: Buffer, giveBack: GiveBack): void {
    this.#handler.onContent(part, giveBack)
  }

  onEnd(trailers: RawFields): void {
    this.#handler.onDone()
    this.#handler.onEnd(trailers)
  }

  onSwitch(connection: SwitchedConnection, fields: RawFields): void {
    this.#isDoneLast = true
    this.#targets.noteResponse(this.#candidate, 101)
    this.#handler.onSwitch(connection, fields)
  }

  onError(error: GatewayError, progress: Progress = 'responding'): void {
    const failed = this.#candidate
    this.#targets.noteFailure(failed, error, progress)
    const next = this.#isRetry ? undefined : this.#targets.another(failed, this.#request, error, progress)
    if (next === undefined) {
      this.#handler.onDone()
      this.#handler.onError(error)
      return
    }
    this.#isRetry = true
    this.#observer?.onRetry(failed.target.name, error)
    this.start(next)
  }

  /** The handler gets it as late as possible, because a failed request may be sent again. */
  onDone(): void {
    this.#candidate.target.open -= 1
    if (this.#isDoneLast) this.#handler.onDone()
  }
}
