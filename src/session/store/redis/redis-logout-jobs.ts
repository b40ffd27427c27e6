import type { SessionKey } from '../../../core/names.ts'
import type { LogoutJobStore, OpenedJob, TakenJob } from '../store.ts'
import { asBuffer, atLeast1, type RedisKeys } from './keys.ts'
import type { RedisConnection } from './redis-connection.ts'

/** The jobs in Redis: each in the slot of its session, the index of an audience in its own. */
export class RedisLogoutJobs implements LogoutJobStore {
  readonly #commands: RedisConnection
  readonly #keys: RedisKeys

  constructor(commands: RedisConnection, keys: RedisKeys) {
    this.#commands = commands
    this.#keys = keys
  }

  async watch(audience: string, key: SessionKey, after: number, ttl: number): Promise<void> {
    await this.#commands.run('watchJob', [this.#keys.jobIndex(audience)], [key, Math.ceil(after), atLeast1(ttl)])
  }

  async take(
    audience: string,
    { ended, limit, lease }: { readonly ended: readonly SessionKey[]; readonly limit: number; readonly lease: number },
  ): Promise<readonly TakenJob[]> {
    const args = [limit, atLeast1(lease), ...ended]
    const reply = (await this.#commands.run('takeJobs', [this.#keys.jobIndex(audience)], args)) as Buffer[]
    const until = Number(reply.pop())
    return reply.map((key) => ({ key: key.toString() as SessionKey, until }))
  }

  async open(key: SessionKey, lease: number): Promise<OpenedJob> {
    const { session, job } = this.#keys.session(key)
    const reply = (await this.#commands.run('openJob', [session, job], [atLeast1(lease)])) as
      [] | [number] | [Buffer, number]
    if (reply.length === 0) return { kind: 'none' }
    if (reply.length === 1) return { kind: 'waiting', forMs: reply[0] }
    return { kind: 'due', sealed: reply[0], attempt: reply[1] }
  }

  async lookAgain(audience: string, { key, until }: TakenJob, after: number): Promise<void> {
    await this.#commands.run('lookAtJobAgain', [this.#keys.jobIndex(audience)], [key, until, atLeast1(after)])
  }

  async postpone(audience: string, key: SessionKey, after: number, sealed: Uint8Array): Promise<void> {
    const wait = atLeast1(after)
    await this.#commands.run('postponeJob', [this.#keys.session(key).job], [asBuffer(sealed), wait])
    await this.#commands.run('moveJob', [this.#keys.jobIndex(audience)], [key, wait])
  }

  async remove(audience: string, key: SessionKey): Promise<void> {
    const { redis } = this.#commands
    await this.#commands.reply(redis.del(this.#keys.session(key).job))
    await this.#commands.reply(redis.zrem(this.#keys.jobIndex(audience), key))
  }
}
