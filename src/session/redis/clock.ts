import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../observe/log.ts'
import type { StoreTime } from '../store.ts'

/**
 * A sample of the time in Redis is good for this long, in ms. Clocks do not drift apart in such a
 * time.
 */
const sampleLasts = 5_000

/** A sample is used again when Redis took no longer to answer, in ms. Others are too vague. */
const preciseMs = 100

/** A difference of clocks that is logged, in ms. */
const noticeableMs = 1_000

/**
 * The time of Redis as this process knows it. Measured with each beat, so that a sign-in does not
 * have to ask.
 */
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
   * Takes note of the time in Redis, in ms since the epoch; `sentAt` is when it was asked for, on
   * the clock of `performance`.
   */
  take(time: number, sentAt: number): void {
    const receivedAt = performance.now()
    if (receivedAt - sentAt <= preciseMs) this.#sample = { time, sentAt, receivedAt }
    const now = this.#clock.now()
    // Redis read its clock at some time between the request and the response.
    this.#compare(Math.max(0, time - now, now - time - (receivedAt - sentAt)), now > time)
  }

  /** `undefined`: Redis has to be asked. */
  get time(): StoreTime | undefined {
    const { time, sentAt, receivedAt } = this.#sample
    const now = performance.now()
    if (now - sentAt > sampleLasts) return undefined
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
        hint: `The clock of this machine is ${isAhead ? 'ahead of' : 'behind'} the clock of Redis. Keep all clocks by NTP.`,
      })
    else this.#log.info('store.clock_agrees', { store: this.#address })
  }
}
