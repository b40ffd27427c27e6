import { closeSync, constants, existsSync, openSync, readSync, writeSync } from 'node:fs'
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import { GatewayError, OperatorError, reason } from '../../../core/errors.ts'

/** The format of the tables. A version that changes them increments it. */
const format = 1

const tables = `
  CREATE TABLE facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE sessions (
    number INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, sid_tag TEXT NOT NULL, sub_tag TEXT NOT NULL,
    sealed BLOB NOT NULL, version INTEGER NOT NULL, run INTEGER NOT NULL,
    expires_at REAL NOT NULL, absolute_expires_at REAL NOT NULL) STRICT;
  CREATE INDEX sessions_of_sid ON sessions (sid_tag);
  CREATE INDEX sessions_of_sub ON sessions (sub_tag);
  CREATE INDEX sessions_by_expiry ON sessions (expires_at);
  CREATE TABLE tombstones (tag TEXT PRIMARY KEY, at REAL NOT NULL, expires_at REAL NOT NULL) STRICT;
  CREATE TABLE marks (name TEXT PRIMARY KEY, owner TEXT NOT NULL, expires_at REAL NOT NULL) STRICT;
  CREATE INDEX marks_by_expiry ON marks (expires_at);
  CREATE TABLE documents (
    name TEXT PRIMARY KEY, sealed BLOB NOT NULL, version INTEGER NOT NULL, expires_at REAL NOT NULL) STRICT;
  CREATE TABLE jobs (
    key TEXT PRIMARY KEY, sealed BLOB NOT NULL, attempts INTEGER NOT NULL, not_before REAL NOT NULL,
    expires_at REAL NOT NULL) STRICT;
  CREATE TABLE watched_jobs (
    key TEXT PRIMARY KEY, audience TEXT NOT NULL, until REAL NOT NULL, expires_at REAL NOT NULL) STRICT;
  CREATE INDEX watched_jobs_by_time ON watched_jobs (audience, until);
  CREATE TABLE kept (
    number INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, person TEXT NOT NULL, state TEXT NOT NULL,
    head BLOB NOT NULL, bytes INTEGER NOT NULL, expires_at REAL NOT NULL) STRICT;
  CREATE INDEX kept_of_person ON kept (person);
  CREATE TABLE kept_parts (
    kept INTEGER NOT NULL REFERENCES kept (number) ON DELETE CASCADE, number INTEGER NOT NULL, part BLOB NOT NULL,
    PRIMARY KEY (kept, number)) STRICT, WITHOUT ROWID;
  PRAGMA user_version = ${format};
`

/** The tables whose rows expire. */
const expiring = ['sessions', 'tombstones', 'marks', 'documents', 'jobs', 'watched_jobs', 'kept'] as const

/** How long a start waits for the process that has the file open, in ms. */
const lockTimeoutMs = 2_000
/** What a write needs of the disk. */
export type Durability =
  /** The write is on the disk when the method returns, also when the power fails. */
  | 'durable'
  /** The write survives the death of the process. A power failure may undo it. */
  | 'ordinary'

/**
 * A file of SQLite that one process has open, in WAL mode. Another process that opens it fails, so
 * no two processes can end and change the same sessions without each other's knowledge.
 *
 * A copy of the file that is put in its place may be older than endings that were acknowledged. A
 * second file, with the suffix `-endings`, holds how many endings there were. When it holds more
 * than the first file does, endings were lost, and all sessions that were written before are
 * doubtful.
 */
export class SessionDatabase {
  readonly #path: string
  readonly #database: DatabaseSync
  readonly #statements = new Map<string, StatementSync>()
  /** The descriptor of the file with the number of endings. */
  readonly #endings: number
  #isDurable = true
  /** How often the file was opened before. Sessions name the run in which they were written. */
  readonly run: number
  readonly #doubtedBefore: number

