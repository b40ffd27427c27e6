import type { KeptKey } from '../../../core/names.ts'
import type { KeptHead, KeptStore } from '../store.ts'
import { asBuffer, atLeast1, hashOf, type RedisKeys } from './keys.ts'
import type { RedisConnection } from './redis-connection.ts'

/** The error of a Redis that has reached its `maxmemory`. */
const outOfMemory = /\bOOM\b/

/** Kept requests in Redis. All of one person have one slot. See {@link KeptStore}. */
export class RedisKeptStore implements KeptStore {
  readonly #commands: RedisConnection
  readonly #keys: RedisKeys

  constructor(commands: RedisConnection, keys: RedisKeys) {
    this.#commands = commands
    this.#keys = keys
  }

  async begin(key: KeptKey, max: number, ttl: number): Promise<'begun' | 'too_many' | 'full'> {
    const begun = await this.#unlessFull('keptBegin', key, [hashOf(key), max, atLeast1(ttl)])
    return begun === 'full' ? 'full' : begun === 1 ? 'begun' : 'too_many'
  }

  async append(key: KeptKey, part: Uint8Array, ttl: number): Promise<boolean> {
    return (await this.#unlessFull('keptAppend', key, [hashOf(key), asBuffer(part), atLeast1(ttl)])) === 1
  }

  async complete(key: KeptKey, head: Uint8Array, ttl: number): Promise<boolean> {
    return (await this.#unlessFull('keptComplete', key, [hashOf(key), asBuffer(head), atLeast1(ttl)])) === 1
  }

  async read(key: KeptKey): Promise<KeptHead | undefined> {
    const reading = this.#commands.redis.hmgetBuffer(this.#keys.kept(key), 'head', 'state')
    const [head, state] = await this.#commands.reply(reading)
    return head && state ? { head, state: state.toString() as KeptHead['state'] } : undefined
  }

  async take(key: KeptKey): Promise<readonly Uint8Array[] | undefined> {
    const parts = await this.#commands.run('keptTake', [this.#keys.kept(key)], [])
    return (parts as readonly Buffer[] | null) ?? undefined
  }

  async giveBack(key: KeptKey): Promise<void> {
    await this.#commands.run('keptGiveBack', [this.#keys.kept(key)], [])
  }

  async finish(key: KeptKey): Promise<void> {
    await this.#commands.run('keptFinish', this.#places(key), [hashOf(key)])
  }

  async drop(key: KeptKey): Promise<boolean> {
    return (await this.#commands.run('keptDrop', this.#places(key), [hashOf(key)])) === 1
  }

  #places(key: KeptKey): readonly string[] {
    return [this.#keys.keptIndex(key), this.#keys.kept(key)]
  }

  /** A full Redis still serves sessions, so for a script that needs memory this is no outage. */
  async #unlessFull(
    script: 'keptBegin' | 'keptAppend' | 'keptComplete',
    key: KeptKey,
    args: readonly (string | number | Buffer)[],
  ): Promise<unknown> {
    try {
      return await this.#commands.run(script, this.#places(key), args)
    } catch (error) {
      if (error instanceof Error && outOfMemory.test(error.message)) return 'full'
      throw error
    }
  }
}
