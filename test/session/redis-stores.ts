import assert from 'node:assert/strict'
import { after, type TestContext } from 'node:test'
import { Redis } from 'ioredis'
import type { RedisServerConfig, RedisStoreConfig } from '../../src/config/model/session.ts'
import { type Clock, systemClock } from '../../src/core/clock.ts'
import { randomToken } from '../../src/core/random.ts'
import type { Log, LogFields } from '../../src/observe/log.ts'
import { tagOf } from '../../src/session/record/record.ts'
import { RedisStore } from '../../src/session/store/redis/redis-store.ts'
import type { SessionStore, StoreNotice } from '../../src/session/store/store.ts'
import { inTime } from '../support/in-time.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { allKeys, created, newSession, order, until } from './store-contract.ts'

export interface Line {
  readonly level: string
  readonly message: string
  readonly fields: LogFields | undefined
}

export interface Recorder extends Log {
  readonly lines: Line[]
  messages(): string[]
  warnings(): string[]
}

export function recorder(): Recorder {
  const lines: Line[] = []
  const at = (level: string) => (message: string, fields?: LogFields) => void lines.push({ level, message, fields })
  return {
    lines,
    messages: () => lines.map(({ message }) => message),
    warnings: () => lines.filter(({ level }) => level === 'warn').map(({ message }) => message),
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    announce: at('announce'),
  }
}

/** The time limit of a store whose Redis does not reply: tests wait for it, in ms. */
export const hastyMs = 400

/** What all configurations of these tests share. */
export const settings = {
  username: undefined,
  password: undefined,
  tls: undefined,
  keyPrefix: 'gatehouse:',
  timeoutMs: 5_000,
  replicasAcknowledge: 0,
}

/** A store that may still be connecting, with its log and its notices. */
export function open<Config extends RedisStoreConfig>(t: TestContext, config: Config, clock: Clock = systemClock) {
  const log = recorder()
  const store = new RedisStore(config, { log, clock })
  const notices: StoreNotice[] = []
  const heard: { readonly kind: string; readonly receivesNotices: boolean }[] = []
  store.onNotice((notice) => {
    notices.push(notice)
    heard.push({ kind: notice.kind, receivesNotices: store.receivesNotices() })
  })
  t.after(() => store.close())
  return { store, log, config, notices, heard }
}

/** A store that may still be connecting. */
export function openUrl(t: TestContext, given: Partial<RedisServerConfig> & { readonly url: URL }, clock?: Clock) {
  return open(t, { ...settings, kind: 'redis', ...given }, clock)
}

/** A store that is connected. */
export async function openAt(t: TestContext, { url }: RedisServer, given: Partial<RedisServerConfig> = {}) {
  const opened = openUrl(t, { url: new URL(url), ...given })
  await opened.store.ping()
  return opened
}

/** A Redis for all tests of a file that do not disturb it. */
export async function startSharedRedis() {
  const server = await startRedis({ after })
  const admin = new Redis(server.port, '127.0.0.1')
  after(() => admin.disconnect())
  /** Another process's store. */
  const openAnother = async (t: TestContext, given: Partial<RedisServerConfig> = {}, clock?: Clock) => {
    const opened = openUrl(t, { url: new URL(server.url), ...given }, clock)
    await opened.store.ping()
    return opened
  }
  /** A store in the Redis, which is emptied for it. */
  const openShared: typeof openAnother = async (...args) => {
    await admin.flushall()
    return openAnother(...args)
  }
  return { server, admin, openShared, openAnother }
}

/** How many endings a process could not confirm in time. */
function unconfirmed(log: Recorder): number {
  return log.warnings().filter((message) => message === 'store.endings_not_confirmed').length
}

export async function hearing(...stores: SessionStore[]): Promise<void> {
  for (const store of stores) await until(tick, () => store.receivesNotices?.() === true)
}

