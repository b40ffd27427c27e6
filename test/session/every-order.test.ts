// Own process: commands of every connection to Redis wait for their turn.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { after, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { Redis } from 'ioredis'
import type { RedisStoreConfig } from '../../src/config/model/session.ts'
import type { SessionKey } from '../../src/core/names.ts'
import { Keyring } from '../../src/core/seal.ts'
import type { TokenSet } from '../../src/core/token-set.ts'
import type { Log } from '../../src/observe/log.ts'
import type { Provider, Refreshed, Userinfo } from '../../src/provider/provider.ts'
import type { SessionEndings } from '../../src/session/live/endings.ts'
import { Sessions } from '../../src/session/live/live-sessions.ts'
import { PendingEndings } from '../../src/session/live/pending-endings.ts'
import { audienceOf, sessionKey } from '../../src/session/record/record.ts'
import { RedisStore } from '../../src/session/store/redis/redis-store.ts'
import { scripts } from '../../src/session/store/redis/scripts.ts'
import type { SessionStore } from '../../src/session/store/store.ts'
import { refresh, type UpkeepParts } from '../../src/tokens/refresh.ts'
import { setPauses } from '../support/pauses.ts'
import { startRedis } from '../support/redis.ts'
import { isLongSearch } from '../support/searches.ts'
import { noApis, noClaims } from '../support/signing-provider.ts'
import { searchOrders, step, stepsOf, type Actor, type Searched, type Stop } from './every-order.ts'

// Each beat brings the time in Redis, so no order needs another query than the one before.
setPauses({ proveNoticesMs: Infinity })

const minute = 60_000
const config = { idleTimeoutMs: 60 * minute, absoluteTimeoutMs: 600 * minute, storeOutageGraceMs: 0 }
const iss = 'https://id.example.com'
const [sub, sid] = ['jane', 'her session at the provider']
const audience = audienceOf({ issuer: iss, client_id: 'orders' })
const keyring = new Keyring([Buffer.alloc(32, 3)])
const quiet: Log = { debug() {}, info() {}, warn() {}, error() {}, announce() {} }

const server = await startRedis({ after })
const direct = new Redis(server.port, '127.0.0.1')
after(() => direct.disconnect())

/** What happens at the same time as others, in as many steps as it has commands. */
type Event = 'sign_in' | 'refresh' | 'logout_sid' | 'logout_sub' | 'sign_out'
/**
 * What happens in one step, before any of the others or after all of them. `restore`: Redis and the
 * gateways are restarted, Redis from a copy of the beginning; what had begun is not finished.
 */
type Fault = 'suspended_past_the_lease' | 'crash' | 'expiry' | 'clock_ahead' | 'clock_behind' | 'restore'

/** How far a clock is off, in ms. */
const clockOffsets: Partial<Record<Fault, number>> = { clock_ahead: 2_000, clock_behind: -2_000 }

/** The time in Redis, in ms since the epoch; no two readings are the same. */
let time = Date.now()
let readAt = performance.now()

/**
 * A provider that accepts a refresh token again and again until the grant ends, and remembers what
 * it issued.
 */
class LenientProvider {
  hasEnded = false
  readonly used: string[] = []
  #issued = 0

