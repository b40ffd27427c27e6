import type { Clock } from '../../../core/clock.ts'
import type { SessionKey } from '../../../core/names.ts'
import type { LogoutJobStore, OpenedJob, TakenJob } from '../store.ts'

interface Job {
  sealed: Uint8Array
  attempts: number
  /** On the steady clock, like all times here. */
  notBefore: number
  readonly expires_at: number
}

interface WaitingJob {
  readonly key: SessionKey
  readonly audience: string
  until: number
}

export class MemoryLogoutJobs implements LogoutJobStore {
  readonly #max: number
  readonly #clock: Clock
  readonly #aliveForMs: (key: SessionKey) => number
  readonly #jobs = new Map<SessionKey, Job>()
  /** By the key of the session alone, because a session has one audience. */
  readonly #index = new Map<SessionKey, WaitingJob>()

  /**
   * @param max how many jobs there may be; the oldest one is dropped
   * @param aliveForMs how long a session stays if it is not used; 0 when it has ended
   */
  constructor(max: number, clock: Clock, aliveForMs: (key: SessionKey) => number) {
    this.#max = max
    this.#clock = clock
    this.#aliveForMs = aliveForMs
  }

  get size(): number {
    return this.#jobs.size + this.#index.size
  }

  set(key: SessionKey, job: Uint8Array | 'none', expires_at: number): void {
    this.#jobs.delete(key)
    if (job === 'none') return
    this.#jobs.set(key, { sealed: job, attempts: 0, notBefore: 0, expires_at })
    if (this.#jobs.size <= this.#max) return
    for (const oldest of this.#jobs.keys()) {
      this.#jobs.delete(oldest)
      this.#index.delete(oldest)
      return
    }
  }

  sweep(now: number): void {
    for (const [key, { expires_at }] of this.#jobs) if (expires_at <= now) this.#jobs.delete(key)
    for (const key of this.#index.keys())
      if (!this.#jobs.has(key) && this.#aliveForMs(key) === 0) this.#index.delete(key)
  }

  async watch(audience: string, key: SessionKey, after: number, _ttl?: number): Promise<void> {
    if (!this.#index.has(key)) this.#index.set(key, { key, audience, until: this.#clock.now() + after })
  }

  async take(
    audience: string,
    { ended, limit, lease }: { readonly ended: readonly SessionKey[]; readonly limit: number; readonly lease: number },
  ): Promise<readonly TakenJob[]> {
    const now = this.#clock.now()
    for (const key of ended) {
      const entry = this.#index.get(key)
      if (entry?.audience === audience) entry.until = now
    }
    const taken: TakenJob[] = []
    for (const entry of this.#index.values()) {
      if (taken.length >= limit) break
      if (entry.audience !== audience || entry.until > now) continue
      entry.until = now + lease
      taken.push({ ...entry })
    }
    return taken
  }

  async open(key: SessionKey, lease: number): Promise<OpenedJob> {
    const now = this.#clock.now()
    const aliveForMs = this.#aliveForMs(key)
    if (aliveForMs > 0) return { kind: 'waiting', forMs: aliveForMs }
    const job = this.#jobs.get(key)
    if (job === undefined || job.expires_at <= now) return { kind: 'none' }
    if (job.notBefore > now) return { kind: 'waiting', forMs: job.notBefore - now }
    job.notBefore = now + lease
    job.attempts += 1
    return { kind: 'due', sealed: job.sealed, attempt: job.attempts }
  }

  async lookAgain(_audience: string, { key, until }: TakenJob, after: number): Promise<void> {
    const entry = this.#index.get(key)
    if (entry?.until === until) entry.until = this.#clock.now() + after
  }

  async postpone(_audience: string, key: SessionKey, after: number, sealed: Uint8Array): Promise<void> {
    const until = this.#clock.now() + after
    const [job, entry] = [this.#jobs.get(key), this.#index.get(key)]
    if (job !== undefined) Object.assign(job, { sealed, notBefore: until })
    if (entry !== undefined) entry.until = until
  }

  async remove(_audience: string, key: SessionKey): Promise<void> {
    this.#jobs.delete(key)
    this.#index.delete(key)
  }
}
