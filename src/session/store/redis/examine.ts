import type { Redis } from 'ioredis'
import type { RedisStoreConfig } from '../../../config/model/session.ts'
import { reason } from '../../../core/errors.ts'
import type { SessionKey, SidTag } from '../../../core/names.ts'
import { pauses } from '../../../core/pauses.ts'
import { randomToken, sha256 } from '../../../core/random.ts'
import { type RedisProblem, redisSchemeMismatch } from './advice.ts'
import { trialAt, tryConnections, tryScripts } from './fitness.ts'
import { RedisKeys } from './keys.ts'
import type { RedisConnection } from './redis-connection.ts'
import { connectToRedis } from './servers.ts'

const pings = 15

/** How long replicas may take to acknowledge a write, in ms. */
const longestWaitMs = 1_000

/** What one server reports about itself. What it does not report is absent. */
export interface RedisServerFacts {
  /** `redis 7.2.4`, `valkey 8.0.1`. */
  readonly version?: string
  readonly mode?: string
  readonly role?: string
  /** Shows the gateway that this server was restored from an older copy. */
  readonly run_id?: string
  /** In bytes; 0: no limit. */
  readonly maxmemory?: number
  readonly used_memory?: number
  readonly maxmemory_policy?: string
  readonly evicted_keys?: number
  /** 1 when each write goes to an append-only file. */
  readonly aof_enabled?: number
  /** How many snapshots this run wrote (Redis 7), and how many keys it loaded when it started. */
  readonly rdb_saves?: number
  readonly rdb_last_load_keys_loaded?: number
  /** The median round trip. */
  readonly pingMs?: number
  /** How far its clock is ahead of the clock of this machine. */
  readonly clockAheadMs?: number
  /** How many replicas acknowledged a write in time. Absent without `replicas_acknowledge`. */
  readonly replicasAcknowledging?: number
}

export interface RedisFacts {
  readonly address: string
  readonly servers: readonly RedisServerFacts[]
  /** Commands that the gateway needs but this user may not run, in capital letters. */
  readonly denied: readonly string[]
  /** What a primary does not do although the gateway relies on it, if that is known. */
  readonly unfit?: string
  /** Any other error of a command, in the words of Redis. Later commands were not tried. */
  readonly error?: string
}

export interface RedisFailure {
  readonly address: string
  readonly why: string
  /** Absent: none of the known problems. */
  readonly problem?: RedisProblem
  /** Set when the scheme of the URL does not fit the server: what to write instead. */
  readonly wrongScheme?: string
}

/**
 * Reads the properties of Redis, and tries each command that the gateway needs, with keys that
 * expire after a second. Never rejects, and takes about ten seconds at most.
 */
export async function examineRedis(config: RedisStoreConfig): Promise<RedisFacts | RedisFailure> {
  const { commands, subscriber } = connectToRedis({ ...config, replicasAcknowledge: 0 })
  const { address } = commands
  try {
    await connected(commands)
    const keys = new RedisKeys(config.keyPrefix)
    const places = placesFor(commands, keys, config)
    const servers = await Promise.all(
      commands.primaries().map(async (server) => {
        const replicasAcknowledging = await countReplicas(server, places.get(server), config)
        return { ...(await serverFacts(server)), ...withoutUndefined({ replicasAcknowledging }) }
      }),
    )
    const needed = [...probes(keys), ...(config.replicasAcknowledge > 0 ? [waitProbe] : [])]
    const tried = await tryCommands(commands, subscriber, needed, keys)
    if (tried.denied.length > 0 || tried.error !== undefined) return { address, servers, ...tried }
    return { address, servers, ...tried, ...(await tryPrimaries(commands, config)) }
  } catch (error) {
    const why = reason(error)
    const wrongScheme = await redisSchemeMismatch(why, config)
    return { address, why, ...withoutUndefined({ problem: commands.problem, wrongScheme }) }
  } finally {
    await Promise.all([commands.close(), subscriber.close()])
  }
}