  issue(): TokenSet {
    this.#issued += 1
    const payload = Buffer.from(JSON.stringify({ iss, sub, sid, iat: this.#issued })).toString('base64url')
    const tokens = { access_token: `a${this.#issued}`, refresh_token: `r${this.#issued}`, id_token: `e30.${payload}.` }
    return { ...tokens, obtained_at: this.#issued, access_token_expires_at: 0 }
  }

  /** The refresh token that was issued last. */
  get latest(): string {
    return `r${this.#issued}`
  }

  /**
   * The provider as a replica reaches it. A replica that finds the lease taken gives up at once.
   */
  get parts(): UpkeepParts['provider'] {
    const grant = ['the grant']
    return {
      config: { timeoutMs: 0, ...noClaims } as Provider['config'],
      apis: noApis,
      refresh: ({ refresh_token }) =>
        step({ what: `refresh with ${refresh_token}`, reads: [], writes: grant }, (): Refreshed => {
          this.used.push(refresh_token)
          return this.hasEnded ? { kind: 'invalid_grant' } : { kind: 'refreshed', tokens: this.issue() }
        }),
      userinfo: () =>
        step({ what: 'userinfo', reads: grant, writes: [] }, (): Userinfo => {
          return this.hasEnded ? { kind: 'unauthorized' } : { kind: 'claims', claims: { sub } }
        }),
    }
  }
}

interface Replica {
  readonly store: SessionStore
  readonly sessions: Sessions
  readonly endings: SessionEndings
  readonly log: Log
  readonly audit: { record(): void }
  readonly clock: { aheadMs: number; now(): number }
}

type Pair = readonly [Replica, Replica]

/**
 * Gateways that share a Redis. They are started once, because each order has sessions of its own.
 */
interface Replicas {
  readonly running: Pair
  /**
   * Those that take their place when all are restarted. They have seen nothing of what came before.
   */
  readonly restarted: Pair
}

type Change = (store: SessionStore, clock: Replica['clock']) => void

async function startReplica(change: Change): Promise<Replica> {
  const clock = { aheadMs: 0, now: () => time + clock.aheadMs }
  const storeConfig: RedisStoreConfig = {
    ...{ kind: 'redis', url: new URL(server.url), keyPrefix: 'gatehouse:', timeoutMs: minute },
    ...{ username: undefined, password: undefined, tls: undefined, replicasAcknowledge: 0 },
  }
  const store = new RedisStore(storeConfig, { log: quiet, clock })
  // A replica knows the time in Redis without asking: that costs no step now and then.
  const timeInRedis = async () => {
    const now = performance.now()
    // It goes on while the machine stalls: an order subtracts how long ago it arrived.
    time = Math.ceil(time + 1 + now - readAt)
    readAt = now
    return { earliest: time, latest: time }
  }
  change(Object.assign(store, { time: timeInRedis }), clock)
  after(() => store.close())
  await store.ping()
  const shared = { log: quiet, audit: { record: () => {} }, clock }
  const pending = new PendingEndings(quiet)
  const sessions = new Sessions({ ...shared, store, keyring, audiences: [audience], config, pending })
  const { endings } = sessions
  return { ...shared, store, sessions, endings }
}

async function startReplicas(change: Change = () => {}): Promise<Replicas> {
  const [first, second, third, fourth] = await Promise.all([1, 2, 3, 4].map(() => startReplica(change)))
  assert.ok(first && second && third && fourth)
  return { running: [first, second], restarted: [third, fourth] }
}

const unchanged = await startReplicas()

interface SignIn {
  key: SessionKey | undefined
  mustBeGone: boolean
}

/** One order of events. */
class Run {
  readonly #provider = new LenientProvider()
  readonly #faults: readonly Fault[]
  readonly #replicas: Replicas
  #pair: Pair
  readonly #signIns: SignIn[] = []
  readonly #begun = new Set<string>()
  #copy: readonly (readonly [place: Buffer, content: Buffer])[] = []
  /** The session that is there from the beginning. */
  key = '' as SessionKey
  readonly #ended = new EventEmitter()
  #mustBeGone = false
  #mayBeGone = false
  #hasCrashed = false

  constructor(faults: readonly Fault[], replicas: Replicas) {
    this.#faults = faults
    this.#replicas = replicas
    this.#pair = replicas.running
    for (const { clock } of this.#pair) clock.aheadMs = 0
  }

  get #canRestore(): boolean {
    return this.#faults.includes('restore')
  }

  async begin(): Promise<void> {
    await direct.flushall()
    const [first] = this.#pair
    this.key = (await this.#create(first, await timeAt(first))) ?? assert.fail('nobody is signed in')
    if (!this.#canRestore) return
    const places = await direct.keysBuffer('*')
    this.#copy = await Promise.all(places.map(async (place) => [place, await direct.dumpBuffer(place)] as const))
  }

  actor(event: Event, at: number): Actor {
    const name = `${event} at ${at}`
    const run = async () => {
      if (this.#canRestore) await step({ what: 'begins', reads: [], writes: [] }, () => void this.#begun.add(name))
      return this.#take(event, this.#pair[at % 2] as Replica)
    }
    return { name, run }
  }

  fault(fault: Fault, actors: readonly Actor[]): Actor {
    const [victim] = actors as [Actor]
    const [tag = '', hash = ''] = this.key.split(':')
    const place = (kind: string, name: string) => `gatehouse:{${tag}}:${kind}:${name}`
    const take = (writes: string | string[], work: (stop: Stop) => unknown) =>
      step({ what: fault, reads: [], writes: [writes].flat() }, work)
    const setClock = () =>
      take(
        actors.filter((_, at) => at % 2 === 0).map(({ name }) => stepsOf(name)),
        () => (this.#replicas.running[0].clock.aheadMs = clockOffsets[fault] ?? 0),
      )
    const runs: Record<Fault, () => Promise<unknown>> = {
      suspended_past_the_lease: () => take(place('l', 'the first'), () => direct.del(place('l', hash))),
      expiry: () =>
        take(place('s', 'the first'), () => {
          this.#mustBeGone = true
          return direct.del(place('s', hash))
        }),
      crash: () =>
        take(stepsOf(victim.name), (stop) => {
          this.#hasCrashed = true
          stop(victim.name)
        }),
      clock_ahead: setClock,
      clock_behind: setClock,
      // Before anything has ended, nothing can come back.
      restore: async () => {
        await once(this.#ended, 'ended')
        const steps = actors.map(({ name }) => stepsOf(name))
        await take(steps, (stop) => this.#restore(place('s', hash), stop))
      },
    }
    return { name: fault, run: runs[fault] }
  }

  #hasEnded(): void {
    this.#mustBeGone = true
    this.#ended.emit('ended')
  }

  async #restore(session: string, stop: Stop): Promise<void> {
    for (const name of this.#begun) stop(name)
    this.#pair = this.#replicas.restarted
    this.#hasCrashed = true
    const restoring = direct.multi().flushall()
    for (const [place, content] of this.#copy) restoring.restore(place, 2 * config.absoluteTimeoutMs, content)
    // The Redis of this test goes on running, so the copy names an earlier run.
    await restoring.hset(session, 'run', 'an earlier run').exec()
  }

  /**
   * With a provider that went on refreshing, an ended session that was restored would be confirmed.
   */
  async #endGrant(): Promise<void> {
    if (this.#canRestore)
      await step({ what: 'the grant ends', reads: [], writes: ['the grant'] }, () => (this.#provider.hasEnded = true))
  }

  async #take(event: Event, replica: Replica): Promise<unknown> {
    switch (event) {
      case 'sign_in':
        return this.#signIn(replica)
      case 'refresh':
        return this.#refresh(replica)
      case 'sign_out':
        this.#mayBeGone = true
        await replica.endings.endOne(this.key, 'person')
        await this.#endGrant()
        return this.#hasEnded()
      case 'logout_sid':
      case 'logout_sub':
        return this.#logOut(event, replica)
    }
  }

  async #signIn(replica: Replica): Promise<void> {
    const known: SignIn = { key: undefined, mustBeGone: false }
    const begun_at = await step({ what: 'a sign-in begins', reads: [], writes: ['time'] }, () => {
      this.#signIns.push(known)
      return timeAt(replica)
    })
    known.key = await this.#create(replica, begun_at)
  }

  async #create({ sessions }: Replica, begun_at: number): Promise<SessionKey | undefined> {
    const who = { iss, sub, sid, claims: { sub }, userinfo_read_at: 0 }
    const id = await sessions.create(audience, { ...who, tokens: this.#provider.issue() }, begun_at)
    return id && sessionKey(id)
  }

  async #refresh(replica: Replica): Promise<void> {
    const seen = await replica.sessions.read(this.key)
    if (seen === undefined) return
    await refresh(seen, { ...replica, provider: this.#provider.parts }).catch((error: unknown) => {
      assert.equal((error as { code?: unknown }).code, 'ERR_PROVIDER_UNAVAILABLE', 'only the lease may be in the way')
    })
  }

  async #logOut(event: 'logout_sid' | 'logout_sub', { endings }: Replica): Promise<void> {
    await this.#endGrant()
    // The order means each person whose sign-in has begun when it arrives.
    const meant = await step({ what: 'a Logout Token arrives', reads: [], writes: ['time'] }, () => {
      this.#mayBeGone = true
      return [...this.#signIns]
    })
    const order = { audience, jti: randomUUID(), exp: Date.now() / 1000 + 120 }
    if (event === 'logout_sid') await endings.endSid(sid, order, 'provider')
    else await endings.endSub(sub, order, 'provider')
    this.#hasEnded()
    for (const signIn of meant) signIn.mustBeGone = true
  }

  async finish(): Promise<void> {
    // A replica that took no part and has nothing in memory.
    const [, { sessions }] = this.#replicas.restarted
    for (const { key, mustBeGone } of this.#signIns)
      if (mustBeGone && key !== undefined)
        assert.equal(await sessions.read(key), undefined, 'a sign-in survived its logout')
    const found = await sessions.read(this.key)
    // The provider is asked about a doubtful session before it is served.
    if (this.#mustBeGone && found?.isDoubtful !== true) assert.equal(found, undefined, 'an ended session came back')
    if (!this.#mustBeGone && !this.#mayBeGone) assert.ok(found, 'a session was lost')

    const { used, latest } = this.#provider
    if (!this.#hasCrashed && !this.#faults.includes('suspended_past_the_lease'))
      assert.equal(new Set(used).size, used.length, `a refresh token was used twice: ${used.join(', ')}`)
    const isCertain = !this.#hasCrashed && this.#signIns.length === 0 && used.length > 0
    if (found && isCertain)
      assert.equal(found.record.tokens.refresh_token, latest, 'an older refresh token was stored over a newer one')
  }
}

async function timeAt({ store }: Replica): Promise<number> {
  return (await store.time()).earliest
}

/**
 * These befall the first actor, or its replica. Without them, two actors that do the same thing are
 * alike.
 */
const onesided: readonly Fault[] = ['crash', 'clock_ahead', 'clock_behind']

function search(events: readonly Event[], faults: readonly Fault[], replicas = unchanged): Promise<Searched> {
  return searchOrders({
    begin: async () => {
      const run = new Run(faults, replicas)
      await run.begin()
      const actors = events.map((event, at) => run.actor(event, at))
      const [first, second] = actors as [Actor, Actor]
      const areAlike =
        events.length === 2 && events[0] === events[1] && !faults.some((fault) => onesided.includes(fault))
      const started = areAlike ? [first, { ...second, after: first.name }] : actors
      return {
        actors: [...started, ...faults.map((fault) => run.fault(fault, actors))],
        name: run.key.split(':')[1] ?? '',
        finish: () => run.finish(),
      }
    },
  })
}

const events: readonly Event[] = ['refresh', 'sign_in', 'logout_sid', 'logout_sub', 'sign_out']
const faults: readonly Fault[] = [
  ...(['suspended_past_the_lease', 'crash', 'expiry'] as const),
  ...(['clock_ahead', 'clock_behind', 'restore'] as const),
]

/** How many events happen at the same time; there is at most one fault less. */
const depth = Number(process.env['DEPTH'] ?? 2)
/** Each fault with all events, in many thousand steps. */
const searchesAll = isLongSearch || depth > 2
/** The short search has each fault once, with events that have few orders. */
const shortSearch: Readonly<Record<Fault, readonly Event[]>> = {
  suspended_past_the_lease: ['refresh', 'sign_in'],
  crash: ['sign_in', 'logout_sid'],
  expiry: ['refresh', 'sign_in'],
  clock_ahead: ['sign_in', 'logout_sub'],
  clock_behind: ['sign_in', 'sign_out'],
  restore: ['sign_in', 'logout_sid'],
}

/** All ways to choose so many of these, each as often as may be. */
function choices<T>(from: readonly T[], count: number): T[][] {
  if (count === 0) return [[]]
  return from.flatMap((first, index) => choices(from.slice(index), count - 1).map((rest) => [first, ...rest]))
}

function isSearched(events: readonly Event[], faults: readonly Fault[]): boolean {
  if (!searchesAll) return faults.every((fault) => isDeepStrictEqual(shortSearch[fault], events))
  // Only a refresh holds a lease.
  return events[0] === 'refresh' || !faults.includes('suspended_past_the_lease')
}

for (const chosen of choices(events, depth))
  test(`in every order of ${chosen.join(', ')}, no ended session returns and no live one is lost`, async (t) => {
    for (let count = 0; count < depth; count += 1)
      for (const given of choices(faults, count).filter((each) => isSearched(chosen, each))) {
        const { orders, steps } = await search(chosen, given)
        t.diagnostic(`${[...given, `${orders} orders, ${steps} steps`].join(', ')}`)
      }
  })

/** Replicas with a script in which something is missing. */
function without(missing: RegExp, name: keyof typeof scripts): Promise<Replicas> {
  const whole = scripts[name]
  const changed = whole.replaceAll(missing, '')
  assert.notEqual(changed, whole)
  Object.assign(scripts, { [name]: changed })
  try {
    // The scripts are taken before the first connection.
    return startReplicas()
  } finally {
    Object.assign(scripts, { [name]: whole })
  }
}

const alwaysLeased: Change = (store) => void Object.assign(store, { acquireLease: async () => true })
const ownClock: Change = (store, clock) => {
  const time = async () => ({ earliest: clock.now(), latest: clock.now() })
  Object.assign(store, { time })
}
/** What such a replica does depends on how long its machine takes, so an order may not repeat. */
const dependsOnClock = /survived|not deterministic/
const trustsAll: Change = (store) => {
  const read = store.read.bind(store)
  Object.assign(store, {
    read: async (key: SessionKey) => {
      const found = await read(key)
      if (found === undefined) return undefined
      const { sealed, version, expiresIn } = found
      return { sealed, version, expiresIn }
    },
  })
}

type Mutation = readonly [
  what: string,
  replicas: () => Promise<Replicas>,
  events: readonly Event[],
  faults: readonly Fault[],
  finding: RegExp,
]

/** Proves that the search is good for something. */
const mutations: readonly Mutation[] = [
  [
    'a write that does not check the version',
    () => without(/.*'conflict'.*/g, 'replace'),
    ['refresh', 'refresh'],
    ['suspended_past_the_lease'],
    /an older refresh token/,
  ],
  [
    'a logout without a tombstone',
    () => without(/redis\.call\('SET'.*/g, 'beginEnding'),
    ['sign_in', 'logout_sid'],
    [],
    /survived/,
  ],
  ['a refresh without a lease', () => startReplicas(alwaysLeased), ['refresh', 'refresh'], [], /used twice/],
  [
    'a sign-in that takes the time of its own machine',
    () => startReplicas(ownClock),
    ['sign_in', 'logout_sid'],
    ['clock_ahead'],
    dependsOnClock,
  ],
  [
    'a logout that takes the time of its own machine',
    () => startReplicas(ownClock),
    ['logout_sid', 'sign_in'],
    ['clock_behind'],
    dependsOnClock,
  ],
  [
    'an older copy that is trusted',
    () => startReplicas(trustsAll),
    ['refresh', 'logout_sid'],
    ['restore'],
    /an ended session came back/,
  ],
]

for (const [what, replicas, events, faults, finding] of mutations)
  test(`the search finds ${what}`, async () => {
    const changed = await replicas()
    await assert.rejects(search(events, faults, changed), finding)
  })
