// What a Redis says of itself, and a faster clock for what it holds.
import { setTimeout as pause } from 'node:timers/promises'
import type { Redis } from 'ioredis'

/**
 * What it uses for what it holds, in bytes, once it is at rest; what clients have in their buffers
 * does not count.
 */
export async function memoryOf(redis: Redis): Promise<number> {
  const read = async () => {
    const field = fieldsOf(await redis.info('memory'))
    return field('used_memory') - field('mem_clients_normal')
  }
  for (let before = await read(); ;) {
    await pause(1_000)
    const now = await read()
    if (Math.abs(now - before) < 10_000) return now
    before = now
  }
}

/** The memory that its process has, in bytes. */
export async function residentMemoryOf(redis: Redis): Promise<number> {
  return fieldsOf(await redis.info('memory'))('used_memory_rss')
}

/** The processor time that it has used, in µs. */
export async function microsOf(redis: Redis): Promise<number> {
  const field = fieldsOf(await redis.info('cpu'))
  return (field('used_cpu_sys') + field('used_cpu_user')) * 1e6
}

function fieldsOf(info: string): (name: string) => number {
  return (name) => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)?.[1])
}

/** How many bytes the sealed record of a session has. */
export async function sealedBytesIn(redis: Redis): Promise<number> {
  for await (const [place] of keysIn(redis, '*:s:*')) if (place !== undefined) return redis.hstrlen(place, 'sealed')
  return NaN
}

/**
 * Brings the expiry of keys forward to now, if they have one; resolves to how many are gone for it.
 */
export async function letExpire(redis: Redis, pattern: string): Promise<number> {
  const before = await redis.dbsize()
  const hurry = `
    for _, key in ipairs(KEYS) do
      if redis.call('PTTL', key) > 0 then redis.call('PEXPIRE', key, 1) end
    end`
  for await (const keys of keysIn(redis, pattern)) if (keys.length > 0) await redis.eval(hurry, keys.length, ...keys)
  await pause(10)
  // Redis removes the last tenth of expired keys slowly, but removes an expired key when it is
  // read.
  for await (const _ of keysIn(redis, pattern));
  return before - (await redis.dbsize())
}

async function* keysIn(redis: Redis, pattern: string): AsyncIterable<readonly string[]> {
  let [cursor, keys] = ['0', [] as string[]]
  do {
    ;[cursor, keys] = await redis.scan(cursor, 'MATCH', pattern, 'COUNT', 2_000)
    yield keys
  } while (cursor !== '0')
}