/** Tries several times, because a DNS lookup may take longer than one attempt. */
async function connected(connection: RedisConnection): Promise<void> {
  const end = performance.now() + pauses.examineStoreMs
  for (;;) {
    try {
      return await connection.ready()
    } catch (error) {
      if (performance.now() >= end) throw error
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
}

type Probe = readonly [command: string, ...args: readonly string[]]

/** Every command of the gateway and its scripts, without harm. A test compares it with the code. */
export function probes(keys: RedisKeys): readonly Probe[] {
  const { session, index, tombstone, ended } = keys.session(`${randomToken(18)}:${randomToken(24)}` as SessionKey)
  return [
    ['PING'],
    ['TIME'],
    ['INFO', 'server'],
    ['SCAN', '0', 'COUNT', '1'],
    ['SET', tombstone, '1', 'PX', '1000', 'NX'],
    ['GET', tombstone],
    ['PTTL', tombstone],
    ['EXISTS', tombstone],
    ['HSET', session, 'version', '1'],
    ['PEXPIRE', session, '1000'],
    ['HGET', session, 'version'],
    ['HMGET', session, 'sealed', 'version'],
    ['HINCRBY', session, 'version', '1'],
    ['HDEL', session, 'none'],
    ['ZADD', index, '1', 'probe'],
    ['PEXPIREAT', index, String(Date.now() + 1000)],
    ['ZRANGE', index, '0', '-1'],
    ['ZREVRANGE', index, '0', '0'],
    ['ZRANGEBYSCORE', index, '-inf', '0'],
    ['ZSCORE', index, 'probe'],
    ['ZREM', index, 'probe'],
    ['ZREMRANGEBYSCORE', index, '-inf', '0'],
    // Has no effect, because the key does not exist.
    ['PERSIST', ended],
    ['DEL', session],
    ['DEL', index],
    ['DEL', tombstone],
    ['EVAL', 'return 1', '1', session],
    ['EVALSHA', sha256('no script has this name').slice(0, 40), '1', session],
    ['PUBLISH', keys.channel('probe'), 'no subscriber'],
  ]
}

const waitProbe: Probe = ['WAIT', '0', '1']

async function tryCommands(
  commands: RedisConnection,
  subscriber: RedisConnection,
  needed: readonly Probe[],
  keys: RedisKeys,
): Promise<Pick<RedisFacts, 'denied' | 'error'>> {
  const denied = new Set<string>()
  const attempts: readonly (readonly [string, () => Promise<unknown>])[] = [
    ...needed.map(([command, ...args]) => [command, () => commands.redis.call(command, ...args)] as const),
    ['SUBSCRIBE', () => connected(subscriber).then(() => subscriber.redis.subscribe(keys.channel('probe')))],
  ]
  for (const [command, attempt] of attempts) {
    const failure = await failureOf(attempt())
    if (failure?.startsWith('NOPERM')) denied.add(command)
    // After some errors the connection is replaced, so later commands would fail for that reason.
    else if (failure !== undefined) return { denied: [...denied], error: failure }
  }
  return { denied: [...denied] }
}

/** Tries each primary for what the gateway relies on. */
async function tryPrimaries(
  commands: RedisConnection,
  { keyPrefix }: RedisStoreConfig,
): Promise<Pick<RedisFacts, 'unfit' | 'error'>> {
  const trials = commands.primaries().map((server) => trialAt(commands, server, keyPrefix))
  try {
    const faults = trials.map(async (trial) => trial && ((await tryScripts(trial)) ?? (await tryConnections(trial))))
    const unfit = (await Promise.all(faults)).find((fault) => fault !== undefined)
    return withoutUndefined({ unfit })
  } catch (error) {
    return { error: reason(error) }
  }
}

async function failureOf(command: Promise<unknown>): Promise<string | undefined> {
  try {
    await command
    return undefined
  } catch (error) {
    const text = reason(error)
    return text.startsWith('NOSCRIPT') ? undefined : text
  }
}

async function serverFacts(server: Redis): Promise<RedisServerFacts> {
  const info = await server.info().catch(() => '')
  const field = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1]
  const number = (name: string) => {
    const text = field(name)
    return text === undefined ? undefined : Number(text)
  }
  const version = field('valkey_version') ?? field('redis_version')
  const [pingMs, clockAheadMs] = [await medianPing(server), await clockAhead(server)]
  return withoutUndefined({
    version: version && `${field('server_name') ?? 'redis'} ${version}`,
    mode: field('redis_mode') ?? field('server_mode'),
    role: field('role'),
    run_id: field('run_id'),
    maxmemory: number('maxmemory'),
    used_memory: number('used_memory'),
    maxmemory_policy: field('maxmemory_policy'),
    evicted_keys: number('evicted_keys'),
    aof_enabled: number('aof_enabled'),
    rdb_saves: number('rdb_saves'),
    rdb_last_load_keys_loaded: number('rdb_last_load_keys_loaded'),
    pingMs,
    clockAheadMs,
  })
}

/** A key for each primary to write to. Empty when no replica must acknowledge. */
function placesFor(
  commands: RedisConnection,
  keys: RedisKeys,
  { replicasAcknowledge }: RedisStoreConfig,
): ReadonlyMap<Redis, string> {
  const tags = replicasAcknowledge > 0 ? commands.anchors : []
  return new Map(tags.map((tag) => [commands.serverOf(tag), keys.tombstone(tag as SidTag)]))
}

async function countReplicas(
  server: Redis,
  place: string | undefined,
  { replicasAcknowledge, timeoutMs }: RedisStoreConfig,
): Promise<number | undefined> {
  if (place === undefined) return undefined
  try {
    await server.set(place, '1', 'PX', 1_000)
    return await server.wait(replicasAcknowledge, Math.min(longestWaitMs, Math.floor(timeoutMs / 2)))
  } catch {
    return undefined
  }
}

/** The same object without the members that are `undefined`. */
function withoutUndefined<T extends object>(members: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>
  }
}

async function medianPing(server: Redis): Promise<number | undefined> {
  const times: number[] = []
  try {
    for (let count = 0; count < pings; count++) {
      const began = performance.now()
      await server.ping()
      times.push(performance.now() - began)
    }
  } catch {
    return undefined
  }
  return times.toSorted((a, b) => a - b)[Math.floor(pings / 2)]
}

async function clockAhead(server: Redis): Promise<number | undefined> {
  try {
    const began = Date.now()
    const [seconds, microseconds] = await server.time()
    return Math.round(Number(seconds) * 1000 + Number(microseconds) / 1000 - (began + Date.now()) / 2)
  } catch {
    return undefined
  }
}
