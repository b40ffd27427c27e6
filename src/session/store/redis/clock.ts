import type { Clock } from '../../../core/clock.ts'
import type { Log } from '../../../observe/log.ts'
import type { StoreTime } from '../store.ts'

/** How long a sample of the time in Redis is used, in ms: the clocks drift little in this time. */
const sampleLastsMs = 5_000

/** A sample whose reply took longer than this, in ms, is too imprecise and is dropped. */
const preciseMs = 100

/** The smallest difference between the clocks that is logged, in ms. */
const noticeableMs = 1_000

/** The time of Redis as this process knows it by each beat, so a sign-in need not query it. */
export class RedisClock {
  readonly #address: string
  readonly #clock: Clock
  readonly #log: Log
  #sample = { time: 0, sentAt: -Infinity, receivedAt: -Infinity }
  #isOff = false

  constructor(address: string, clock: Clock, log: Log) {
    this.#address = address
    this.#clock = clock
    this.#log = log
  }

  /**
   * Takes a sample: the time in Redis in ms since the epoch, and when it was asked, by
   * `performance`.
   */
  take(time: number, sentAt: number): void {
    const receivedAt = performance.now()
    if (receivedAt - sentAt <= preciseMs) this.#sample = { time, sentAt, receivedAt }
    const now = this.#clock.now()
    // Redis read its clock at some time between the request and the response.
    this.#compare(Math.max(0, time - now, now - time - (receivedAt - sentAt)), now > time)
  }

  /** `undefined` when there is no recent sample, so that Redis must be queried. */
  get time(): StoreTime | undefined {
    const { time, sentAt, receivedAt } = this.#sample
    const now = performance.now()
    if (now - sentAt > sampleLastsMs) return undefined
    return { earliest: Math.floor(time + now - receivedAt), latest: Math.ceil(time + now - sentAt) }
  }

  #compare(differenceMs: number, isAhead: boolean): void {
    const isOff = differenceMs >= noticeableMs
    if (isOff === this.#isOff) return
    this.#isOff = isOff
    if (isOff)
      this.#log.warn('store.clock_differs', {
        store: this.#address,
        seconds: Math.round(differenceMs / 100) / 10,
        hint: `The clock of this machine is ${isAhead ? 'ahead of' : 'behind'} the clock of Redis. Synchronize all clocks by NTP.`,
      })
    else this.#log.info('store.clock_agrees', { store: this.#address })
  }
}
