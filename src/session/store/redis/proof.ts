import { once } from 'node:events'
import { setImmediate, setTimeout } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { reason } from '../../../core/errors.ts'
import type { SessionKey, SidTag, SubTag } from '../../../core/names.ts'
import { randomToken } from '../../../core/random.ts'
import { isErrorReply, type RedisConnection } from './connection.ts'
import { RedisKeys } from './keys.ts'
import { longestSilenceMs } from './options.ts'
import { scripts, type ScriptName } from './scripts.ts'

/** How long the keys of a proof are kept at most, in ms. They are deleted at its end. */
const keptMs = 10_000
/** How far times may differ that a server tells at about the same time, in ms. */
const toleranceMs = 1_000
/** How many times the state is read while a script runs. */
const mostReads = 1_000

/** Where something is proven: a primary, and a tag whose slot it owns. */
export interface ProofPlace {
  readonly server: Redis
  readonly tag: SidTag
  readonly keyPrefix: string
}

/** The place of a proof at a primary; `undefined` when it owns no slot, or too few. */
export function proofPlace(commands: RedisConnection, server: Redis, keyPrefix: string): ProofPlace | undefined {
  for (let attempt = 0; attempt < 1_000; attempt += 1) {
    const tag = randomToken(18) as SidTag
    if (commands.serverOf(tag) === server) return { server, tag, keyPrefix }
  }
  return undefined
}

/**
 * Proves that a primary runs the scripts of the gateway, that time goes on inside of them as it
 * does outside, and that keys expire when they should. It begins and ends a session, whose keys
 * have their own prefix. All but the last step are sent at once.
 * @returns what is wrong
 * @throws an error that says nothing about what the server can do
 */
export async function proveScripts({ server, tag, keyPrefix }: ProofPlace): Promise<string | undefined> {
  const keys = new RedisKeys(proofPrefix(keyPrefix))
  const [lasting, brief, late] = [1, 2, 3].map(() => randomToken(24)) as [string, string, string]
  const placeOf = (hash: string) => keys.session(`${tag}:${hash}` as SessionKey)
  const { session, lease, ended, index, tombstone } = placeOf(lasting)
  const [subIndex, jti, channel] = [
    keys.subIndex(tag as string as SubTag),
    keys.jti(tag, 'proof'),
    keys.channel('proof'),
  ]
  const run = runnerAt(server)
  const create = (hash: string, idleMs: number, begunAt: number) =>
    run(
      'create',
      [placeOf(hash).session, index, tombstone, placeOf(hash).ended],
      [...[hash, 'sealed', 'sub', idleMs, keptMs, begunAt, '']],
    )
  const beginEnding = () => run('beginEnding', [index, tombstone, jti], [2, keptMs, channel, 'proof'])
  try {
    const [before, inside, after, entered, created, , ttls, members, endings, again, refused, found, kept] =
      await Promise.all([
        server.time(),
        run('clock', [session], []),
        server.time(),
        run('enterSub', [subIndex, tombstone], [lasting, keptMs, 1]),
        create(lasting, keptMs, 1),
        create(brief, 1, 1),
        Promise.all([session, index, subIndex].map((key) => server.pttl(key))),
        beginEnding(),
        run('endSessions', [index, session, lease, ended, jti], [channel, 'proof', 0, 1, keptMs, lasting]),
        beginEnding(),
        create(late, keptMs, 2),
        run('read', [session], []),
        Promise.all([tombstone, jti].map((key) => server.pttl(key))),
      ])
    const aheadMs = Number(inside) - millisecondsOf(after)
    if (aheadMs > toleranceMs || Number(inside) < millisecondsOf(before) - toleranceMs)
      return `inside a script, its time is ${(Math.abs(aheadMs) / 1000).toFixed(0)} s ${aheadMs > 0 ? 'ahead of' : 'behind'} its time outside`
    if (![...ttls, ...kept].every((ttl) => ttl > 0 && ttl <= keptMs + toleranceMs))
      return 'a key does not keep the expiry that a script has set'
    const hasEnded = isList(endings) && endings[1] === 1 && endings[2] === lasting && isGone(found)
    const isListed = isList(members) && members.includes(lasting)
    if (entered !== 1 || created !== 1 || !isListed || !hasEnded || again !== null || refused !== 0)
      return 'its scripts do not end a session as a Logout Token must'
    await setTimeout(5)
    if (!isGone(await run('read', [placeOf(brief).session], []))) return 'a key outlives its expiry'
    return undefined
  } catch (error) {
    return faultOf(error)
  } finally {
    const all = [session, placeOf(brief).session, placeOf(late).session, index, subIndex, tombstone, jti]
    server.del(...all).catch(() => {})
  }
}

/**
 * Proves with a second connection that scripts are atomic, and that what a script publishes
 * arrives.
 * @returns what is wrong
 * @throws an error that says nothing about what the server can do
 */
export async function proveConnections({ server, tag, keyPrefix }: ProofPlace): Promise<string | undefined> {
  const keys = new RedisKeys(proofPrefix(keyPrefix))
  const [state, channel] = [keys.sidIndex(tag), keys.channel('proof')]
  const run = runnerAt(server)
  const options = { connectionName: 'gatehouse-proof', lazyConnect: true, retryStrategy: () => null }
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
    await run('announce', [state], [channel, 'proof'])
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
async function seesHalf(other: Redis, state: string, run: ReturnType<typeof runnerAt>): Promise<boolean> {
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

/** Keys below a prefix of their own, so that nothing takes them for those of a session. */
function proofPrefix(keyPrefix: string): string {
  return `${keyPrefix}proof:${randomToken(12)}:`
}

/** Runs scripts by a single command, so that the order of several scripts is certain. */
function runnerAt(server: Redis) {
  return (script: ScriptName, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> =>
    server.call('EVAL', scripts[script].trim(), keys.length, ...keys, ...args)
}

/**
 * Errors that are about rights, roles, memory or a node of a Cluster. Redis names the reason inside
 * of a script in different ways.
 */
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
