import { setTimeout as wait } from 'node:timers/promises'
import { reason } from '../core/errors.ts'
import type { SessionKey } from '../core/names.ts'
import { pauses } from '../core/pauses.ts'
import { sha256 } from '../core/random.ts'
import { BackOff, Repeating } from '../core/repeating.ts'
import { type StreamClient, TransmitterRefusal } from '../provider/stream-client.ts'
import { type LeaseStore, underLease } from '../session/live/lease.ts'
import type { SignalParts } from './carry-out.ts'
import { Poller } from './delivery.ts'
import { StreamKeeper, type StreamRecord } from './keep-stream.ts'

/** The longest pause after an error, in ms. */
const retryMostMs = 60_000
/** The longest pause after responses without a new event, in ms. */
const idleMostMs = 10_000
/** A response that took this long was held back, in ms: the next request can be sent at once. */
const heldBackMs = 5_000

export interface ReceiverParts {
  readonly streams: StreamClient
  readonly signals: Omit<SignalParts, 'store'> & { readonly store: SignalParts['store'] & LeaseStore }
  readonly record: StreamRecord
  /** The endpoint for push delivery. */
  readonly receiverUrl: string
}

/**
 * Keeps the stream of one provider as configured, and polls its events, in the process with the
 * lease. Errors are logged once, and retried.
 */
export class SignalReceiver {
  readonly #parts: ReceiverParts
  readonly #keeper: StreamKeeper | undefined
  readonly #poller: Poller | undefined
  readonly #stopped = new AbortController()
  readonly #looking = new Repeating('signals', () => this.#look())
  #failure: string | undefined
  #isHolder = false
  readonly #backOff = new BackOff(pauses.retrySignalsMs, retryMostMs)
  #idleMs = 0
  /** When the stream is checked next, in ms since the epoch. */
  #checkAt = 0
  /** Whether the last check succeeded. */
  #isChecked = false
  #pollUrl: string | undefined

  constructor(parts: ReceiverParts) {
    const { streams, signals, record, receiverUrl } = parts
    const { signals: config } = signals.provider.config
    const { clock, log } = signals
    this.#parts = parts
    this.#pollUrl = config?.pollUrl
    this.#poller = config?.delivery === 'poll' ? new Poller({ streams, signals }) : undefined
    this.#keeper =
      config?.stream === 'managed' ? new StreamKeeper({ config, streams, record, receiverUrl, clock, log }) : undefined
  }

  start(): void {
    this.#looking.wake()
  }

  /** Ends a request that is held back, and resolves when no event is being carried out. */
  async stop(): Promise<void> {
    this.#stopped.abort()
    await this.#looking.stop()
  }

  /** Whether the last request succeeded; `undefined` when another process sends them. */
  get isUp(): boolean | undefined {
    return this.#isHolder ? this.#failure === undefined : undefined
  }

  /** @returns the pause until the process looks again, in ms */
  async #look(): Promise<number> {
    const { store, sessions, log } = this.#parts.signals
    const key = sha256('security events', sessions.audience) as SessionKey
    const hold = (lost: AbortSignal) => this.#hold(AbortSignal.any([this.#stopped.signal, lost]))
    await underLease(key, store, hold).catch((error: unknown) =>
      log.debug('signals.no_lease', { reason: reason(error) }),
    )
    return pauses.lookForSignalsMs * (1 + Math.random())
  }

  async #hold(signal: AbortSignal): Promise<void> {
    this.#isHolder = true
    this.#checkAt = 0
    try {
      while (!signal.aborted) await pause(await this.#step(signal), signal)
    } finally {
      this.#isHolder = false
    }
  }

  /** @returns the pause until the next step, in ms */
  async #step(signal: AbortSignal): Promise<number> {
    try {
      const isChecked = await this.#check(signal)
      const pauseMs = this.#poller === undefined ? pauses.lookForSignalsMs : await this.#poll(this.#poller, signal)
      if (isChecked) this.#succeed()
      return pauseMs
    } catch (error) {
      // The stream may have been deleted or changed.
      this.#checkAt = 0
      return signal.aborted ? 0 : this.#fail(error)
    }
  }

  /** @returns `false` when the check failed, but events can be polled nevertheless */
  async #check(signal: AbortSignal): Promise<boolean> {
    const { clock } = this.#parts.signals
    if (this.#keeper === undefined) return true
    if (clock.now() < this.#checkAt) return this.#isChecked
    try {
      const { endpoint_url, nextCheckMs } = await this.#keeper.keep(signal)
      this.#checkAt = clock.now() + nextCheckMs
      this.#pollUrl = endpoint_url
      // The next poll may be held back.
      if (!this.#isChecked) this.#succeed()
      this.#isChecked = true
    } catch (error) {
      this.#pollUrl ??= this.#keeper.pollUrl
      if (this.#poller === undefined || this.#pollUrl === undefined || signal.aborted) throw error
      this.#checkAt = clock.now() + this.#fail(error)
      this.#isChecked = false
    }
    return this.#isChecked
  }

  async #poll(poller: Poller, signal: AbortSignal): Promise<number> {
    const began = performance.now()
    const outcome = await poller.poll(this.#pollUrl ?? '', signal)
    const isHeldBack = outcome === 'waited' || performance.now() - began >= heldBackMs
    if (outcome === 'progress' || isHeldBack) this.#idleMs = 0
    else this.#idleMs = Math.min(Math.max(this.#idleMs * 2, pauses.retrySignalsMs), idleMostMs)
    return this.#idleMs
  }

  #succeed(): void {
    if (this.#failure !== undefined) this.#parts.signals.log.info('signals.available')
    this.#failure = undefined
    this.#backOff.reset()
  }

  #fail(error: unknown): number {
    const why = reason(error)
    if (why !== this.#failure)
      this.#parts.signals.log.warn('signals.unavailable', {
        reason: why,
        hint: 'Events do not arrive, or the stream was not checked. The gateway retries. Run gatehouse doctor.',
      })
    this.#failure = why
    const waitMs = error instanceof TransmitterRefusal ? (error.waitMs ?? 0) : 0
    return Math.max(waitMs, this.#backOff.next())
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await wait(ms, undefined, { signal, ref: false }).catch(() => {})
}