/** Asserts that when an ending resolves, every other process has dropped the session. */
export async function assertDropsElsewhere(
  { store, log }: ReturnType<typeof open>,
  others: readonly ReturnType<typeof open>[],
  rounds: number,
): Promise<void> {
  await hearing(store, ...others.map((other) => other.store))
  for (let round = 0; round < rounds; round++) {
    const session = await created(store, Date.now(), { sid: `sid ${round}`, sub: `sub ${round}` })
    const sibling = await created(store, Date.now(), { sub: `sub ${round}` })
    const waitedInVain = unconfirmed(log)
    if (round % 3 === 0) await store.endOne(session.key)
    if (round % 3 === 1) await store.endSid(tagOf(session.key), order(Date.now()))
    if (round % 3 === 2) await store.endSub(session.subTag, order(Date.now()))

    // The machine stalled, which may happen now and then.
    if (unconfirmed(log) > waitedInVain) continue
    for (const { notices } of others) {
      const dropped = notices.flatMap((notice) => (notice.kind === 'ended' ? notice.keys : []))
      assert.ok(dropped.includes(session.key), `round ${round}`)
      assert.equal(dropped.includes(sibling.key), round % 3 === 2)
    }
  }
  assert.ok(unconfirmed(log) < 5)
}

/** Resolves after this many further beats, of any process, at a Redis. */
export async function beats(redis: Redis, count: number): Promise<void> {
  const calls = async () => Number(/cmdstat_persist:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1] ?? 0)
  const before = await calls()
  await until(tick, async () => (await calls()) >= before + count)
}

/**
 * Resolves when the replica of a server has all its data. `key` is a key that the server may hold.
 */
export async function replicated(port: number, key = 'written'): Promise<void> {
  const direct = new Redis(port, '127.0.0.1')
  // WAIT is about the writes of the same connection.
  await direct.set(key, '1')
  assert.equal(await direct.wait(1, 5_000), 1)
  direct.disconnect()
}

/** How many entries of a store a Redis holds, apart from its epoch, which never expires. */
export async function sizeOf(redis: Redis, { config }: { readonly config: RedisStoreConfig }): Promise<number> {
  const keys = await redis.keys(`${config.keyPrefix}*`)
  return keys.filter((key) => !key.endsWith(':epoch')).length
}

export function tick(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 20))
}

export async function responds(store: SessionStore): Promise<boolean> {
  return store.ping().then(
    () => true,
    () => false,
  )
}

export function assertUnavailable(error: unknown): true {
  assert.equal((error as { code?: unknown }).code, 'ERR_STORE_UNAVAILABLE')
  return true
}

/** Asserts that every method rejects in time. */
export async function refusedInTime(store: SessionStore, timeoutMs = settings.timeoutMs): Promise<void> {
  const session = newSession(Date.now())
  const { key } = session
  const calls = [
    () => store.create(session),
    () => store.read(key),
    () => store.replace(key, Buffer.from('x'), 1),
    () => store.touch(key, 1_000),
    () => store.endOne(key),
    () => store.endSid(tagOf(key), order(Date.now())),
    () => store.endSub(session.subTag, order(Date.now())),
    () => allKeys(store),
    () => store.listSid(tagOf(key)),
    () => store.listSub(session.subTag),
    () => store.takeOnce(randomToken(8), 1_000),
    () => store.isMarked(randomToken(8)),
    () => store.acquireLease(key, 'owner', 1_000),
    () => store.renewLease(key, 'owner', 1_000),
    () => store.releaseLease(key, 'owner'),
    () => store.jobs.watch('audience', key, 1_000, 1_000),
    () => store.jobs.take('audience', { ended: [key], limit: 1, lease: 1_000 }),
    () => store.jobs.open(key, 1_000),
    () => store.jobs.lookAgain('audience', { key, until: 0 }, 1_000),
    () => store.jobs.postpone('audience', key, 1_000, Buffer.from('x')),
    () => store.jobs.remove('audience', key),
    () => store.ping(),
  ]
  await Promise.all(
    calls.map(async (call) => {
      const unavailable = { name: 'GatewayError', code: 'ERR_STORE_UNAVAILABLE' }
      await inTime(2 * timeoutMs, () => assert.rejects(call(), unavailable, String(call)))
    }),
  )
}
