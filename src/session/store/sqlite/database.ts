import { closeSync, constants, fstatSync, openSync, readSync, realpathSync, statSync, writeSync } from 'node:fs'
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import { GatewayError, OperatorError, reason } from '../../../core/errors.ts'
import { pauses } from '../../../core/pauses.ts'
import type { Log } from '../../../observe/log.ts'

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
  CREATE INDEX tombstones_by_expiry ON tombstones (expires_at);
  CREATE TABLE marks (name TEXT PRIMARY KEY, owner TEXT NOT NULL, expires_at REAL NOT NULL) STRICT;
  CREATE INDEX marks_by_expiry ON marks (expires_at);
  CREATE TABLE documents (
    name TEXT PRIMARY KEY, sealed BLOB NOT NULL, version INTEGER NOT NULL, expires_at REAL NOT NULL) STRICT;
  CREATE INDEX documents_by_expiry ON documents (expires_at);
  CREATE TABLE jobs (
    key TEXT PRIMARY KEY, sealed BLOB NOT NULL, attempts INTEGER NOT NULL, not_before REAL NOT NULL,
    expires_at REAL NOT NULL) STRICT;
  CREATE INDEX jobs_by_expiry ON jobs (expires_at);
  CREATE TABLE watched_jobs (
    key TEXT PRIMARY KEY, audience TEXT NOT NULL, until REAL NOT NULL, expires_at REAL NOT NULL) STRICT;
  CREATE INDEX watched_jobs_by_time ON watched_jobs (audience, until);
  CREATE INDEX watched_jobs_by_expiry ON watched_jobs (expires_at);
  CREATE TABLE kept (
    number INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, person TEXT NOT NULL, state TEXT NOT NULL,
    head BLOB NOT NULL, bytes INTEGER NOT NULL, expires_at REAL NOT NULL) STRICT;
  CREATE INDEX kept_of_person ON kept (person);
  CREATE INDEX kept_by_expiry ON kept (expires_at);
  CREATE TABLE kept_parts (
    kept INTEGER NOT NULL REFERENCES kept (number) ON DELETE CASCADE, number INTEGER NOT NULL, part BLOB NOT NULL,
    PRIMARY KEY (kept, number)) STRICT, WITHOUT ROWID;
  PRAGMA user_version = ${format};
