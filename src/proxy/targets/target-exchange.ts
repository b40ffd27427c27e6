import type { GatewayError } from '../../core/errors.ts'
import type {
  ExchangeControl,
  Progress,
  RawFields,
  ResponseHandler,
  SwitchedConnection,
  TargetObserver,
  UpstreamRequest,
} from '../../transport/transport.ts'
import type { GiveBack } from '../../wire/read-buffers.ts'
import type { Candidate } from './balancer.ts'

/** Receives the results of requests, and chooses the target of a retry. */
export interface TargetResults {
  /** The target has responded. */
  noteResponse(candidate: Candidate, request: UpstreamRequest, status: number): void
  /** The exchange with the target has failed. */
  noteFailure(candidate: Candidate, request: UpstreamRequest, error: GatewayError, progress: Progress): void
  /**
   * The target that a failed request is sent to; `undefined` when it must not be sent again.
   */
  targetForRetry(
    failed: Candidate,
    request: UpstreamRequest,
    error: GatewayError,
    progress: Progress,
  ): Candidate | undefined
}

/** One request, until a target has responded or no other one may get it. */
export class TargetExchange implements ResponseHandler {
  readonly #targets: TargetResults
  #request: UpstreamRequest
  readonly #handler: ResponseHandler
  readonly #observer: TargetObserver | undefined
  #candidate!: Candidate
  #isRetry = false
  /** How often the current target was to get the request. */
  #sendings = 0
  /**
   * `onDone` of the transport goes to the handler at once: neither `onEnd` nor `onError` follows.
   */
  #isDoneLast = false

  constructor(
    targets: TargetResults,
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
    this.#sendings = 0
    candidate.target.open += 1
    this.#observer?.onTarget(candidate.target.name)
    candidate.target.transport.dispatch(this.#request, this)
  }

  onSend(control: ExchangeControl): boolean {
    this.#sendings += 1
    const isWanted = this.#handler.onSend(control)
    this.#isDoneLast = !isWanted
    return isWanted
  }

  onResponse(status: number, statusMessage: string, fields: RawFields): void {
    if (status >= 200) this.#targets.noteResponse(this.#candidate, this.#request, status)
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
    this.#targets.noteResponse(this.#candidate, this.#request, 101)
    this.#handler.onSwitch(connection, fields)
  }

  onError(error: GatewayError, progress: Progress = 'responding'): void {
    const failed = this.#candidate
    this.#targets.noteFailure(failed, this.#request, error, progress)
    const next = this.#mayRetry(progress)
      ? this.#targets.targetForRetry(failed, this.#request, error, progress)
      : undefined
    if (next === undefined) {
      this.#handler.onDone()
      this.#handler.onError(error)
      return
    }
    this.#isRetry = true
    if (this.#sendings > 1 || progress !== 'unsent') this.#request = { ...this.#request, isRepetition: true }
    this.#observer?.onRetry(failed.target.name, error)
    this.start(next)
  }

  /** The transport itself has sent the request twice when its first connection was lost. */
  #mayRetry(progress: Progress): boolean {
    return !this.#isRetry && (this.#sendings < 2 || progress === 'unsent')
  }

  /**
   * The handler gets `onDone` only with the last result, because a failed request may be retried.
   */
  onDone(): void {
    this.#candidate.target.open -= 1
    if (this.#isDoneLast) this.#handler.onDone()
  }
}
