import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import { Redis } from 'ioredis'
import type { RedisStoreConfig } from '../../src/config/model.ts'
import type { SessionKey } from '../../src/core/names.ts'
import { Keyring } from '../../src/core/seal.ts'
import type { TokenSet } from '../../src/core/token-set.ts'
import type { Log } from '../../src/observe/log.ts'
import type { OpenidProvider, Refreshed, Userinfo } from '../../src/provider/openid-provider.ts'
import { OwedEndings } from '../../src/session/owed-endings.ts'
import { audienceOf, sessionKey } from '../../src/session/record.ts'
import { scripts } from '../../src/session/redis-scripts.ts'
import { createRedisStore } from '../../src/session/redis-store.ts'
import { Sessions } from '../../src/session/sessions.ts'
import type { SessionStore } from '../../src/session/store.ts'
import { refresh, type UpkeepParts } from '../../src/tokens/refresh.ts'
import { startRedis } from '../support/redis.ts'
import { searchOrders, step, stepsOf, stop, type Actor, type Searched } from './every-order.ts'

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
/** What happens in one step, before any of the others or after all of them. */
type Fault = 'suspended_past_the_lease' | 'crash' | 'expiry'

/** A provider that accepts a refresh token again and again until the grant ends, and remembers what it issued. */
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

  /** The provider as a replica reaches it. A replica that finds the lease taken gives up at once. */
  get parts(): UpkeepParts['provider'] {
    const grant = ['the grant']
    return {
      config: { timeoutMs: 0, idTokenClaims: [] as readonly string[] } as OpenidProvider['config'],
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
  readonly log: Log
  readonly audit: { record(): void }
  readonly clock: { now(): number }
}

/** Two gateways that share a Redis. They are started once, because each order has sessions of its own. */
type Replicas = readonly [Replica, Replica]

function startReplica(clockAheadMs: number, change: (store: SessionStore) => void = () => {}): Replica {
  const clock = { now: () => Date.now() + clockAheadMs }
  const storeConfig: RedisStoreConfig = {
    ...{ kind: 'redis', url: new URL(server.url), keyPrefix: 'gatehouse:', timeoutMs: minute },
    ...{ username: undefined, password: undefined, tls: undefined, replicasAcknowledge: 0 },
  }
  const store = createRedisStore(storeConfig, { log: quiet, clock })
  // Redis has the clock of this machine. Without asking, it costs no step now and then.
  const time = async () => ({ earliest: Date.now(), latest: Date.now() })
  change(Object.assign(store, { time }))
  after(() => store.close())
  const shared = { log: quiet, audit: { record: () => {} }, clock }
  const sessions = new Sessions({ ...shared, store, keyring, audience, config, owed: new OwedEndings(quiet) })
  return { ...shared, store, sessions }
}

/** The clock of one is two seconds behind. */
function startPair(change?: (store: SessionStore) => void): Replicas {
  return [startReplica(0, change), startReplica(-2_000, change)]
}

const unchanged: Replicas = startPair()

interface SignIn {
  key: SessionKey | undefined
  mustBeGone: boolean
}

/** One order of events. */
class Run {
  readonly #provider = new LenientProvider()
  readonly #faults: readonly Fault[]
  readonly #replicas: Replicas
  readonly #signIns: SignIn[] = []
  /** The session that is there from the beginning. */
  key = '' as SessionKey
  #mustBeGone = false
  #mayBeGone = false
  #hasCrashed = false

  constructor(faults: readonly Fault[], replicas: Replicas) {
    this.#faults = faults
    this.#replicas = replicas
  }

  async begin(): Promise<void> {
    await direct.flushall()
    // Asked once for each connection, before the first step.
    for (const { store } of this.#replicas) await store.read('a:b' as SessionKey)
    this.key = (await this.#create(this.#replicas[0], await this.#now())) ?? assert.fail('nobody is signed in')
  }

  actor(event: Event, at: number): Actor {
    return { name: `${event} at ${at}`, run: () => this.#take(event, this.#replicas[at % 2] as Replica) }
  }

  fault(fault: Fault, victim: Actor): Actor {
    const [tag = '', hash = ''] = this.key.split(':')
    const place = (kind: string, name: string) => `gatehouse:{${tag}}:${kind}:${name}`
    const take = (writes: string, work: () => unknown) => step({ what: fault, reads: [], writes: [writes] }, work)
    const runs: Record<Fault, () => Promise<unknown>> = {
      suspended_past_the_lease: () => take(place('l', 'the first'), () => direct.del(place('l', hash))),
      expiry: () =>
        take(place('s', 'the first'), () => {
          this.#mustBeGone = true
          return direct.del(place('s', hash))
        }),
      crash: () =>
        take(stepsOf(victim.name), () => {
          this.#hasCrashed = true
          stop(victim.name)
        }),
    }
    return { name: fault, run: runs[fault] }
  }

  async #take(event: Event, replica: Replica): Promise<unknown> {
    switch (event) {
      case 'sign_in':
        return this.#signIn(replica)
      case 'refresh':
        return this.#refresh(replica)
      case 'sign_out':
        this.#mayBeGone = true
        await replica.sessions.endOne(this.key, 'person')
        return (this.#mustBeGone = true)
      case 'logout_sid':
      case 'logout_sub':
        return this.#logOut(event, replica)
    }
  }

  async #signIn(replica: Replica): Promise<void> {
    const known: SignIn = { key: undefined, mustBeGone: false }
    const begun_at = await step({ what: 'a sign-in begins', reads: [], writes: ['time'] }, () => {
      this.#signIns.push(known)
      return this.#now()
    })
    known.key = await this.#create(replica, begun_at)
  }

  async #create({ sessions }: Replica, begun_at: number): Promise<SessionKey | undefined> {
    const who = { iss, sub, sid, claims: { sub }, userinfo_read_at: 0 }
    const id = await sessions.create({ ...who, tokens: this.#provider.issue() }, begun_at)
    return id && sessionKey(id)
  }

  async #refresh(replica: Replica): Promise<void> {
    const seen = await replica.sessions.read(this.key)
    if (seen === undefined) return
    await refresh(seen, { ...replica, provider: this.#provider.parts }).catch((error: unknown) => {
      assert.equal((error as { code?: unknown }).code, 'ERR_PROVIDER_UNAVAILABLE', 'only the lease may be in the way')
    })
  }

  async #logOut(event: 'logout_sid' | 'logout_sub', { sessions }: Replica): Promise<void> {
    // Whoever has begun to sign in by the time the order arrives is meant.
    const meant = await step({ what: 'a Logout Token arrives', reads: [], writes: ['time'] }, async () => {
      this.#mayBeGone = true
      await this.#now()
      return [...this.#signIns]
    })
    const order = { iss, jti: randomUUID(), exp: Date.now() / 1000 + 120 }
    if (event === 'logout_sid') await sessions.endSid(sid, order, 'provider')
    else await sessions.endSub(sub, order, 'provider')
    this.#mustBeGone = true
    for (const signIn of meant) signIn.mustBeGone = true
  }

  /** The time in ms since the epoch; no two are the same. */
  async #now(): Promise<number> {
    const before = Date.now()
    while (Date.now() === before);
    const { earliest } = await this.#replicas[0].store.time()
    const now = Date.now()
    while (Date.now() === now);
    return earliest
  }

  async finish(): Promise<void> {
    const [, { sessions }] = this.#replicas
    for (const { key, mustBeGone } of this.#signIns)
      if (mustBeGone && key !== undefined)
        assert.equal(await sessions.read(key), undefined, 'a sign-in survived its logout')
    const found = await sessions.read(this.key)
    if (this.#mustBeGone) assert.equal(found, undefined, 'an ended session came back')
    else if (!this.#mayBeGone) assert.ok(found, 'a session was lost')

    const { used, latest } = this.#provider
    if (!this.#hasCrashed && !this.#faults.includes('suspended_past_the_lease'))
      assert.equal(new Set(used).size, used.length, `a refresh token was used twice: ${used.join(', ')}`)
    const isCertain = !this.#hasCrashed && this.#signIns.length === 0 && used.length > 0
    if (found && isCertain)
      assert.equal(found.record.tokens.refresh_token, latest, 'an older refresh token was stored over a newer one')
  }
}

function search(events: readonly Event[], faults: readonly Fault[], replicas = unchanged): Promise<Searched> {
  return searchOrders({
    begin: async () => {
      const run = new Run(faults, replicas)
      await run.begin()
      const actors = events.map((event, at) => run.actor(event, at))
      return {
        actors: [...actors, ...faults.map((fault) => run.fault(fault, actors[0] as Actor))],
        name: run.key.split(':')[1] ?? '',
        finish: () => run.finish(),
      }
    },
  })
}

const events: readonly Event[] = ['refresh', 'sign_in', 'logout_sid', 'logout_sub', 'sign_out']
const faults: readonly Fault[] = ['suspended_past_the_lease', 'crash', 'expiry']

/** How many events happen at the same time; there is at most one fault less. */
const depth = Number(process.env['DEPTH'] ?? 2)

/** All ways to choose so many of these, each as often as may be. */
function choices<T>(from: readonly T[], count: number): T[][] {
  if (count === 0) return [[]]
  return from.flatMap((first, index) => choices(from.slice(index), count - 1).map((rest) => [first, ...rest]))
}

/** Only a refresh holds a lease. What faults do to endings alone is left to a deeper search: there are many orders of these. */
function isSearched(events: readonly Event[], faults: readonly Fault[]): boolean {
  if (faults.includes('suspended_past_the_lease') && events[0] !== 'refresh') return false
  return depth > 2 || faults.length === 0 || events[0] === 'refresh' || events[0] === 'sign_in'
}

for (const chosen of choices(events, depth))
  test(`in no order of ${chosen.join(', ')} does a session come back or get lost`, async (t) => {
    for (let count = 0; count < depth; count += 1)
      for (const given of choices(faults, count).filter((each) => isSearched(chosen, each))) {
        const { orders, steps } = await search(chosen, given)
        t.diagnostic(`${[...given, `${orders} orders, ${steps} steps`].join(', ')}`)
      }
  })

/** Replicas with a script in which something is missing. */
function without(missing: RegExp, name: keyof typeof scripts): Replicas {
  const whole = scripts[name]
  const changed = whole.replaceAll(missing, '')
  assert.notEqual(changed, whole)
  Object.assign(scripts, { [name]: changed })
  try {
    return startPair()
  } finally {
    Object.assign(scripts, { [name]: whole })
  }
}

const alwaysLeased = (store: SessionStore) => void Object.assign(store, { acquireLease: async () => true })

/** Proves that the search is good for something. */
const mutations: readonly (readonly [string, Replicas, readonly Event[], readonly Fault[], RegExp])[] = [
  [
    'a write that does not check the version',
    without(/.*'conflict'.*/g, 'replace'),
    ['refresh', 'refresh'],
    ['suspended_past_the_lease'],
    /an older refresh token/,
  ],
  [
    'a logout without a tombstone',
    without(/redis\.call\('SET'.*/g, 'beginEnding'),
    ['sign_in', 'logout_sid'],
    [],
    /survived/,
  ],
  ['a refresh without a lease', startPair(alwaysLeased), ['refresh', 'refresh'], [], /used twice/],
]

for (const [what, replicas, events, faults, finding] of mutations)
  test(`the search finds ${what}`, async () => {
    await assert.rejects(search(events, faults, replicas), finding)
  })