`

/**
 * Since 0.2.0. An earlier version can use the file all the same, because its sessions get the
 * default: a repeated order ends them whenever they began.
 */
const addBegunAt = 'ALTER TABLE sessions ADD COLUMN begun_at REAL NOT NULL DEFAULT 0'

/** The tables whose rows expire. */
const expiring = ['sessions', 'tombstones', 'marks', 'documents', 'jobs', 'watched_jobs', 'kept'] as const
type Expiring = (typeof expiring)[number]

/** How many rows of a table {@link SessionDatabase.sweep} deletes at once: about 10 ms. */
const sweepBatch = 500
/** After how many writes the WAL is copied into the file. */
const writesPerCheckpoint = 200
/** The WAL is cut to this length, in bytes, after it has been copied. */
const walBytes = 4 * 1024 * 1024

/** What a write needs of the disk. */
export type Durability =
  /** The write is on the disk when the method returns, also when the power fails. */
  | 'durable'
  /** The write survives the death of the process. A power failure may undo it. */
  | 'ordinary'

/**
 * A database of SQLite for one process: in its memory, or a file that it alone has open, in WAL
 * mode. Another process that opens the file fails, so no two processes can end and change the same
 * sessions without each other's knowledge.
 *
 * A copy of the file that is put in its place may be older than endings that were acknowledged. A
 * second file, with the suffix `-endings`, holds how many endings there were. When it holds more
 * than the first file does, endings were lost, and all sessions that were written before are
 * doubtful.
 *
 * SQLite would apply the WAL of a killed process to an older copy too: sessions that ended before
 * the WAL began would come back, with the right number of endings. So the header of the file and
 * the second file have the number of the last checkpoint, and such a WAL is an error.
 */
export class SessionDatabase {
  /** Absent: in memory. */
  readonly #path: string | undefined
  readonly #log: Log
  readonly #maxRows: number
  /** How many rows can be inserted into a table before its rows are counted again. */
  readonly #rooms = new Map<Expiring, number>()
  readonly #database: DatabaseSync
  readonly #statements = new Map<string, StatementSync>()
  /**
   * The descriptor of the file with the numbers of endings and checkpoints. Absent: in memory,
   * where no power failure and no copy can undo an ending.
   */
  readonly #numbers: number | undefined
  #isDurable = true
  /** Whether the log says so. Not yet during the start, whose error is reported by itself. */
  #isAvailable = false
  #hasUnnotedEndings = false
  #checkpoints = 0
  #writesSinceCheckpoint = 0
  /** How often the file was opened before. Sessions name the run in which they were written. */
  readonly run: number
  readonly #doubtedBefore: number

  /**
   * @param path absent: in memory
   * @param maxRows of each table
   * @throws {OperatorError} when the file cannot be used
   */
  constructor(path: string | undefined, log: Log, maxRows = Infinity) {
    this.#path = path
    this.#log = log
    this.#maxRows = maxRows
    if (path === undefined) {
      this.#database = open(...(maxRows > maxRowsOfMemdb ? inLargePages : inMemdb))
      ;[this.run, this.#doubtedBefore] = [1, 0]
      return
    }
    try {
      this.#numbers = openRegular(`${path}-endings`, constants.O_NOFOLLOW)
    } catch (error) {
      throw cannotOpen(`${path}-endings`, error)
    }
    const { endings, checkpoints = 0 } = readNumbers(this.#numbers)
    try {
      checkFile(path, checkpoints)
      this.#database = open(path)
    } catch (error) {
      closeSync(this.#numbers)
      throw cannotOpen(path, error)
    }
    try {
      ;[this.run, this.#doubtedBefore] = this.write('durable', () => this.#beginRun(endings))
      const { application_id = 0 } = this.one<{ application_id: number }>('PRAGMA application_id') ?? {}
      this.#checkpoints = Math.max(application_id, checkpoints)
      this.#checkpoint(this.#numbers)
      this.#isAvailable = true
    } catch (error) {
      this.close()
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
   * Inserts a row. When the table has more than `maxRows`, those that expire first are deleted. Of
   * sessions, these are the ones that were not used for the longest time.
   * @returns how many rows have changed
   */
  insert(table: Expiring, sql: string, ...values: SQLInputValue[]): number {
    const changed = this.change(sql, ...values)
    const room = (this.#rooms.get(table) ?? 0) - changed
    this.#rooms.set(table, room > 0 ? room : this.#makeRoom(table))
    return changed
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
      let result: T
      try {
        result = work()
        this.#database.exec('COMMIT')
      } catch (error) {
        // Some errors, a full disk for example, have undone the transaction already.
        if (this.#database.isTransaction) this.#database.exec('ROLLBACK')
        throw error
      }
      this.#writesSinceCheckpoint += 1
      if (this.#numbers !== undefined && this.#writesSinceCheckpoint >= writesPerCheckpoint)
        this.#tryCheckpoint(this.#numbers)
      return result
    })
  }

  /** Carries out an ending as one durable transaction, and counts it. */
  ending<T>(end: () => T): T {
    const ended = this.write('durable', () => {
      const result = end()
      this.change("UPDATE facts SET value = value + 1 WHERE name = 'endings'")
      return result
    })
    if (this.#numbers !== undefined) this.#noteEndings(this.#numbers)
    return ended
  }

  /**
   * Writes the number of endings to the second file. Until then, a crash loses no ending. An error
   * must not fail the ending, which has been carried out: {@link sweep} tries again.
   */
  #noteEndings(numbers: number): void {
    this.#hasUnnotedEndings = true
    try {
      this.#writeNumbers(numbers)
      this.#hasUnnotedEndings = false
    } catch {
      // The number in the first file stays right.
    }
  }

  /**
   * Deletes what has expired at `now`. After an error, it tries first whether the disk takes
   * writes.
   * @returns whether expired rows are left, because a long transaction would delay all requests
   */
  sweep(now: number): boolean {
    if (this.#hasUnnotedEndings && this.#numbers !== undefined) this.#noteEndings(this.#numbers)
    if (this.#path !== undefined && !this.#isAvailable) this.#tryDisk(this.#path)
    const isExpired = (table: string) =>
      this.one(`SELECT 1 FROM ${table} WHERE expires_at <= ? LIMIT 1`, now) !== undefined
    const tables = expiring.filter(isExpired)
    const batch = (table: string) => `SELECT rowid FROM ${table} WHERE expires_at <= ? LIMIT ${sweepBatch}`
    const remove = (table: string) => this.change(`DELETE FROM ${table} WHERE rowid IN (${batch(table)})`, now)
    return tables.length > 0 && this.write('ordinary', () => tables.map(remove)).includes(sweepBatch)
  }

  /** The number of rows of all kinds. */
  size(): number {
    return expiring.reduce((sum, table) => sum + this.#count(table), 0)
  }

  /** Returns how many rows can be inserted before the next count, which takes long. */
  #makeRoom(table: Expiring): number {
    const room = this.#maxRows - this.#count(table)
    if (room >= 0) return room
    const spare = Math.floor(this.#maxRows / 100)
    const first = `SELECT rowid FROM ${table} ORDER BY expires_at LIMIT ?`
    this.change(`DELETE FROM ${table} WHERE rowid IN (${first})`, spare - room)
    return spare
  }

  #count(table: Expiring): number {
    return this.one<{ count: number }>(`SELECT count(*) AS count FROM ${table}`)?.count ?? 0
  }

  close(): void {
    this.#database.close()
    if (this.#numbers !== undefined) closeSync(this.#numbers)
  }

  /** Returns the number of this run, and before which run sessions are doubtful. */
  #beginRun(endingsElsewhere: number | undefined): [number, number] {
    const fact = (name: string) => this.one<{ value: number }>('SELECT value FROM facts WHERE name = ?', name)?.value
    const set = (name: string, value: number) =>
      this.change('INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)', name, value)
    const lastRun = fact('run')
    const run = (lastRun ?? 0) + 1
    const endings = fact('endings') ?? 0
    // A new file has no sessions. It continues with the number, for copies of its predecessor.
    const isOlder = lastRun !== undefined && (endingsElsewhere === undefined || endingsElsewhere > endings)
    const doubtedBefore = isOlder ? run : (fact('doubted_before') ?? 0)
    set('run', run)
    set('endings', Math.max(endings, endingsElsewhere ?? 0))
    set('doubted_before', doubtedBefore)
    return [run, doubtedBefore]
  }

  /** Copies the WAL into the file. */
  #checkpoint(numbers: number): void {
    this.#writesSinceCheckpoint = 0
    const number = this.#checkpoints + 1
    // In the header of the file, where it can be read without the WAL.
    this.#database.exec(`PRAGMA application_id = ${number}`)
    const { busy } = this.one<{ busy: number }>('PRAGMA wal_checkpoint(RESTART)') ?? {}
    if (busy !== 0) return
    this.#checkpoints = number
    this.#writeNumbers(numbers)
  }

  /** An error must not fail the write before it. The WAL has the data until the next attempt. */
  #tryCheckpoint(numbers: number): void {
    try {
      this.#checkpoint(numbers)
    } catch {
      // The disk may be full.
    }
  }

  #writeNumbers(descriptor: number): void {
    const { value = 0 } = this.one<{ value: number }>("SELECT value FROM facts WHERE name = 'endings'") ?? {}
    const digits = (number: number) => String(number).padStart(numberLength)
    writeSync(descriptor, `${digits(value)} ${digits(this.#checkpoints)}\n`, 0)
  }

  #statement(sql: string): StatementSync {
    let statement = this.#statements.get(sql)
    if (statement === undefined) {
      statement = this.#database.prepare(sql)
      this.#statements.set(sql, statement)
    }
    return statement
  }

  /** Not after each write: small ones may succeed between large ones, and would fill the log. */
  #tryDisk(path: string): void {
    this.write('ordinary', () => this.change(trialWrite))
    this.#isAvailable = true
    this.#log.info('store.available', { store: path })
  }

  #attempt<T>(work: () => T): T {
    try {
      return work()
    } catch (error) {
      if (error instanceof GatewayError) throw error
      const store = this.#path ?? 'memory'
      if (this.#isAvailable) this.#log.warn('store.unavailable', { store, reason: reason(error), hint: hintFor(error) })
      this.#isAvailable = false
      throw new GatewayError('ERR_STORE_UNAVAILABLE', `${store}: ${reason(error)}`, { cause: error })
    }
  }
}

