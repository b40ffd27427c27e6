import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Redis } from 'ioredis'
import type { RedisStoreConfig } from '../../src/config/model.ts'
import { type Clock, systemClock } from '../../src/core/clock.ts'
import type { SessionKey } from '../../src/core/names.ts'
import { randomToken } from '../../src/core/random.ts'
import { Keyring } from '../../src/core/seal.ts'
import { createSessions } from '../../src/session/create-sessions.ts'
import type { SessionEndings } from '../../src/session/endings.ts'
import { PendingEndings } from '../../src/session/pending-endings.ts'
import { audienceOf, sessionKey } from '../../src/session/record.ts'
import type { Sessions } from '../../src/session/sessions.ts'
import type { TcpProxy } from '../support/tcp-proxy.ts'
import { assertUnavailable, hearing, open, settings, tick } from './redis-stores.ts'
import { until } from './store-contract.ts'

const audience = audienceOf({ issuer: 'https://id.example.com', client_id: 'orders' })
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

/** One Redis, that may take so long to answer. */
export const oneRedis = (port: number, timeoutMs: number): RedisStoreConfig => ({
  ...{ ...settings, timeoutMs },
  ...{ kind: 'redis', url: new URL(`redis://127.0.0.1:${port}`) },
})

const prefixes = new WeakMap<TestContext, string>()

/**
 * A gateway's sessions, in one Redis, that may take longer on a busy machine, or in what is named;
 * all of one test are in the same place.
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
  const { sessions, endings } = createSessions({
    store: opened.store,
    keyring,
    audience,
    config: { idleTimeoutMs: 3_600_000, absoluteTimeoutMs: 7_200_000, storeOutageGraceMs: graceMs },
    clock,
    log: opened.log,
    audit: { record: (event) => void audited.push(event) },
    pending,
  })
  t.after(() => pending.clear())
  return { ...opened, sessions, endings, prefix: keyPrefix, audited }
}

/** Somebody signed in at one replica, whom the other one knows too. */
export async function signedInAt(here: Replica, there: Replica, sid = 'one'): Promise<{ readonly id: SessionKey }> {
  await hearing(here.store, there.store)
  const claims = { sub: 'jane' }
  const tokens = { access_token: 'a', obtained_at: 0, access_token_expires_at: 0 } as never
  const record = { iss: 'https://id.example.com', sub: 'jane', sid, tokens, claims, userinfo_read_at: 0 }
  const cookie = await here.sessions.create(record, (await here.store.time()).earliest)
  assert.ok(cookie !== undefined)
  const id = sessionKey(cookie)
  await until(tick, async () => {
    await there.sessions.find(id).catch(assertUnavailable)
    return there.sessions.findInMemory(id) !== undefined
  })
  return { id }
}

/**
 * When the last question was asked that was answered with `true`: a busy machine makes it no later.
 */
export async function lastTrueAt(ask: () => boolean | Promise<boolean>): Promise<number> {
  let lastAskedAt = -Infinity
  await until(tick, async () => {
    const askedAt = performance.now()
    if (!(await ask())) return true
    lastAskedAt = askedAt
    return false
  })
  return lastAskedAt
}

/** The port from which the listening connection of the replica behind a proxy comes. */
export async function portOfNotices(admin: Redis, prefix: string, proxy: TcpProxy): Promise<number> {
  await until(tick, async () => ((await admin.pubsub('NUMSUB', `${prefix}notices`))[1] as number) === 2)
  const clients = String(await admin.client('LIST')).split('\n')
  const ports = clients
    .filter((line) => line.includes('name=gatehouse-notices') && /\bsub=[1-9]/.test(line))
    .map((line) => Number(/\baddr=127\.0\.0\.1:(\d+)/.exec(line)?.[1]))
  return ports.find((port) => proxy.ports().includes(port)) ?? assert.fail('it does not listen')
}
