import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Redis } from 'ioredis'
import type { RedisStoreConfig } from '../../src/config/model/session.ts'
import { type Clock, systemClock } from '../../src/core/clock.ts'
import type { SessionId, SessionKey } from '../../src/core/names.ts'
import { randomToken } from '../../src/core/random.ts'
import { Keyring } from '../../src/core/seal.ts'
import type { SessionEndings } from '../../src/session/live/endings.ts'
import { Sessions } from '../../src/session/live/live-sessions.ts'
import { PendingEndings } from '../../src/session/live/pending-endings.ts'
import { audienceOf, sessionKey } from '../../src/session/record/record.ts'
import type { TcpProxy } from '../support/tcp-proxy.ts'
import { assertUnavailable, hearing, open, settings, tick } from './redis-stores.ts'
import { until } from './store-contract.ts'

/** The audience of the sessions of all replicas. */
export const audience = audienceOf({ issuer: 'https://id.example.com', client_id: 'orders' })
const keyring = new Keyring([Buffer.alloc(32, 5)])

export interface Replica extends ReturnType<typeof open> {
  readonly sessions: Sessions
  readonly endings: SessionEndings
  readonly prefix: string
  /** The names of the audit events. */
  readonly audited: string[]
}

export interface ReplicaOptions {
  readonly graceMs?: number
  readonly clock?: Clock
}

/** The configuration of one Redis with this time limit. */
export const oneRedis = (port: number, timeoutMs: number): RedisStoreConfig => ({
  ...{ ...settings, timeoutMs },
  ...{ kind: 'redis', url: new URL(`redis://127.0.0.1:${port}`) },
})

const prefixes = new WeakMap<TestContext, string>()

/**
 * A replica with its sessions in one Redis (by port, with a generous time limit) or in a configured
 * store. All replicas of one test use the same key prefix.
 */
export function replica(
  t: TestContext,
  at: number | RedisStoreConfig,
  { graceMs = 0, clock = systemClock }: ReplicaOptions = {},
): Replica {
  const keyPrefix = prefixes.get(t) ?? `${randomToken(6)}:`
  prefixes.set(t, keyPrefix)
  const servers: RedisStoreConfig = typeof at === 'number' ? oneRedis(at, 2_000) : at
  const opened = open(t, { ...servers, keyPrefix }, clock)
  const audited: Replica['audited'] = []
  const pending = new PendingEndings(opened.log)
  const sessions = new Sessions({
    store: opened.store,
    keyring,
    audiences: [audience],
    config: { idleTimeoutMs: 3_600_000, absoluteTimeoutMs: 7_200_000, storeOutageGraceMs: graceMs },
    clock,
    log: opened.log,
    audit: { record: (event) => void audited.push(event) },
    pending,
  })
  const { endings } = sessions
  t.after(() => pending.clear())
  return { ...opened, sessions, endings, prefix: keyPrefix, audited }
}

/** A session that was created at one replica and that the other one has in memory too. */
export async function signedInAt(here: Replica, there: Replica, sid = 'one'): Promise<{ readonly id: SessionKey }> {
  await hearing(here.store, there.store)
  const claims = { sub: 'jane' }
  const tokens = { access_token: 'a', id_token: 'e30.e30.', obtained_at: 0, access_token_expires_at: 0 } as never
  const record = { iss: 'https://id.example.com', sub: 'jane', sid, tokens, claims, userinfo_read_at: 0 }
  let cookie: SessionId | undefined
  // A sign-in that begins within one round trip after a logout is rejected, because the order of
  // the two is unknown.
  await until(tick, async () => {
    cookie = await here.sessions.create(audience, record, (await here.store.time()).earliest)
    return cookie !== undefined
  })
  const id = sessionKey(cookie as unknown as SessionId)
  await until(tick, async () => {
    await there.sessions.find(id).catch(assertUnavailable)
    return there.sessions.findInMemory(id) !== undefined
  })
  return { id }
}

/**
 * When the last call began that returned `true`. A busy machine does not make this time later.
 */
export async function lastTrueAt(isTrue: () => boolean | Promise<boolean>): Promise<number> {
  let lastAskedAt = -Infinity
  await until(tick, async () => {
    const askedAt = performance.now()
    if (!(await isTrue())) return true
    lastAskedAt = askedAt
    return false
  })
  return lastAskedAt
}

/** The local port of the connection for notices of the replica behind a proxy. */
export async function portOfNotices(admin: Redis, prefix: string, proxy: TcpProxy): Promise<number> {
  await until(tick, async () => ((await admin.pubsub('NUMSUB', `${prefix}notices`))[1] as number) === 2)
  const clients = String(await admin.client('LIST')).split('\n')
  const ports = clients
    .filter((line) => line.includes('name=gatehouse-notices') && /\bsub=[1-9]/.test(line))
    .map((line) => Number(/\baddr=127\.0\.0\.1:(\d+)/.exec(line)?.[1]))
  return ports.find((port) => proxy.ports().includes(port)) ?? assert.fail('it does not listen')
}
