import { steadyClock, type Clock } from '../../../core/clock.ts'
import type { SessionKey, SidTag, SubTag } from '../../../core/names.ts'
import type { Log } from '../../../observe/log.ts'
import { tagOf } from '../../record/record.ts'
import {
  type EndedSession,
  jobOutlivesSessionMs,
  type LogoutOrder,
  type NewSession,
  type SealedDocument,
  type SealedSession,
  type SessionStore,
  type StoreNotice,
  type StoreTime,
} from '../store.ts'
import { SessionDatabase } from './database.ts'
import { SqliteKeptStore } from './sqlite-kept-store.ts'
import { SqliteLogoutJobs } from './sqlite-logout-jobs.ts'

/** How often expired rows are deleted, in ms. Until then, reads ignore them. */
const sweepIntervalMs = 1_000
/** The pause before the next part of many expired rows is deleted, in ms. */
const sweepPauseMs = 20
/** How many keys {@link SqliteStore.list} reads at once. */
const batchSize = 1_000

interface SessionRow {
  readonly number: number
  readonly key: SessionKey
  readonly sealed: Uint8Array
  readonly version: number
  readonly run: number
  readonly begun_at: number
  readonly expires_at: number
  readonly absolute_expires_at: number
}

export interface SqliteStoreParts {
  /** The file that keeps sessions over restarts. Absent: they are in the memory of the process. */
  readonly file?: string
  /** The largest number of sessions, and of other entries of a kind. Absent: any number. */
  readonly maxSessions?: number
  readonly clock: Clock
  readonly log: Log
}

/**
 * A session store in SQLite, for one process. All calls are carried out at once, in this thread: a
 * call returns when the disk has its write.
 */
export class SqliteStore implements SessionStore {
  readonly jobs: SqliteLogoutJobs
  readonly kept: SqliteKeptStore
  readonly #clock: Clock
  readonly #database: SessionDatabase
  /** Continues after a restart. It does not go back while the process runs. */
  readonly #now: () => number
  #sweeping: NodeJS.Timeout

  /** @throws {OperatorError} when the file cannot be used: see {@link SessionDatabase} */
  constructor({ file, maxSessions, clock, log }: SqliteStoreParts) {
    this.#clock = clock
    const steady = steadyClock(clock)
    const openedAt = clock.now()
    this.#now = () => openedAt + steady.now()
    this.#database = new SessionDatabase(file, log, maxSessions)
    if (this.#database.hasLostEndings)
      log.warn('store.older_copy', {
        file,
        reason: 'the file is older than the endings that were carried out, or the file with their number is missing',
        hint: 'Each session is confirmed at the provider before it is served.',
      })
    this.jobs = new SqliteLogoutJobs(this.#database, this.#now)
    this.kept = new SqliteKeptStore(this.#database, this.#now)
    // Leases of a process that ended without releasing them.
    this.#database.write('ordinary', () => this.#database.change("DELETE FROM marks WHERE owner <> ''"))
    this.#sweeping = setTimeout(() => this.#sweep(log), sweepIntervalMs).unref()
  }

  /** No other process uses the store, so there are no notices to wait for. */
  onNotice(_listener: (notice: StoreNotice) => void): () => void {
    return () => {}
  }

  staleForMs(): number {
    return -Infinity
  }

  async time(): Promise<StoreTime> {
    const now = this.#now()
    return { earliest: now, latest: now }
  }

  async create(session: NewSession): Promise<'created' | 'ended'> {
    const now = this.#now()
    const { key, subTag, sealed, begun_at, idle_timeout } = session
    const tag = tagOf(key)
    const absolute_expires_at = now + session.absolute_expires_at - this.#clock.now()
    return this.#database.write('durable', () => {
      const ended = this.#database.one(
        'SELECT 1 FROM tombstones WHERE tag IN (?, ?) AND expires_at > ? AND at >= ?',
        ...[tag, subTag, now, begun_at],
      )
      if (ended !== undefined) return 'ended'
      this.#database.insert(
        'sessions',
        `INSERT INTO sessions (key, sid_tag, sub_tag, sealed, version, run, begun_at, expires_at, absolute_expires_at)
          VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?)`,
        ...[key, tag, subTag, sealed, this.#database.run, begun_at],
        ...[Math.min(now + idle_timeout, absolute_expires_at), absolute_expires_at],
      )
      return 'created'
    })
  }