/** Changes a row each time, because SQLite does not write a page that stays the same. */
const trialWrite = `INSERT INTO facts (name, value) VALUES ('trial_writes', 1)
  ON CONFLICT (name) DO UPDATE SET value = value + 1`

/** The digits of a number in the second file. */
const numberLength = 16

/** The numbers in the second file; `undefined` when there is none. */
function readNumbers(descriptor: number): Readonly<Record<'endings' | 'checkpoints', number | undefined>> {
  const bytes = Buffer.alloc(2 * numberLength + 1)
  const text = bytes.toString('latin1', 0, readSync(descriptor, bytes, 0, bytes.length, 0))
  const number = (from: number) => {
    const digits = text.slice(from, from + numberLength).trim()
    return /^\d+$/.test(digits) ? Number(digits) : undefined
  }
  return { endings: number(0), checkpoints: number(numberLength + 1) }
}

/** Opens a file, and creates it. SQLite would create it with the permissions of the umask. */
function openRegular(path: string, flags = 0): number {
  // Without O_NONBLOCK, a FIFO would stop the process.
  const descriptor = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NONBLOCK | flags, 0o600)
  if (fstatSync(descriptor).isFile()) return descriptor
  closeSync(descriptor)
  throw new OperatorError('it is not a regular file')
}

