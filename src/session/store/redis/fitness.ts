import { once } from 'node:events'
import { setImmediate, setTimeout as wait } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { reason } from '../../../core/errors.ts'
import type { SessionKey, SidTag, SubTag } from '../../../core/names.ts'
import { pauses } from '../../../core/pauses.ts'
import { randomToken } from '../../../core/random.ts'
import type { Log } from '../../../observe/log.ts'
import { RedisKeys } from './keys.ts'
import { longestSilenceMs } from './options.ts'
import { isErrorReply, type RedisConnection } from './redis-connection.ts'
import { scripts, type ScriptName } from './scripts.ts'

/** How long the keys of a trial are kept at most, in ms. They are deleted at its end. */
const keptMs = 10_000
/** How far times may differ that a server tells at about the same time, in ms. */
const toleranceMs = 1_000
/** How many times the state is read while a script runs. */
const mostReads = 1_000

/**
 * Whether the primaries do what the gateway relies on. A server that only speaks the protocol of
 * Redis could lose logouts without a sign, so each new connection begins with a trial. No reply
 * counts before it is over, and none counts from a store that has failed.
 */
export class StoreFitness {
  readonly #commands: RedisConnection
  readonly #keyPrefix: string
  readonly #log: Log
  /** The current connection of each server. */
  readonly #connections = new WeakMap<Redis, object>()
  readonly #pending = new Set<Promise<unknown>>()
  readonly #faults = new Map<Redis, string>()

