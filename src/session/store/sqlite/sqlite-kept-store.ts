import type { KeptKey } from '../../../core/names.ts'
import { keptBounds, type KeptHead, type KeptStore, personOf } from '../store.ts'
import type { SessionDatabase } from './database.ts'

interface KeptRow {
  readonly number: number
  readonly state: 'arriving' | KeptHead['state']
  readonly head: Uint8Array
}

/** Kept requests in SQLite. See {@link KeptStore}. */
export class SqliteKeptStore implements KeptStore {
  readonly #database: SessionDatabase
  readonly #now: () => number

  /** @param now a clock in ms that never goes back */
  constructor(database: SessionDatabase, now: () => number) {
    this.#database = database
    this.#now = now
  }

  async begin(key: KeptKey, max: number, ttl: number): Promise<'begun' | 'too_many' | 'full'> {
    const now = this.#now()
    const person = personOf(key)
    return this.#database.write('ordinary', () => {
      this.#database.change('DELETE FROM kept WHERE person = ? AND expires_at <= ?', person, now)
      const waiting = "SELECT count(*) AS count FROM kept WHERE person = ? AND state <> 'sent'"
      const { count = 0 } = this.#database.one<{ count: number }>(waiting, person) ?? {}
      if (count >= max) return 'too_many'
      // Without this bound, one person could fill the file with requests that were sent.
      this.#database.change(
        `DELETE FROM kept WHERE number IN (
          SELECT number FROM kept WHERE person = ? AND state = 'sent' ORDER BY number DESC LIMIT -1 OFFSET ?)`,
        ...[person, max],
      )
      if (this.#bytes() + keptBounds.entryBytes > keptBounds.maxBytes) return 'full'
      this.#database.change(
        "INSERT INTO kept (key, person, state, head, bytes, expires_at) VALUES (?, ?, 'arriving', x'', ?, ?)",
        ...[key, person, keptBounds.entryBytes, now + ttl],
      )
      return 'begun'
    })
  }

  async append(key: KeptKey, part: Uint8Array, ttl: number): Promise<boolean> {
    return this.#database.write('ordinary', () => {
      const row = this.#find(key, 'arriving')
      if (row === undefined || this.#bytes() + part.length > keptBounds.maxBytes) return false
      if (this.#bytes(personOf(key)) + part.length > keptBounds.personBytes) return false
      this.#database.change(
        'INSERT INTO kept_parts (kept, number, part) SELECT ?1, count(*), ?2 FROM kept_parts WHERE kept = ?1',
        ...[row.number, part],
      )
      this.#database.change(
        'UPDATE kept SET bytes = bytes + ?, expires_at = ? WHERE number = ?',
        ...[part.length, this.#now() + ttl, row.number],
      )
      return true
    })
  }

  async complete(key: KeptKey, head: Uint8Array, ttl: number): Promise<boolean> {
    return this.#database.write('durable', () => {
      const row = this.#find(key, 'arriving')
      if (row === undefined) return false
      const sql = "UPDATE kept SET state = 'kept', head = ?, expires_at = ? WHERE number = ?"
      this.#database.change(sql, head, this.#now() + ttl, row.number)
      return true
    })
  }

  async read(key: KeptKey): Promise<KeptHead | undefined> {
    const row = this.#find(key)
    return row === undefined || row.state === 'arriving' ? undefined : { head: row.head, state: row.state }
  }

  async take(key: KeptKey): Promise<readonly Uint8Array[] | undefined> {
    return this.#database.write('durable', () => {
      const row = this.#move(key, 'kept', 'sending')
      const parts = 'SELECT part FROM kept_parts WHERE kept = ? ORDER BY number'
      return row && this.#database.all<{ readonly part: Uint8Array }>(parts, row.number).map(({ part }) => part)
    })
  }

  async giveBack(key: KeptKey): Promise<void> {
    this.#database.write('durable', () => this.#move(key, 'sending', 'kept'))
  }

  async finish(key: KeptKey): Promise<void> {
    this.#database.write('durable', () => {
      const row = this.#move(key, 'sending', 'sent')
      if (row === undefined) return
      this.#database.change('DELETE FROM kept_parts WHERE kept = ?', row.number)
      this.#database.change('UPDATE kept SET bytes = ? WHERE number = ?', keptBounds.entryBytes, row.number)
    })
  }

  async drop(key: KeptKey): Promise<boolean> {
    return this.#database.write('durable', () => {
      const row = this.#find(key)
      if (row?.state !== 'arriving' && row?.state !== 'kept') return false
      return this.#database.change('DELETE FROM kept WHERE number = ?', row.number) > 0
    })
  }

  /** How much the requests of all people take, or those of one, in bytes. */
  #bytes(person?: string): number {
    const sql = 'SELECT coalesce(sum(bytes), 0) AS bytes FROM kept'
    type Sum = { readonly bytes: number }
    const sum =
      person === undefined ? this.#database.one<Sum>(sql) : this.#database.one<Sum>(`${sql} WHERE person = ?`, person)
    return sum?.bytes ?? 0
  }

  #move(key: KeptKey, from: KeptRow['state'], to: KeptRow['state']): KeptRow | undefined {
    const row = this.#find(key, from)
    if (row !== undefined) this.#database.change('UPDATE kept SET state = ? WHERE number = ?', to, row.number)
    return row
  }

  #find(key: KeptKey, state?: KeptRow['state']): KeptRow | undefined {
    const sql = 'SELECT number, state, head FROM kept WHERE key = ? AND expires_at > ?'
    const row = this.#database.one<KeptRow>(sql, key, this.#now())
    return state === undefined || row?.state === state ? row : undefined
  }
}
