import { BoundedMap } from '../../../core/bounded-map.ts'
import { objectIn } from '../../../core/json.ts'
import type { SessionKey, SidTag, SubTag } from '../../../core/names.ts'
import { randomToken } from '../../../core/random.ts'
import type { Log } from '../../../observe/log.ts'
import type { Confirmation, EndingReach } from '../../../observe/processes.ts'
import type { StoreNotice, Tombstone } from '../store.ts'

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

/** A message on the notices channel. Newer versions may send what this version does not know. */
export interface NoticeMessage {
  readonly from: string
  /** Present when the receivers are to confirm. */
  readonly id: string | undefined
  /** Whether the sender understands confirmations with a name. Earlier versions do not. */
  readonly wantsName: boolean
  readonly notice: StoreNotice | undefined
  /** A newer version has sent a notice of a kind that this version does not know. */
  readonly isNewer: boolean
  readonly tombstone: Tombstone | undefined
}

/** The messages of one process, named `from`. */
export class NoticeMessages {
  readonly #from: string

  constructor(from: string) {
    this.#from = from
  }

  changed(key: SessionKey): string {
    return this.#text({ kind: 'changed', key })
  }

  /** With an `id`, each receiver confirms that it has dropped the sessions. */
  ended(keys: readonly SessionKey[], id?: string): string {
    return this.#text({ kind: 'ended', id, named: id !== undefined, keys })
  }

  /** A tombstone was raised. */
  raised(tombstone: Tombstone): string {
    return this.#text({ kind: 'ended', keys: [], tombstone })
  }

  /** An earlier notice could not be sent, so the receivers must drop all copies. */
  get missed(): string {
    return this.#text({ kind: 'anything' })
  }

  #text(message: object): string {
    return JSON.stringify({ from: this.#from, ...message })
  }
}

/** The confirmation of a notice, with the name of the process if the sender wants it. */
export function confirmationMessage(id: string, name: string | undefined): string {
  return name === undefined ? id : `${id} ${name}`
}

/** Reads a confirmation: the id of the notice, and the name of the process if it has one. */
export function confirmationIn(text: string): [id: string, name?: string] {
  const space = text.indexOf(' ')
  return space === -1 ? [text] : [text.slice(0, space), text.slice(space + 1)]
}

/** @returns `undefined` when the text is no message */
export function parseMessage(text: string): NoticeMessage | undefined {
  const { from, id, named, kind, key, keys, tombstone } = objectIn(text) ?? {}
  if (typeof from !== 'string') return undefined
  return {
    from,
    id: typeof id === 'string' ? id : undefined,
    wantsName: named === true,
    notice: noticeOf(kind, key, keys),
    isNewer: !kinds.has(kind),
    tombstone: tombstoneOf(tombstone),
  }
}

const kinds: ReadonlySet<unknown> = new Set(['changed', 'ended', 'anything'])

function noticeOf(kind: unknown, key: unknown, keys: unknown): StoreNotice | undefined {
  if (kind === 'changed' && typeof key === 'string') return { kind, key: key as SessionKey }
  if (kind === 'ended' && Array.isArray(keys)) return { kind, keys: keys as SessionKey[] }
  return undefined
}

function tombstoneOf(value: unknown): Tombstone | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { tag, at, ttl, issued_at } = value as Record<string, unknown>
  if (typeof tag !== 'string' || typeof at !== 'number' || typeof ttl !== 'number') return undefined
  return { tag: tag as SidTag | SubTag, at, ttl, ...(typeof issued_at === 'number' && { issued_at }) }
}
