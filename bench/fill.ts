// Creates sessions without a browser and a provider. The gateway's code stores them, as after a
// callback. The parent process sends the orders.
import { randomInt } from 'node:crypto'
import { systemClock } from '../src/core/clock.ts'
import type { SessionKey } from '../src/core/names.ts'
import { randomToken } from '../src/core/random.ts'
import { Keyring } from '../src/core/seal.ts'
import type { Audit } from '../src/observe/audit.ts'
import type { Log } from '../src/observe/log.ts'
import { Sessions } from '../src/session/live/live-sessions.ts'
import { PendingEndings } from '../src/session/live/pending-endings.ts'
import { audienceOf, claimsOfSession, sessionKey } from '../src/session/record/record.ts'
import { RedisStore } from '../src/session/store/redis/redis-store.ts'
import { claimNames, manyClaimsOf, subOf } from './people.ts'

/** The store and the gateway of the sessions. */
export interface FillPlace {
  readonly redis: string
  /** The nodes of a Cluster, which then has the sessions instead. */
  readonly cluster?: readonly { readonly host: string; readonly port: number }[]
  readonly issuer: string
  readonly client_id: string
  readonly sessionKey: string
  readonly keyPrefix: string
  /** How many claims a person has. Absent: ten. */
  readonly claims?: number
}

/** An order to create sessions, or to end some of the created ones. */
export type FillOrder =
  | { readonly kind: 'fill'; readonly place: FillPlace; readonly count: number; readonly sample: number }
  | { readonly kind: 'end'; readonly place: FillPlace }

/** A created session: the ID in its cookie, and its `sub` and `sid` at the provider. */
export interface Filled {
  readonly id: string
  readonly sub: string
  readonly sid: string
}

/**
 * How many sessions are created or ended concurrently. Every process confirms an ending, so these
 * must be few.
 */
const atOnce = { fill: 256, end: 16 }
const absoluteTimeoutMs = 12 * 60 * 60_000

/** One of this number of sessions is kept for an ending. */
const endEvery = 10

const log: Log = { debug() {}, info() {}, announce() {}, warn() {}, error: console.error }
const audit: Audit = { record() {} }
const chance = randomToken(1_000_000)
const remembered = new Map<string, SessionKey[]>()

/** Returns the first `sample` of the `count` created sessions. */
async function fill(place: FillPlace, count: number, sample: number): Promise<Filled[]> {
  const filled: Filled[] = []
  const keys: SessionKey[] = []
  await withSessions(place, async (sessions) => {
    await manyTimes(count, atOnce.fill, async (n) => {
      const { sub, sid, ...record } = newRecord(place)
      const id = await sessions.create(audienceOf(place), { ...record, sub, sid }, Date.now())
      if (id === undefined) throw new Error('a session was refused')
      if (n < sample) filled.push({ id, sub, sid })
      else if (n % endEvery === 0) keys.push(sessionKey(id))
    })
  })
  remembered.set(place.redis, keys)
  return filled
}

/** Ends the kept sessions. Resolves to their number. */
async function end(place: FillPlace): Promise<number> {
  const keys = remembered.get(place.redis) ?? []
  let ended = 0
  await withSessions(place, async ({ endings }) => {
    await manyTimes(keys.length, atOnce.end, async (n) => {
      const { length } = await endings.endOne(keys[n] as SessionKey, 'administrator')
      ended += length
    })
  })
  return ended
}

async function withSessions(place: FillPlace, work: (created: Sessions) => Promise<void>): Promise<void> {
  const server = place.cluster
    ? ({ kind: 'redis_cluster', nodes: place.cluster } as const)
    : ({ kind: 'redis', url: new URL(place.redis) } as const)
  const settings = {
    username: undefined,
    password: undefined,
    tls: undefined,
    keyPrefix: place.keyPrefix,
    replicasAcknowledge: 0,
  }
  const store = new RedisStore({ ...server, ...settings, timeoutMs: 10_000 }, { log, clock: systemClock })
  try {
    await store.ping()
    const keyring = new Keyring([Buffer.from(place.sessionKey, 'base64')])
    const config = { idleTimeoutMs: 30 * 60_000, absoluteTimeoutMs, storeOutageGraceMs: 0 }
    const parts = { store, keyring, audiences: [audienceOf(place)], config, clock: systemClock, log, audit }
    await work(new Sessions({ ...parts, pending: new PendingEndings(log) }))
  } finally {
    await store.close()
  }
}

async function manyTimes(count: number, atOnce: number, work: (n: number) => Promise<void>): Promise<void> {
  let next = 0
  const worker = async () => {
    while (next < count) await work(next++)
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, count) }, worker))
}

/**
 * The record of a new person, with claims, and with tokens as long as those of a provider whose
 * access and refresh tokens are JWTs.
 */
function newRecord({ issuer: iss, claims: count = claimNames.length }: FillPlace) {
  const person = randomInt(1e12)
  const [sub, sid, now] = [subOf(person), randomToken(16), Date.now()]
  const tokens = {
    access_token: token(1200),
    refresh_token: token(670),
    id_token: token(1000),
    obtained_at: now,
    access_token_expires_at: now + absoluteTimeoutMs,
  }
  const claims = claimsOfSession(manyClaimsOf(person, count), { iss, sub, sid })
  return { iss, sub, sid, origin: 'https://orders.example.com', tokens, claims, userinfo_read_at: now }
}

/** A random text of this length, created with little processor time. */
function token(length: number): string {
  const at = randomInt(chance.length - length)
  return chance.slice(at, at + length)
}

process.on('message', (order: FillOrder) => {
  const done = order.kind === 'fill' ? fill(order.place, order.count, order.sample) : end(order.place)
  done.then(
    (result) => process.send?.(result),
    (error: unknown) => {
      console.error(error)
      process.exit(1)
    },
  )
})
