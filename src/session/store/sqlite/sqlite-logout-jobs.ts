import type { SessionKey } from '../../../core/names.ts'
import type { LogoutJobStore, OpenedJob, TakenJob } from '../store.ts'
import type { SessionDatabase } from './database.ts'

interface JobRow {
  readonly sealed: Uint8Array
  readonly attempts: number
  readonly not_before: number
}

/** The jobs of sessions in SQLite. See {@link LogoutJobStore}. */
export class SqliteLogoutJobs implements LogoutJobStore {
  readonly #database: SessionDatabase
  readonly #now: () => number

  /** @param now a clock in ms that never goes back */
  constructor(database: SessionDatabase, now: () => number) {
    this.#database = database
    this.#now = now
  }

  /** Replaces or removes a job. Called inside of a transaction. */
  set(key: SessionKey, job: Uint8Array | 'none', expires_at: number): void {
    if (job === 'none') return void this.#database.change('DELETE FROM jobs WHERE key = ?', key)
    this.#database.insert(
      'jobs',
      'INSERT OR REPLACE INTO jobs (key, sealed, attempts, not_before, expires_at) VALUES (?, ?, 0, 0, ?)',
      ...[key, job, expires_at],
    )
  }

  async watch(audience: string, key: SessionKey, after: number, ttl: number): Promise<void> {
    const now = this.#now()
    this.#database.write('durable', () =>
      this.#database.insert(
        'watched_jobs',
        'INSERT OR IGNORE INTO watched_jobs (key, audience, until, expires_at) VALUES (?, ?, ?, ?)',
        ...[key, audience, now + after, now + ttl],
      ),
    )
  }

  async take(
    audience: string,
    { ended, limit, lease }: { readonly ended: readonly SessionKey[]; readonly limit: number; readonly lease: number },
  ): Promise<readonly TakenJob[]> {
    const now = this.#now()
    return this.#database.write('ordinary', () => {
      for (const key of ended)
        this.#database.change('UPDATE watched_jobs SET until = ? WHERE key = ? AND audience = ?', now, key, audience)
      const due = this.#database.all<{ readonly key: SessionKey }>(
        'SELECT key FROM watched_jobs WHERE audience = ? AND until <= ? ORDER BY until LIMIT ?',
        ...[audience, now, limit],
      )
      const until = now + lease
      for (const { key } of due) this.#database.change('UPDATE watched_jobs SET until = ? WHERE key = ?', until, key)
      return due.map(({ key }) => ({ key, until }))
    })
  }

  async open(key: SessionKey, lease: number): Promise<OpenedJob> {
    const now = this.#now()
    return this.#database.write('ordinary', () => {
      const alive = 'SELECT expires_at FROM sessions WHERE key = ? AND expires_at > ?'
      const session = this.#database.one<{ readonly expires_at: number }>(alive, key, now)
      if (session !== undefined) return { kind: 'waiting', forMs: session.expires_at - now }
      const job = this.#database.one<JobRow>('SELECT * FROM jobs WHERE key = ? AND expires_at > ?', key, now)
      if (job === undefined) return { kind: 'none' }
      if (job.not_before > now) return { kind: 'waiting', forMs: job.not_before - now }
      const sql = 'UPDATE jobs SET not_before = ?, attempts = attempts + 1 WHERE key = ?'
      this.#database.change(sql, now + lease, key)
      return { kind: 'due', sealed: job.sealed, attempt: job.attempts + 1 }
    })
  }

  async lookAgain(_audience: string, { key, until }: TakenJob, after: number): Promise<void> {
    const sql = 'UPDATE watched_jobs SET until = ? WHERE key = ? AND until = ?'
    this.#database.write('ordinary', () => this.#database.change(sql, this.#now() + after, key, until))
  }

  async postpone(_audience: string, key: SessionKey, after: number, sealed: Uint8Array): Promise<void> {
    const until = this.#now() + after
    this.#database.write('durable', () => {
      this.#database.change('UPDATE jobs SET sealed = ?, not_before = ? WHERE key = ?', sealed, until, key)
      this.#database.change('UPDATE watched_jobs SET until = ? WHERE key = ?', until, key)
    })
  }

  async remove(_audience: string, key: SessionKey): Promise<void> {
    this.#database.write('durable', () => {
      this.#database.change('DELETE FROM jobs WHERE key = ?', key)
      this.#database.change('DELETE FROM watched_jobs WHERE key = ?', key)
    })
  }
}
