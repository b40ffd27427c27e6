import { randomToken } from '../../core/random.ts'
import type { Log } from '../../observe/log.ts'

/**
 * How long an ending waits for the confirmations of other processes, in ms. A process that hangs
 * cannot confirm. It may serve its copy until its last proof expires: see `RedisNotices`.
 */
const confirmationTimeout = 250

interface Expected {
  confirmed: number
  /** How many processes received the notice. A confirmation may arrive before this is known. */
  receivers: number
  readonly resolve: () => void
}

/** Waits until every process that received a notice has confirmed it. */
export class Confirmations {
  readonly #log: Log
  readonly #expected = new Map<string, Expected>()

  constructor(log: Log) {
    this.#log = log
  }

  /**
   * Announces a notice under a new id. `announce` returns how many processes received it.
   * @returns a promise that resolves when all of them have confirmed, or after the timeout
   * @throws the error of `announce`
   */
  async collect(announce: (id: string) => Promise<number>): Promise<{ readonly confirmed: Promise<void> }> {
    const id = randomToken(9)
    // Node.js 20 has no Promise.withResolvers.
    let resolve = () => {}
    const promise = new Promise<void>((settle) => (resolve = settle))
    const expected: Expected = { confirmed: 0, receivers: Infinity, resolve }
    this.#expected.set(id, expected)
    try {
      expected.receivers = await announce(id)
    } catch (error) {
      this.#expected.delete(id)
      throw error
    }
    // In an object, because an async function would wait for a promise that it returns.
    return { confirmed: this.#wait(id, expected, promise) }
  }

  /** A process has confirmed the notice with this id. */
  confirm(id: string): void {
    const expected = this.#expected.get(id)
    if (expected === undefined) return
    expected.confirmed += 1
    if (expected.confirmed >= expected.receivers) expected.resolve()
  }

  /** Stops waiting. */
  close(): void {
    for (const { resolve } of this.#expected.values()) resolve()
  }

  async #wait(id: string, expected: Expected, promise: Promise<void>): Promise<void> {
    if (expected.confirmed < expected.receivers) {
      const late = setTimeout(() => {
        const { confirmed, receivers, resolve } = expected
        this.#log.warn('store.endings_not_confirmed', { confirmed, told: receivers })
        resolve()
      }, confirmationTimeout)
      await promise
      clearTimeout(late)
    }
    this.#expected.delete(id)
  }
}