/** @throws {OperatorError} when the file is older than the WAL beside it */
function checkFile(path: string, checkpoints: number): void {
  const descriptor = openRegular(path)
  try {
    const header = Buffer.alloc(headerLength)
    // SQLite deletes a WAL beside an empty file.
    if (readSync(descriptor, header, 0, headerLength, 0) < headerLength) return
    const wal = `${realpathSync(path)}-wal`
    if (header.readUInt32BE(applicationIdAt) >= checkpoints || !statSync(wal, { throwIfNoEntry: false })?.size) return
    throw new OperatorError(
      `it is older than ${wal}, which would damage it: delete ${wal} after you have put a copy back`,
    )
  } finally {
    closeSync(descriptor)
  }
}

/** The length of the header of a database, and the place of `application_id` in it. */
const [headerLength, applicationIdAt] = [100, 68]

/**
 * Loads SQLite. Not with `import`, because a gateway with Redis does not need it: it takes memory.
 * Node.js 22 prints that it is experimental, which nobody has to act on.
 */
function loadSqlite(): typeof import('node:sqlite') {
  const { emitWarning } = process
  process.emitWarning = () => {}
  try {
    return process.getBuiltinModule('node:sqlite')
  } finally {
    process.emitWarning = emitWarning
  }
}

type Database = readonly [path: string, pageBytes: number]
/**
 * A database in memory, and the size of its pages. A record has pages of its own, which the next
 * one uses after it. In large pages, new records are behind all others, so pages of which many
 * records have ended stay.
 */
const inMemdb: Database = ['file:sessions?vfs=memdb', 1024]
/** SQLite permits 1 GiB in it: some 10 KiB for each of these rows. */
const maxRowsOfMemdb = 100_000
/** A database in memory without a limit. Each write visits all its pages, so they must be few. */
const inLargePages: Database = [':memory:', 32_768]

/** Opens the file, locks it for this process, and creates the tables of a new one. */
function open(path: string, pageBytes = 4096): DatabaseSync {
  const { DatabaseSync } = loadSqlite()
  const database = new DatabaseSync(path, { timeout: pauses.lockSessionFileMs })
  try {
    database.exec(`PRAGMA page_size = ${pageBytes}`)
    // In this mode, the first access locks the file until the process ends.
    database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA foreign_keys = ON')
    // Only checkpoints of the gateway have a number.
    database.exec(`PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = ${walBytes}`)
    database.exec('BEGIN IMMEDIATE')
    const { user_version: found } = database.prepare('PRAGMA user_version').get() as { user_version: number }
    if (found > format)
      throw new OperatorError(
        `it has the format ${found} of a newer version of Gatehouse, and this one knows ${format}: run the newer version, or move the file away (docs/versions.md)`,
      )
    if (found === 0) database.exec(tables)
    if (
      !database
        .prepare('PRAGMA table_info(sessions)')
        .all()
        .some(({ name }) => name === 'begun_at')
    )
      database.exec(addBegunAt)
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

function hintFor(error: unknown): string | undefined {
  return error instanceof Error && 'errcode' in error ? hints[Number(error.errcode) & 0xff] : undefined
}

function cannotOpen(path: string, error: unknown): OperatorError {
  const isFolderMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT'
  const hint = isFolderMissing
    ? 'its folder does not exist: create it for the user that the gateway runs as'
    : hintFor(error)
  return new OperatorError(`session.store.file: cannot use ${path}: ${hint ?? reason(error)}`, { cause: error })
}