  constructor(commands: RedisConnection, keyPrefix: string, log: Log) {
    this.#commands = commands
    this.#keyPrefix = keyPrefix
    this.#log = log
    const tryAll = () => {
      for (const server of commands.servers) this.#begin(server)
    }
    commands.redis.on('ready', tryAll)
    // A Cluster emits these. Its nodes reconnect by themselves.
    commands.redis.on('refresh', tryAll)
    commands.redis.on('+node', (node: Redis) => void node.on('ready', tryAll))
    commands.redis.on('-node', (node: Redis) => void this.#faults.delete(node))
  }

  /** Resolves when the trials that are under way are over; `undefined` when there are none. */
  get pending(): Promise<unknown> | undefined {
    return this.#pending.size === 0 ? undefined : Promise.all(this.#pending)
  }

  /** What a primary does not do. */
  get fault(): string | undefined {
    return this.#faults.size === 0 ? undefined : [...this.#faults.values()][0]
  }

  #begin(server: Redis): void {
    if (this.#connections.has(server) || this.#commands.redis.status !== 'ready') return
    const connection = {}
    this.#connections.set(server, connection)
    server.once('close', () => void this.#connections.delete(server))
    void this.#try(server, connection)
  }

  async #try(server: Redis, connection: object, isRetry = false): Promise<void> {
    const trial = this.#trial(server)
    if (trial === undefined || this.#connections.get(server) !== connection) return
    const first = this.#judge(trial, tryScripts, isRetry)
    this.#pending.add(first)
    const hasPassed = await first
    this.#pending.delete(first)
    if (hasPassed && (await this.#judge(trial, tryConnections, isRetry))) this.#note(server, undefined)
    else setTimeout(() => void this.#try(server, connection, true), pauses.tryStoreAgainMs).unref()
  }

  #trial(server: Redis): Trial | undefined {
    try {
      return trialAt(this.#commands, server, this.#keyPrefix)
    } catch {
      return undefined
    }
  }

  /** @returns whether the server has passed; `false` also when that is unknown */
  async #judge(trial: Trial, run: (trial: Trial) => Promise<string | undefined>, isRetry: boolean): Promise<boolean> {
    try {
      const fault = await run(trial)
      if (fault !== undefined) this.#note(trial.server, fault)
      return fault === undefined
    } catch (error) {
      // The first time, the connection was mostly lost meanwhile.
      if (isRetry) this.#log.debug('store.not_proven', { store: this.#commands.address, reason: reason(error) })
      return false
    }
  }

  #note(server: Redis, fault: string | undefined): void {
    const before = this.fault
    if (fault === undefined) this.#faults.delete(server)
    else this.#faults.set(server, fault)
    const { fault: now } = this
    if (now === before) return
    const store = this.#commands.address
    if (now === undefined) this.#log.info('store.fit', { store })
    else
      this.#log.error('store.unfit', {
        store,
        reason: now,
        hint: 'The gateway refuses this store, because it could lose logouts. Use a server that docs/redis.md names.',
      })
  }
}

/** A trial of a primary, with a tag whose slot it owns. */
export interface Trial {
  readonly server: Redis
  readonly tag: SidTag
  /** Below a prefix of their own, so that nothing takes them for those of a session. */
  readonly keys: RedisKeys
  /** Runs a script by a single command, so that the order of several scripts is certain. */
  readonly run: (script: ScriptName, keys: readonly string[], args: readonly (string | number)[]) => Promise<unknown>
}

/** A trial of this primary; `undefined` when it owns no slot, or too few. */
export function trialAt(commands: RedisConnection, server: Redis, keyPrefix: string): Trial | undefined {
  const keys = new RedisKeys(`${keyPrefix}trial:${randomToken(12)}:`)
  for (let attempt = 0; attempt < 1_000; attempt += 1) {
    const tag = randomToken(18) as SidTag
    if (commands.serverOf(tag) !== server) continue
    const run: Trial['run'] = (script, places, args) =>
      server.call('EVAL', scripts[script].trim(), places.length, ...places, ...args)
    return { server, tag, keys, run }
  }
  return undefined
}

/**
 * Tries whether a primary runs the scripts of the gateway, time goes on inside of them as it does
 * outside, and keys expire when they should. All but the last step are sent at once.
 * @returns what is wrong
 * @throws an error that says nothing about what the server can do
 */
export async function tryScripts({ server, tag, keys, run }: Trial): Promise<string | undefined> {
  const [lasting, brief, late] = [1, 2, 3].map(() => randomToken(24)) as [string, string, string]
  const placeOf = (hash: string) => keys.session(`${tag}:${hash}` as SessionKey)
  const { session, lease, ended, index, tombstone } = placeOf(lasting)
  const [subIndex, jti, channel] = [keys.subIndex(tag as string as SubTag), keys.jti(tag, 'jti'), keys.channel('trial')]
  const ttlsOf = (...places: readonly string[]) => Promise.all(places.map((place) => server.pttl(place)))
  const create = (hash: string, idleMs: number, begunAt: number) => {
    const place = placeOf(hash)
    const args = [hash, 'sealed', 'sub', idleMs, keptMs, begunAt, '']
    return run('create', [place.session, index, tombstone, place.ended], args)
  }
  const beginEnding = () => run('beginEnding', [index, tombstone, jti], [2, keptMs, channel, 'trial'])
  try {
    const [before, inside, after, entered, created, , ttls, members, endings, again, refused, found, kept] =
      await Promise.all([
        server.time(),
        run('clock', [session], []),
        server.time(),
        run('enterSub', [subIndex, tombstone], [lasting, keptMs, 1]),
        create(lasting, keptMs, 1),
        create(brief, 1, 1),
        ttlsOf(session, index, subIndex),
        beginEnding(),
        run('endSessions', [index, session, lease, ended, jti], [channel, 'trial', 0, 1, keptMs, lasting]),
        beginEnding(),
        create(late, keptMs, 2),
        run('read', [session], []),
        ttlsOf(tombstone, jti),
      ])
    const clockFault = faultOfClock(Number(inside), millisecondsOf(before), millisecondsOf(after))
    if (clockFault !== undefined) return clockFault
    if (![...ttls, ...kept].every((ttl) => ttl > 0 && ttl <= keptMs + toleranceMs))
      return 'a key does not keep the expiry that a script has set'
    const hasEnded = isList(endings) && endings[1] === 1 && endings[2] === lasting && isGone(found)
    const isListed = isList(members) && members.includes(lasting)
    if (entered !== 1 || created !== 1 || !isListed || !hasEnded || again !== null || refused !== 0)
      return 'its scripts do not end a session as a Logout Token must'
    await wait(5)
    return isGone(await run('read', [placeOf(brief).session], [])) ? undefined : 'a key outlives its expiry'
  } catch (error) {
    return faultOf(error)
  } finally {
    const all = [session, placeOf(brief).session, placeOf(late).session, index, subIndex, tombstone, jti]
    server.del(...all).catch(() => {})
  }
}

/** @param inside the time inside a script, between the times before and after it, in ms */
function faultOfClock(inside: number, before: number, after: number): string | undefined {
  const aheadMs = inside - after
  if (aheadMs <= toleranceMs && inside >= before - toleranceMs) return undefined
  const seconds = (Math.abs(aheadMs) / 1000).toFixed(0)
  return `inside a script, its time is ${seconds} s ${aheadMs > 0 ? 'ahead of' : 'behind'} its time outside`
}

/**
 * Tries with a second connection whether scripts are atomic, and what they publish arrives.
 * @returns what is wrong
 * @throws an error that says nothing about what the server can do
 */
export async function tryConnections({ server, tag, keys, run }: Trial): Promise<string | undefined> {
  const [state, channel] = [keys.sidIndex(tag), keys.channel('trial')]
  const options = { connectionName: 'gatehouse-trial', lazyConnect: true, retryStrategy: () => null }
  const other = server.duplicate({ ...options, sentinelRetryStrategy: () => null, reconnectOnError: () => false })
  const disconnect = () => other.disconnect()
  server.once('close', disconnect)
  other.on('error', () => {})
  try {
    await other.connect()
    await server.set(state, 'whole', 'PX', keptMs)
    // Behind a Sentinel, it may be another server during a failover.
    if ((await other.get(state)) !== 'whole') throw new Error('the second connection leads to another server')
    if (await seesHalf(other, state, run))
      return 'another connection sees the middle of a script: scripts are not atomic'
    let hasArrived = false
    other.once('message', () => (hasArrived = true))
    await other.subscribe(channel)
    await run('publishMessage', [state], [channel, 'trial'])
    // The reply comes behind the message on the same connection, also if this process is busy.
    await other.ping()
    if (!hasArrived) {
      await once(other, 'message', { signal: AbortSignal.timeout(longestSilenceMs) }).catch(() => {})
      await other.ping()
    }
    return hasArrived ? undefined : 'a message that a script publishes does not reach its subscriber'
  } catch (error) {
    return faultOf(error)
  } finally {
    server.off('close', disconnect)
    disconnect()
    server.del(state).catch(() => {})
  }
}

/** Whether a connection sees what a script has written before it has ended. */
async function seesHalf(other: Redis, state: string, run: Trial['run']): Promise<boolean> {
  const seen: Promise<string | null>[] = []
  let isOver = false
  const writing = run('writeHalves', [state], [keptMs])
  writing.catch(() => {}).finally(() => (isOver = true))
  while (!isOver && seen.length < mostReads) {
    seen.push(other.get(state).catch(() => null))
    await setImmediate()
  }
  await writing
  return (await Promise.all(seen)).includes('half')
}

/** Errors of rights, roles, memory or Cluster nodes, in the ways of naming them inside a script. */
const passing =
  /\b(?:NOPERM|ACL failure|user executing the script|NOAUTH|WRONGPASS|READONLY|LOADING|OOM|MISCONF|NOREPLICAS|MOVED|ASK|TRYAGAIN|CLUSTERDOWN|MASTERDOWN|BUSY|UNKILLABLE)\b/

function faultOf(error: unknown): string {
  const why = reason(error)
  if (!isErrorReply(error) || passing.test(why)) throw error
  return why.includes('CROSSSLOT')
    ? `the keys of one sid do not lie in one slot: ${why}`
    : `it rejects a command of the gateway: ${why.slice(0, 200)}`
}

function millisecondsOf([seconds, microseconds]: readonly (number | string)[]): number {
  return Number(seconds) * 1000 + Number(microseconds) / 1000
}

function isList(reply: unknown): reply is readonly unknown[] {
  return Array.isArray(reply)
}

/** Whether the script `read` found no session. */
function isGone(found: unknown): boolean {
  return isList(found) && isList(found[0]) && found[0][0] === null
}
