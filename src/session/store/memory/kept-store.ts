import type { KeptKey, SubTag } from '../../../core/names.ts'
import { keptBounds, personOf, type KeptHead, type KeptStore } from '../store.ts'

const { maxBytes, personBytes, entryBytes } = keptBounds

interface KeptEntry {
  state: 'arriving' | KeptHead['state']
  head: Uint8Array
  parts: Uint8Array[]
  bytes: number
  /** On the clock of the caller. */
  expires_at: number
}

/** Kept requests in the memory of this process. See {@link KeptStore}. */
export class MemoryKeptStore implements KeptStore {
  readonly #now: () => number
  readonly #people = new Map<SubTag, Map<KeptKey, KeptEntry>>()
  #bytes = 0

  /** @param now a clock in ms that never goes back */
  constructor(now: () => number) {
    this.#now = now
  }

  get size(): number {
    return [...this.#people.values()].reduce((sum, entries) => sum + entries.size, 0)
  }

  async begin(key: KeptKey, max: number, ttl: number): Promise<'begun' | 'too_many' | 'full'> {
    const now = this.#now()
    const person = personOf(key)
    const entries = this.#people.get(person) ?? new Map<KeptKey, KeptEntry>()
    for (const [each, { expires_at }] of entries) if (expires_at <= now) this.#delete(each)
    if ([...entries.values()].filter(({ state }) => state !== 'sent').length >= max) return 'too_many'
    // Without this bound, one person could fill the memory with requests that were sent.
    const sent = [...entries].filter(([, { state }]) => state === 'sent')
    for (const [each] of sent.slice(0, Math.max(0, sent.length - max))) this.#delete(each)
    if (this.#bytes + entryBytes > maxBytes) return 'full'
    this.#people.set(person, entries)
    entries.set(key, { state: 'arriving', head: nothing, parts: [], bytes: entryBytes, expires_at: now + ttl })
    this.#bytes += entryBytes
    return 'begun'
  }

  async append(key: KeptKey, part: Uint8Array, ttl: number): Promise<boolean> {
    const entry = this.#find(key, 'arriving')
    if (entry === undefined || this.#bytes + part.length > maxBytes) return false
    if (this.#bytesOf(personOf(key)) + part.length > personBytes) return false
    entry.parts.push(part)
    entry.expires_at = this.#now() + ttl
    entry.bytes += part.length
    this.#bytes += part.length
    return true
  }

  async complete(key: KeptKey, head: Uint8Array, ttl: number): Promise<boolean> {
    const entry = this.#find(key, 'arriving')
    if (entry === undefined) return false
    Object.assign(entry, { state: 'kept', head, expires_at: this.#now() + ttl })
    return true
  }

  async read(key: KeptKey): Promise<KeptHead | undefined> {
    const entry = this.#find(key)
    return entry === undefined || entry.state === 'arriving' ? undefined : { head: entry.head, state: entry.state }
  }

  async take(key: KeptKey): Promise<readonly Uint8Array[] | undefined> {
    const entry = this.#find(key, 'kept')
    if (entry === undefined) return undefined
    entry.state = 'sending'
    return entry.parts
  }

  async giveBack(key: KeptKey): Promise<void> {
    const entry = this.#find(key, 'sending')
    if (entry !== undefined) entry.state = 'kept'
  }

  async finish(key: KeptKey): Promise<void> {
    const entry = this.#find(key, 'sending')
    if (entry === undefined) return
    this.#bytes -= entry.bytes - entryBytes
    Object.assign(entry, { state: 'sent', parts: [], bytes: entryBytes })
  }

  async drop(key: KeptKey): Promise<boolean> {
    const entry = this.#find(key)
    if (entry?.state !== 'arriving' && entry?.state !== 'kept') return false
    this.#delete(key)
    return true
  }

  sweep(now: number): void {
    for (const entries of this.#people.values())
      for (const [key, { expires_at }] of entries) if (expires_at <= now) this.#delete(key)
  }

  #bytesOf(person: SubTag): number {
    return [...(this.#people.get(person)?.values() ?? [])].reduce((sum, { bytes }) => sum + bytes, 0)
  }

  #find(key: KeptKey, state?: KeptEntry['state']): KeptEntry | undefined {
    const entry = this.#people.get(personOf(key))?.get(key)
    if (entry === undefined || (state !== undefined && entry.state !== state)) return undefined
    if (entry.expires_at > this.#now()) return entry
    this.#delete(key)
    return undefined
  }

  #delete(key: KeptKey): void {
    const person = personOf(key)
    const entries = this.#people.get(person)
    this.#bytes -= entries?.get(key)?.bytes ?? 0
    if (entries?.delete(key) === true && entries.size === 0) this.#people.delete(person)
  }
}

const nothing = new Uint8Array(0)
