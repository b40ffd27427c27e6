// Reads figures from Redis, and lets its keys expire at once.
import { setTimeout as pause } from 'node:timers/promises'
import type { Redis } from 'ioredis'

/** The memory for its data in bytes, once it is idle. Buffers of clients do not count. */
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

/** The resident memory of its process, in bytes. */
export async function residentMemoryOf(redis: Redis): Promise<number> {
  return fieldsOf(await redis.info('memory'))('used_memory_rss')
}

/** The processor time of its process, in µs. */
export async function microsOf(redis: Redis): Promise<number> {
  const field = fieldsOf(await redis.info('cpu'))
  return (field('used_cpu_sys') + field('used_cpu_user')) * 1e6
}

/** What clients have sent to Redis, and received from it. */
export interface Traffic {
  readonly commands: number
  /** In bytes. */
  readonly received: number
  readonly sent: number
}

/** Its traffic since it started. Commands inside of scripts count too. */
export async function trafficOf(redis: Redis): Promise<Traffic> {
  const field = fieldsOf(await redis.info('stats'))
  return {
    commands: field('total_commands_processed'),
    received: field('total_net_input_bytes'),
    sent: field('total_net_output_bytes'),
  }
}

/** How many sessions were read since it started. */
export async function readsOf(redis: Redis): Promise<number> {
  const [, calls = '0'] = /^cmdstat_hmget:calls=(\d+)/m.exec(await redis.info('commandstats')) ?? []
  return Number(calls)
}

function fieldsOf(info: string): (name: string) => number {
  return (name) => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)?.[1])
}

/** The size of a sealed session record, in bytes. */
export async function sealedBytesIn(redis: Redis): Promise<number> {
  for await (const [place] of keysIn(redis, '*:s:*')) if (place !== undefined) return redis.hstrlen(place, 'sealed')
  return NaN
}

/** Lets all keys with an expiry expire now. Resolves to the number of removed keys. */
export async function letExpire(redis: Redis, pattern: string): Promise<number> {
  const before = await redis.dbsize()
  const hurry = `
    for _, key in ipairs(KEYS) do
      if redis.call('PTTL', key) > 0 then redis.call('PEXPIRE', key, 1) end
    end`
  for await (const keys of keysIn(redis, pattern)) if (keys.length > 0) await redis.eval(hurry, keys.length, ...keys)
  await pause(10)
  // Redis removes the last tenth of expired keys slowly. Reading an expired key removes it at once.
  for await (const _ of keysIn(redis, pattern));
  return before - (await redis.dbsize())
}

/**
 * Copies all keys of a database until there are `times` of each, with their expiry times. The
 * copies have other names. Resolves to the number of keys and their memory, for a report.
 */
export async function multiplyKeys(redis: Redis, database: number, times: number): Promise<string> {
  const copy = `
    for _, key in ipairs(KEYS) do
      local expiry = math.max(redis.call('PTTL', key), 0)
      local value = redis.call('DUMP', key)
      for n = 2, ARGV[1] do redis.call('RESTORE', key .. ':copy:' .. n, expiry, value) end
    end`
  await redis.select(database)
  const originals = await redis.keys('*')
  for (let at = 0; at < originals.length; at += 10) {
    const keys = originals.slice(at, at + 10)
    await redis.eval(copy, keys.length, ...keys, times)
  }
  const [count, bytes] = [await redis.dbsize(), await memoryOf(redis)]
  await redis.select(0)
  return `Redis has ${count.toLocaleString('en-US')} keys in database ${database}, and ${(bytes / 2 ** 30).toFixed(1)} GiB in all.`
}

async function* keysIn(redis: Redis, pattern: string): AsyncIterable<readonly string[]> {
  let [cursor, keys] = ['0', [] as string[]]
  do {
    ;[cursor, keys] = await redis.scan(cursor, 'MATCH', pattern, 'COUNT', 2_000)
    yield keys
  } while (cursor !== '0')
}