  /** @throws {OperatorError} when the file cannot be used */
  constructor(path: string) {
    this.#path = path
    const isNew = !existsSync(path)
    try {
      // SQLite would create the file with the permissions of the umask.
      closeSync(openSync(path, 'a', 0o600))
      this.#database = open(path)
    } catch (error) {
      throw cannotOpen(path, error)
    }
    try {
      this.#endings = openSync(`${path}-endings`, constants.O_RDWR | constants.O_CREAT, 0o600)
      const known = isNew ? 0 : readNumber(this.#endings)
      ;[this.run, this.#doubtedBefore] = this.write('durable', () => this.#beginRun(known))
      this.#writeEndings()
    } catch (error) {
      this.#database.close()
      throw cannotOpen(path, error)
    }
  }

  /** Whether the file was older than the endings that were carried out, when it was opened. */
  get hasLostEndings(): boolean {
    return this.#doubtedBefore === this.run
  }

  /** Whether endings may have been lost after a session was written in this run. */
  isDoubtful(run: number): boolean {
    return run < this.#doubtedBefore
  }

  one<Row>(sql: string, ...values: SQLInputValue[]): Row | undefined {
    return this.#attempt(() => this.#statement(sql).get(...values) as Row | undefined)
  }

  all<Row>(sql: string, ...values: SQLInputValue[]): Row[] {
    return this.#attempt(() => this.#statement(sql).all(...values) as Row[])
  }

  /** @returns how many rows have changed */
  change(sql: string, ...values: SQLInputValue[]): number {
    return this.#attempt(() => Number(this.#statement(sql).run(...values).changes))
  }

  /**
   * Carries out `work` as one transaction: all of it or, when it throws, nothing.
   * @throws {GatewayError} `ERR_STORE_UNAVAILABLE` when the disk refuses it
   */
  write<T>(durability: Durability, work: () => T): T {
    return this.#attempt(() => {
      const isDurable = durability === 'durable'
      if (isDurable !== this.#isDurable) this.#database.exec(`PRAGMA synchronous = ${isDurable ? 'FULL' : 'NORMAL'}`)
      this.#isDurable = isDurable
      this.#database.exec('BEGIN IMMEDIATE')
      try {
        const result = work()
        this.#database.exec('COMMIT')
        return result
      } catch (error) {
        // Some errors, a full disk for example, have undone the transaction already.
        if (this.#database.isTransaction) this.#database.exec('ROLLBACK')
        throw error
      }
    })
  }

  /** Counts an ending. Called inside of {@link write}; {@link noteEndings} follows after it. */
  countEnding(): void {
    this.change("UPDATE facts SET value = value + 1 WHERE name = 'endings'")
  }

  /** Writes the number of endings to the second file. Until then, a crash loses no ending. */
  noteEndings(): void {
    this.#attempt(() => this.#writeEndings())
  }

  /** Deletes what has expired at `now`. */
  sweep(now: number): void {
    const isExpired = (table: string) =>
      this.one(`SELECT 1 FROM ${table} WHERE expires_at <= ? LIMIT 1`, now) !== undefined
    const tables = expiring.filter(isExpired)
    if (tables.length === 0) return
    this.write('ordinary', () => {
      for (const table of tables) this.change(`DELETE FROM ${table} WHERE expires_at <= ?`, now)
    })
  }

  /** The number of rows of all kinds. */
  size(): number {
    const count = (table: string) => this.one<{ count: number }>(`SELECT count(*) AS count FROM ${table}`)?.count ?? 0
    return expiring.reduce((sum, table) => sum + count(table), 0)
  }

  close(): void {
    this.#database.close()
    closeSync(this.#endings)
  }

  /** Returns the number of this run, and before which run sessions are doubtful. */
  #beginRun(endingsElsewhere: number | undefined): [number, number] {
    const fact = (name: string) => this.one<{ value: number }>('SELECT value FROM facts WHERE name = ?', name)?.value
    const set = (name: string, value: number) =>
      this.change('INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)', name, value)
    const run = (fact('run') ?? 0) + 1
    const endings = fact('endings') ?? 0
    const isOlder = endingsElsewhere === undefined || endingsElsewhere > endings
    const doubtedBefore = isOlder ? run : (fact('doubted_before') ?? 0)
    set('run', run)
    set('endings', Math.max(endings, endingsElsewhere ?? 0))
    set('doubted_before', doubtedBefore)
    return [run, doubtedBefore]
  }

  #writeEndings(): void {
    const { value = 0 } = this.one<{ value: number }>("SELECT value FROM facts WHERE name = 'endings'") ?? {}
    writeSync(this.#endings, `${String(value).padStart(numberLength)}\n`, 0)
  }

  #statement(sql: string): StatementSync {
    let statement = this.#statements.get(sql)
    if (statement === undefined) {
      statement = this.#database.prepare(sql)
      this.#statements.set(sql, statement)
    }
    return statement
  }

  #attempt<T>(work: () => T): T {
    try {
      return work()
    } catch (error) {
      if (error instanceof GatewayError) throw error
      throw new GatewayError('ERR_STORE_UNAVAILABLE', `${this.#path}: ${reason(error)}`, { cause: error })
    }
  }
}

/** The digits of the number of endings in its file. */
const numberLength = 16

/** The number in a file; `undefined` when there is none. */
function readNumber(descriptor: number): number | undefined {
  const bytes = Buffer.alloc(numberLength)
  const text = bytes.toString('latin1', 0, readSync(descriptor, bytes, 0, numberLength, 0)).trim()
  return /^\d+$/.test(text) ? Number(text) : undefined
}

/** Opens the file, locks it for this process, and creates the tables of a new one. */
function open(path: string): DatabaseSync {
  // Not with `import`, because only a gateway with this store needs it: it takes memory.
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite')
  const database = new DatabaseSync(path, { timeout: lockTimeoutMs })
  try {
    // In this mode, the first access locks the file until the process ends.
    database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA foreign_keys = ON')
    database.exec('BEGIN IMMEDIATE')
    const { user_version: found } = database.prepare('PRAGMA user_version').get() as { user_version: number }
    if (found > format)
      throw new OperatorError(`it has the format ${found} of a newer version of Gatehouse; this one knows ${format}`)
    if (found === 0) database.exec(tables)
    database.exec('COMMIT')
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

/**
 * Errors of SQLite with a hint that helps more than their text (https://sqlite.org/rescode.html).
 */
const hints: Readonly<Record<number, string>> = {
  5: 'another process has it open: only one gateway can use the file, so let the other one end first, or use Redis',
  8: 'the file or its folder is read-only',
  10: 'the disk reports an error',
  11: 'the file is damaged: move it away, or put a backup in its place',
  13: 'the disk is full',
  14: 'the file or its folder cannot be written by the user of the gateway',
  26: 'the file is not a database: name another one',
}

function cannotOpen(path: string, error: unknown): OperatorError {
  const code = error instanceof Error && 'errcode' in error ? Number(error.errcode) & 0xff : undefined
  const hint = code === undefined ? undefined : hints[code]
  return new OperatorError(`session.store.file: cannot use ${path}: ${hint ?? reason(error)}`, { cause: error })
}
