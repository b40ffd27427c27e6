import { BoundedMap } from '../../../core/bounded-map.ts'
import { randomToken } from '../../../core/random.ts'
import type { Log } from '../../../observe/log.ts'
import type { Confirmation, EndingReach } from '../../../observe/processes.ts'

/**
 * How long an ending waits for confirmations, in ms. A process that hangs cannot confirm, and may
 * serve its copy until its last proof expires: see `RedisNotices`.
 */
const confirmationTimeoutMs = 250

/** How many endings that were not confirmed in time still take late confirmations. */
const maxLate = 100
const maxNames = 200
/** A process without confirmations for this time, in ms, has probably ended. */
const namesLastMs = 60 * 60 * 1000
/** The longest name of a process, in characters. */
const longestName = 100
/** A process whose version does not send its name. */
const unnamed = 'unnamed process'

class Expected {
  readonly sentAt = performance.now()
  readonly confirmed: Confirmation[] = []
  /** How many processes received the notice. A confirmation may arrive before this is known. */
  receivers = Infinity
  /** The names of those that had not confirmed in time. */
  late: readonly string[] = []
  resolve = () => {}
  readonly settled = new Promise<void>((settle) => (this.resolve = settle))

  get missing(): number {
    return Math.max(0, this.receivers - this.confirmed.length)
  }

  get absent(): readonly string[] {
    return this.late.filter((name) => !this.confirmed.some(({ process }) => process === name))
  }
}

/** Waits until every process that received a notice has confirmed it. */
export class Confirmations {
  readonly #log: Log
  readonly #expected = new Map<string, Expected>()
  readonly #late = new BoundedMap<string, Expected>('late_confirmations', maxLate)
  readonly #names = new BoundedMap<string, true>('process_names', maxNames, { lifetimeMs: namesLastMs })

  constructor(log: Log) {
    this.#log = log
  }

  /**
   * Sends a notice under a new id. `send` returns how many processes received it.
   * @returns a promise that resolves when all of them have confirmed, or after the timeout
   */
  async collect(send: (id: string) => Promise<number>): Promise<{ readonly confirmed: Promise<EndingReach> }> {
    const id = randomToken(9)
    const expected = new Expected()
    this.#expected.set(id, expected)
    try {
      expected.receivers = await send(id)
    } catch (error) {
      this.#expected.delete(id)
      throw error
    }
    // In an object, because an async function would wait for a promise that it returns.
    return { confirmed: this.#wait(id, expected) }
  }

  /** A process has confirmed the notice with this id. Earlier versions send no name. */
  confirm(id: string, name?: string): void {
    const expected = this.#expected.get(id) ?? this.#late.get(id)
    if (expected === undefined) return
    const process = name?.slice(0, longestName) ?? `${unnamed} ${expected.confirmed.length + 1}`
    if (name !== undefined) this.#names.set(process, true)
    expected.confirmed.push({ process, ms: performance.now() - expected.sentAt })
    if (expected.missing === 0) {
      expected.resolve()
      this.#late.delete(id)
    }
  }

  close(): void {
    for (const { resolve } of this.#expected.values()) resolve()
  }

  async #wait(id: string, expected: Expected): Promise<EndingReach> {
    if (expected.missing > 0) {
      const late = setTimeout(() => {
        const { confirmed, receivers, resolve } = expected
        this.#log.warn('store.endings_not_confirmed', { confirmed: confirmed.length, told: receivers })
        this.#expectLate(id, expected)
        resolve()
      }, confirmationTimeoutMs)
      await expected.settled
      clearTimeout(late)
    }
    this.#expected.delete(id)
    return expected
  }

  /** Redis does not say which processes received a notice. Earlier confirmations may show it. */
  #expectLate(id: string, expected: Expected): void {
    const silent = [...this.#names.keys()].filter((name) => !expected.confirmed.some(({ process }) => process === name))
    if (silent.length === expected.missing) expected.late = silent
    this.#late.set(id, expected)
  }
}