  async read(key: SessionKey): Promise<SealedSession | undefined> {
    const now = this.#now()
    const row = this.#row(key, now)
    if (row === undefined) return undefined
    const { sealed, version, run, begun_at, expires_at } = row
    const isDoubtful = this.#database.isDoubtful(run)
    return { sealed, version, begun_at, expiresIn: expires_at - now, ...(isDoubtful && { isDoubtful }) }
  }

  async replace(
    key: SessionKey,
    sealed: Uint8Array,
    version: number,
    job?: Uint8Array | 'none',
    _isQuiet?: boolean,
    staysDoubtful = false,
  ): Promise<'replaced' | 'conflict' | 'gone'> {
    return this.#database.write('durable', () => {
      const row = this.#row(key, this.#now())
      if (row === undefined) return 'gone'
      if (row.version !== version) return 'conflict'
      this.#database.change(
        'UPDATE sessions SET sealed = ?, version = version + 1, run = ? WHERE number = ?',
        ...[sealed, staysDoubtful ? row.run : this.#database.run, row.number],
      )
      if (job !== undefined) this.jobs.set(key, job, row.absolute_expires_at + jobOutlivesSessionMs)
      return 'replaced'
    })
  }

  async touch(key: SessionKey, idle_timeout: number): Promise<boolean> {
    const now = this.#now()
    const moved = this.#database.write('ordinary', () =>
      this.#database.change(
        'UPDATE sessions SET expires_at = min(?, absolute_expires_at) WHERE key = ? AND expires_at > ?',
        ...[now + idle_timeout, key, now],
      ),
    )
    return moved > 0
  }

  async expiresIn(key: SessionKey): Promise<number | undefined> {
    const now = this.#now()
    const row = this.#row(key, now)
    return row && row.expires_at - now
  }

  async endOne(key: SessionKey): Promise<readonly EndedSession[]> {
    return this.#database.ending(() => this.#end('key', key))
  }

  async endSid(tag: SidTag, order: LogoutOrder): Promise<readonly EndedSession[] | 'replayed'> {
    return this.#endTagged('sid_tag', tag, order)
  }

  async endSub(tag: SubTag, order: LogoutOrder): Promise<readonly EndedSession[] | 'replayed'> {
    return this.#endTagged('sub_tag', tag, order)
  }

  async *list(): AsyncIterable<readonly SessionKey[]> {
    for (let before = Number.MAX_SAFE_INTEGER; ;) {
      const rows = this.#database.all<SessionRow>(
        'SELECT number, key FROM sessions WHERE number < ? AND expires_at > ? ORDER BY number DESC LIMIT ?',
        ...[before, this.#now(), batchSize],
      )
      const last = rows.at(-1)
      if (last === undefined) return
      yield rows.map(({ key }) => key)
      before = last.number
    }
  }

  async listSid(tag: SidTag): Promise<readonly SessionKey[]> {
    return this.#listTagged('sid_tag', tag)
  }

  async listSub(tag: SubTag): Promise<readonly SessionKey[]> {
    return this.#listTagged('sub_tag', tag)
  }

  async takeOnce(name: string, ttl: number): Promise<boolean> {
    return this.#mark('durable', `once:${name}`, '', ttl)
  }

  async isMarked(name: string): Promise<boolean> {
    const sql = 'SELECT 1 FROM marks WHERE name = ? AND expires_at > ?'
    return this.#database.one(sql, `once:${name}`, this.#now()) !== undefined
  }

  async acquireLease(key: SessionKey, owner: string, ttl: number): Promise<boolean> {
    return this.#mark('ordinary', `lease:${key}`, owner, ttl)
  }

  async renewLease(key: SessionKey, owner: string, ttl: number): Promise<boolean> {
    const now = this.#now()
    const sql = 'UPDATE marks SET expires_at = ? WHERE name = ? AND owner = ? AND expires_at > ?'
    return this.#database.write('ordinary', () => this.#database.change(sql, now + ttl, `lease:${key}`, owner, now)) > 0
  }

  async releaseLease(key: SessionKey, owner: string): Promise<void> {
    const sql = 'DELETE FROM marks WHERE name = ? AND owner = ?'
    this.#database.write('ordinary', () => this.#database.change(sql, `lease:${key}`, owner))
  }

  async readDocument(name: string): Promise<SealedDocument | undefined> {
    const sql = 'SELECT sealed, version FROM documents WHERE name = ? AND expires_at > ?'
    return this.#database.one<SealedDocument>(sql, name, this.#now())
  }

  async writeDocument(name: string, { sealed, version }: SealedDocument, ttl: number): Promise<boolean> {
    const now = this.#now()
    return this.#database.write('durable', () => {
      const sql = 'SELECT version FROM documents WHERE name = ? AND expires_at > ?'
      const stored = this.#database.one<SealedDocument>(sql, name, now)
      if ((stored?.version ?? 0) !== version) return false
      this.#database.insert(
        'documents',
        'INSERT OR REPLACE INTO documents (name, sealed, version, expires_at) VALUES (?, ?, ?, ?)',
        ...[name, sealed, version + 1, now + ttl],
      )
      return true
    })
  }

  async ping(): Promise<void> {
    this.#database.one('SELECT 1')
  }

  async close(): Promise<void> {
    clearTimeout(this.#sweeping)
    this.#database.close()
  }

  /** The number of entries of all kinds, for tests. */
  size(): number {
    return this.#database.size()
  }

  #row(key: SessionKey, now: number): SessionRow | undefined {
    return this.#database.one<SessionRow>('SELECT * FROM sessions WHERE key = ? AND expires_at > ?', key, now)
  }

  #listTagged(column: 'sid_tag' | 'sub_tag', tag: string): readonly SessionKey[] {
    const sql = `SELECT key FROM sessions WHERE ${column} = ? AND expires_at > ? ORDER BY number DESC`
    return this.#database.all<SessionRow>(sql, tag, this.#now()).map(({ key }) => key)
  }

  #endTagged(
    column: 'sid_tag' | 'sub_tag',
    tag: SidTag | SubTag,
    { jti, jti_ttl, at, ttl, begun_until }: LogoutOrder,
  ): readonly EndedSession[] | 'replayed' {
    const now = this.#now()
    return this.#database.ending(() => {
      if (!this.#setMark(`jti:${tag}:${jti}`, '', jti_ttl)) return 'replayed'
      this.#database.insert(
        'tombstones',
        `INSERT INTO tombstones (tag, at, expires_at) VALUES (?1, ?2, ?3)
          ON CONFLICT (tag) DO UPDATE SET
            at = iif(expires_at > ?4, max(at, ?2), ?2), expires_at = max(expires_at, ?3)`,
        ...[tag, at, now + ttl, now],
      )
      return this.#end(column, tag, begun_until)
    })
  }

  #end(
    column: 'key' | 'sid_tag' | 'sub_tag',
    value: string,
    begun_until: number = Number.MAX_VALUE,
  ): readonly EndedSession[] {
    const where = `FROM sessions WHERE ${column} = ? AND expires_at > ? AND begun_at <= ?`
    const values = [value, this.#now(), begun_until] as const
    const rows = this.#database.all<SessionRow>(`SELECT key, sealed ${where} ORDER BY number`, ...values)
    this.#database.change(`DELETE FROM marks WHERE name IN (SELECT 'lease:' || key ${where})`, ...values)
    this.#database.change(`DELETE ${where}`, ...values)
    return rows.map(({ key, sealed }) => ({ key, sealed }))
  }

  #mark(durability: 'durable' | 'ordinary', name: string, owner: string, ttl: number): boolean {
    return this.#database.write(durability, () => this.#setMark(name, owner, ttl))
  }

  #setMark(name: string, owner: string, ttl: number): boolean {
    const now = this.#now()
    const set = this.#database.insert(
      'marks',
      `INSERT INTO marks (name, owner, expires_at) VALUES (?1, ?2, ?3)
        ON CONFLICT (name) DO UPDATE SET owner = ?2, expires_at = ?3 WHERE expires_at <= ?4`,
      ...[name, owner, now + ttl, now],
    )
    return set > 0
  }

  #sweep(log: Log): void {
    let areLeft = false
    try {
      areLeft = this.#database.sweep(this.#now())
    } catch (error) {
      log.debug('store.sweep_failed', { reason: String(error) })
    }
    this.#sweeping = setTimeout(() => this.#sweep(log), areLeft ? sweepPauseMs : sweepIntervalMs).unref()
  }
}
