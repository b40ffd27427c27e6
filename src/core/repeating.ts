import { Instances } from './instances.ts'

/** All background work of this process. It counts the runs. */
export const backgroundWork = new Instances<Repeating>()

/**
 * Background work that is repeated until it is stopped. One run at a time: the next run begins when
 * the pause after the last one is over, or earlier when it is woken. The pauses do not keep the
 * process running.
 */
export class Repeating {
  /** What it does. Metrics have it as a label. */
  readonly name: string
  readonly #work: () => Promise<number | undefined>
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> | undefined
  #isWoken = false
  #isStopped = false
  /** On the clock of `performance`. Absent while nothing runs. */
  #beganAt: number | undefined

  /**
   * @param work returns the pause until the next run, in ms; `undefined`: until {@link wake}. It
   * handles its own errors: an error that it throws is an unhandled rejection.
   */
  constructor(name: string, work: () => Promise<number | undefined>) {
    this.name = name
    this.#work = work
    backgroundWork.add(this)
  }

  /** How long the current run has taken, in ms; 0 while nothing runs. */
  get runningMs(): number {
    return this.#beganAt === undefined ? 0 : performance.now() - this.#beganAt
  }

  get isStopped(): boolean {
    return this.#isStopped
  }

  /** Plans a run, unless one is planned or under way. */
  wakeIn(ms: number): void {
    if (this.#isStopped || this.#running !== undefined) return
    this.#timer ??= setTimeout(() => this.wake(), ms).unref()
  }

  /** Runs now. If a run is under way, another one follows it at once. */
  wake(): void {
    if (this.#isStopped) return
    this.#isWoken = true
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#running ??= this.#run()
  }

  /** Begins no further run, and resolves when the one that is under way has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true
    clearTimeout(this.#timer)
    await this.#running
  }

  async #run(): Promise<void> {
    let pauseMs: number | undefined
    try {
      while (this.#isWoken && !this.#isStopped) {
        this.#isWoken = false
        backgroundWork.count(this.name)
        this.#beganAt = performance.now()
        pauseMs = await this.#work()
      }
    } finally {
      this.#running = undefined
      this.#beganAt = undefined
    }
    if (pauseMs !== undefined) this.wakeIn(pauseMs)
  }
}

/** Pauses between attempts that fail: each is twice as long as the last, in ms. */
export class BackOff {
  readonly #firstMs: number
  readonly #mostMs: number
  #nextMs: number

  constructor(firstMs: number, mostMs: number) {
    this.#firstMs = firstMs
    this.#mostMs = mostMs
    this.#nextMs = firstMs
  }

  /** The next pause, up to a quarter longer, so that replicas do not act in step. */
  next(): number {
    const ms = this.#nextMs
    this.#nextMs = Math.min(ms * 2, this.#mostMs)
    return ms * (1 + Math.random() / 4)
  }

  /** An attempt has succeeded. */
  reset(): void {
    this.#nextMs = this.#firstMs
  }
}

/** The longest time that a server may ask to wait, in ms. */
const longestMs = 10 * 60 * 1000

/**
 * How long a server asks to wait (RFC 9110 §10.2.3), in ms, at most ten minutes.
 * @param date its clock, the field `Date`. Without it, a date in `field` counts as no wish.
 */
export function retryAfterMs(field: unknown, date?: unknown): number | undefined {
  if (typeof field !== 'string') return undefined
  if (/^\d{1,9}$/.test(field)) return Math.min(Number(field) * 1000, longestMs)
  return waitUntil(Date.parse(field), date)
}

/**
 * The wait until a time by the clock of a server, in ms since the epoch: see {@link retryAfterMs}.
 */
export function waitUntil(time: number, date: unknown): number | undefined {
  const ms = time - (typeof date === 'string' ? Date.parse(date) : NaN)
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 0), longestMs) : undefined
}

/** Asks a client to wait, in whole seconds: a client that came too early would be refused again. */
export function retryAfter(waitMs: number): { readonly 'Retry-After': string } {
  return { 'Retry-After': String(Math.max(1, Math.ceil(waitMs / 1000))) }
}
