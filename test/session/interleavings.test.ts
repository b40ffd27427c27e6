import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import { setImmediate as turn, setTimeout as pause } from 'node:timers/promises'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import type { RedisStoreConfig } from '../../src/config/model/session.ts'
import type { SessionKey } from '../../src/core/names.ts'
import { Keyring } from '../../src/core/seal.ts'
import type { Log } from '../../src/observe/log.ts'
import type { SessionEndings } from '../../src/session/live/endings.ts'
import { Sessions } from '../../src/session/live/live-sessions.ts'
import { PendingEndings } from '../../src/session/live/pending-endings.ts'
import { audienceOf, sessionKey } from '../../src/session/record/record.ts'
import { openRecord } from '../../src/session/record/sealed-record.ts'
import { RedisStore } from '../../src/session/store/redis/redis-store.ts'
import type { SessionStore } from '../../src/session/store/store.ts'
import { Upkeep } from '../../src/tokens/upkeep.ts'
import { startRedis } from '../support/redis.ts'
import { searchFor } from '../support/searches.ts'
import { until } from '../support/until.ts'
import { grantOf, RotatingProvider } from './rotating-provider.ts'

const minute = 60_000
const config = {
  idleTimeoutMs: 4 * 60 * minute,
  absoluteTimeoutMs: 6 * 60 * minute,
  refreshBeforeMs: minute,
  pollUserinfoMs: 2 * minute,
  storeOutageGraceMs: 0,
}
const redis = await startRedis({ after })
const direct = new Redis(redis.port, '127.0.0.1')
after(() => direct.disconnect())
const quiet: Log = { debug() {}, info() {}, warn() {}, error() {}, announce() {} }
const iss = 'https://id.example.com'
const audience = audienceOf({ issuer: iss, client_id: 'orders' })

/**
 * What happens, and at which replica. Steps of one batch happen at once, each a little later or
 * earlier than the others.
 */
type Step = { readonly delay: number } & What

type What =
  | { readonly kind: 'sign_in'; readonly sid: number; readonly at: number }
  /** A browser is sent to the provider, and comes back in a later batch. */
  | { readonly kind: 'begin'; readonly sid: number }
  | { readonly kind: 'finish'; readonly attempt: number; readonly at: number }
  | { readonly kind: 'request'; readonly session: number; readonly at: number }
  | {
      readonly kind: 'logout_token'
      readonly of: { readonly sid?: number; readonly person?: number }
      readonly at: number
    }
  | { readonly kind: 'sign_out'; readonly session: number; readonly at: number }
  | { readonly kind: 'time'; readonly minutes: number }
  | { readonly kind: 'crash'; readonly at: number }
  /**
   * Some minutes later a replica stands still in the middle of a request, for longer than a lease;
   * the other one gets the next.
   */
  | Suspension

interface Suspension {
  readonly kind: 'suspend'
  readonly session: number
  readonly at: number
  /** In ms. */
  readonly later: number
  readonly minutes: number
}

const at = fc.nat(1)
const sid = fc.nat(2)
const session = fc.nat(5)
const of = fc.oneof(fc.record({ sid }), fc.record({ person: fc.nat(1) }))
/** After 3 userinfo is due, after 6 a refresh; after 400 a session is over. */
const minutes = fc.constantFrom(3, 6, 60, 400)
const later = fc.nat(60)
const what: fc.Arbitrary<What> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('sign_in' as const), sid, at }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('begin' as const), sid }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('finish' as const), attempt: fc.nat(2), at }) },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('request' as const), session, at }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('logout_token' as const), of, at }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('sign_out' as const), session, at }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('time' as const), minutes }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('crash' as const), at }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('suspend' as const), session, at, later, minutes }) },
)

/** In ms. */
const step: fc.Arbitrary<Step> = fc.tuple(what, fc.nat(8)).map(([given, delay]) => ({ ...given, delay }))

/** Two persons, of whom each may be signed in at the provider more than once. */
const personOf = (sid: number) => sid % 2
const sidName = (sid: number) => `sid ${sid}`
const subName = (person: number) => `person ${person}`

/**
 * What is known of a session, whatever the order in which things that happened at once took effect.
 */
interface Known {
  readonly key: SessionKey
  readonly sid: number
  readonly grant: string
  readonly batch: number
  /** It was created between these, in ms since the epoch. */
  readonly createdFrom: number
  readonly createdUntil: number
  /**
   * `maybe`: something that may end it happened at the same time as its creation, a replica stood
   * still or died at work on it, or the provider does not take its refresh token any more.
   */
  fate: 'alive' | 'ended' | 'maybe'
  /**
   * A replica has stood still with one of its refresh tokens in hand: another one may have used it
   * too.
   */
  wasSuspended: boolean
  /** A replica has died with one of its refresh tokens in hand. */
  hasCrashed: boolean
}

/** A sign-in that has begun. */
interface Attempt {
  readonly sid: number
  readonly begun_at: number
  readonly batch: number
}

/** An order to end sessions. */
interface Order {
  readonly concerns: (sid: number) => boolean
  readonly batch: number
  obeyed: boolean
}

/** Lets through while it is open. */
class Gate {
  #opened = Promise.resolve()
  #open = () => {}

  close(): void {
    this.#opened = new Promise((resolve) => (this.#open = resolve))
  }

  open(): void {
    this.#open()
  }

  pass(): Promise<void> {
    return this.#opened
  }
}

/**
 * A remote store: each request and each reply takes its time.
 */
function farAway(store: SessionStore, gate: Gate): SessionStore {
  let calls = 0
  const distance = async () => {
    await pause((++calls * 5) % 7)
    await gate.pass()
  }
  const travelling = [
    'create',
    'read',
    'replace',
    'touch',
    'endOne',
    'endSid',
    'endSub',
    'acquireLease',
    'releaseLease',
  ] as const
  const methods = travelling.map((name) => {
    const ask = store[name].bind(store) as (...args: unknown[]) => Promise<unknown>
    const slow = async (...args: unknown[]) => {
      await distance()
      const response = await ask(...args)
      await distance()
      return response
    }
    return [name, slow]
  })
  return Object.assign(store, Object.fromEntries(methods))
}

interface Replica {
  readonly store: SessionStore
  readonly endings: SessionEndings
  readonly sessions: Sessions
  readonly upkeep: Upkeep
  readonly gate: Gate
  readonly stopped: Promise<void>
  stop(): Promise<void>
}

class Run {
  readonly #prefix = `run-${randomUUID()}:`
  readonly #keyring = new Keyring([Buffer.alloc(32, 3)])
  readonly #known: Known[] = []
  readonly #attempts: Attempt[] = []
  readonly #orders: Order[] = []
  /** When the last order was given at the latest, on the clock of Redis in ms. */
  #ordersUntil = 0
  readonly #replicas: Replica[] = []
  readonly #stores: SessionStore[] = []
  #batch = 0
  #moved = 0
  /** One after the other: two replicas that stand still would wait for each other. */
  #suspended = Promise.resolve()
  readonly #clock = { now: () => Date.now() + this.#moved }
  readonly #provider = new RotatingProvider(this.#clock)

  async start(): Promise<void> {
    for (const index of [0, 1]) this.#replicas[index] = await this.#replica()
  }

  async #replica(): Promise<Replica> {
    const storeConfig = {
      kind: 'redis',
      url: new URL(redis.url),
      keyPrefix: this.#prefix,
      timeoutMs: 2000,
    } as RedisStoreConfig
    const clock = this.#clock
    const gate = new Gate()
    const store = farAway(new RedisStore(storeConfig, { log: quiet, clock }), gate)
    this.#stores.push(store)
    const shared = { clock, log: quiet, audit: { record: () => {} } }
    const pending = new PendingEndings(quiet)
    const parts = { ...shared, store, keyring: this.#keyring, audiences: [audience], config, pending }
    const sessions = new Sessions(parts)
    const { endings } = sessions
    const upkeep = new Upkeep(config, {
      ...{ ...shared, store, sessions, endings },
      provider: this.#provider.seenFrom(() => gate.pass()),
    })
    await until('the replica hears the others', () => store.receivesNotices?.() === true)
    let hasStopped = () => {}
    const stopped = new Promise<void>((resolve) => (hasStopped = resolve))
    const stop = async () => {
      hasStopped()
      pending.clear()
      await store.close()
    }
    return { store, sessions, endings, upkeep, gate, stopped, stop }
  }

  async stop(): Promise<void> {
    await Promise.all(this.#replicas.map((replica) => replica.stop()))
    await Promise.all(this.#stores.map((store) => store.close()))
  }

  /**
   * One batch, all of it at once; then the fates of the sessions that are certain by now are looked
   * at, at every replica.
   */
  async batch(steps: readonly Step[]): Promise<void> {
    this.#batch += 1
    for (const { minutes } of steps.filter((given) => given.kind === 'time')) this.#moved += minutes * minute
    const before = [...this.#known]
    const crashed = new Set(steps.filter((given) => given.kind === 'crash').map((given) => given.at))
    await Promise.all(steps.map((given) => this.#take(given, before, crashed)))
    for (const index of crashed) this.#replicas[index] = await this.#replica()
    await Promise.all(this.#replicas.map(({ upkeep }) => upkeep.settled()))
    await Promise.all(this.#known.map((known) => this.#look(known)))
  }

  async #take(given: Step, before: readonly Known[], crashed: ReadonlySet<number>): Promise<void> {
    await pause(given.delay)
    if (given.kind === 'time') return
    if (given.kind === 'begin') {
      const batch = this.#batch
      // Clocks are known to some ms only: what begins within these ms of an earlier logout is
      // refused, to be on the safe side.
      const earlier = this.#ordersUntil
      await until('the clock has passed earlier logouts', async () => {
        return (await this.#storeTime(this.#replicas[0] as Replica)) > earlier
      })
      this.#attempts.push({ sid: given.sid, begun_at: await this.#storeTime(this.#replicas[0] as Replica), batch })
      return
    }
    const replica = this.#replicas[given.at] as Replica
    const target = 'session' in given ? before[given.session % Math.max(before.length, 1)] : undefined
    switch (given.kind) {
      case 'sign_in':
        await this.#storeTime(replica).then(
          (begun_at) => this.#signIn(replica, given.sid, begun_at),
          () => undefined,
        )
        return
      case 'finish':
        return this.#finish(given.attempt, replica, crashed.has(given.at))
      case 'request':
        if (target !== undefined) await this.#request(target, given.at, crashed)
        return
      case 'logout_token':
        return this.#logOut(given.of, replica, before)
      case 'sign_out': {
        if (target === undefined) return
        if (target.fate === 'alive') target.fate = 'maybe'
        const ended = await replica.endings.endOne(target.key, 'person').catch(() => undefined)
        if (ended !== undefined) target.fate = 'ended'
        return
      }
      case 'suspend':
        if (target === undefined) return
        this.#suspended = this.#suspended.then(() => this.#suspend(target, given, crashed))
        return this.#suspended
      case 'crash':
        await turn()
        return replica.stop()
    }
  }

  async #storeTime({ store }: Replica): Promise<number> {
    return (await store.time()).earliest
  }

  /** Returns whether a session was created; `undefined` when the replica has died. */
  async #signIn({ sessions }: Replica, sid: number, begun_at: number): Promise<boolean | undefined> {
    const sub = subName(personOf(sid))
    const tokens = this.#provider.issue(sub)
    const createdFrom = this.#clock.now()
    const record = { iss, sub, sid: sidName(sid), tokens, claims: { sub }, userinfo_read_at: createdFrom }
    const id = await sessions.create(audience, record, begun_at).catch(() => null)
    if (id === null) return undefined
    if (id === undefined) return false
    this.#known.push({
      ...{ key: sessionKey(id), sid, grant: grantOf(tokens.refresh_token ?? ''), batch: this.#batch },
      ...{ createdFrom, createdUntil: this.#clock.now() },
      ...{ fate: 'alive', wasSuspended: false, hasCrashed: false },
    })
    return true
  }

  async #finish(which: number, replica: Replica, mayCrash: boolean): Promise<void> {
    const begun = this.#attempts.filter(({ batch }) => batch < this.#batch)
    const attempt = begun[which % Math.max(begun.length, 1)]
    if (attempt === undefined) return
    this.#attempts.splice(this.#attempts.indexOf(attempt), 1)
    const orders = this.#orders.filter(({ concerns, batch }) => concerns(attempt.sid) && batch >= attempt.batch)
    const isEnded = orders.some(({ batch, obeyed }) => obeyed && batch > attempt.batch && batch < this.#batch)

    const isSession = await this.#signIn(replica, attempt.sid, attempt.begun_at)

    if (isEnded) assert.notEqual(isSession, true, `began before its logout: ${JSON.stringify(attempt)}`)
    const isUndisturbed = !this.#orders.some(({ concerns, batch }) => concerns(attempt.sid) && batch >= attempt.batch)
    if (isUndisturbed && !mayCrash) assert.equal(isSession, true, `was refused: ${JSON.stringify(attempt)}`)
  }

  async #logOut(
    { sid, person }: { readonly sid?: number; readonly person?: number },
    { store, endings }: Replica,
    before: readonly Known[],
  ): Promise<void> {
    const concerns = (other: number) => (sid === undefined ? personOf(other) === person : other === sid)
    const order: Order = { concerns, batch: this.#batch, obeyed: false }
    this.#orders.push(order)
    const about = before.filter((known) => concerns(known.sid))
    for (const known of about) if (known.fate === 'alive') known.fate = 'maybe'
    const token = { audience, jti: randomUUID(), exp: this.#clock.now() / 1000 + 120 }
    const ending =
      sid === undefined
        ? endings.endSub(subName(person ?? 0), token, 'provider')
        : endings.endSid(sidName(sid), token, 'provider')
    order.obeyed = await ending.then(
      () => true,
      () => false,
    )
    if (order.obeyed) for (const known of about) known.fate = 'ended'
    const { latest } = await store.time().catch(() => ({ latest: 0 }))
    this.#ordersUntil = Math.max(this.#ordersUntil, latest)
  }

  async #request(target: Known, index: number, crashed: ReadonlySet<number>): Promise<void> {
    const { sessions, upkeep, stopped } = this.#replicas[index] as Replica
    if (crashed.has(index)) {
      target.hasCrashed = true
      if (target.fate === 'alive') target.fate = 'maybe'
    }
    const work = async () => {
      const found = await sessions.find(target.key).catch(() => undefined)
      await Promise.resolve(found && upkeep.fresh(found)).catch(() => undefined)
      // What is done beside a request, too.
      await upkeep.settled()
    }
    // The dead are not waited for.
    await Promise.race([work(), stopped])
  }

  async #suspend(target: Known, { at, later, minutes }: Suspension, crashed: ReadonlySet<number>): Promise<void> {
    target.wasSuspended = true
    if (target.fate === 'alive') target.fate = 'maybe'
    this.#moved += minutes * minute
    const { gate } = this.#replicas[at] as Replica
    const interrupted = this.#request(target, at, crashed)
    await pause(later)
    gate.close()
    const hash = target.key.split(':')[1] as string
    const leases = await direct.keys(`${this.#prefix}*:l:*${hash}`)
    if (leases.length > 0) await direct.del(leases)
    this.#moved += 6 * minute
    await this.#request(target, 1 - at, crashed)
    gate.open()
    await interrupted
  }

  async #look(known: Known): Promise<void> {
    // Made at the same time as it was ended: either order is right, but all replicas have to see
    // the same.
    const isDisputed = this.#orders.some(({ concerns, batch }) => concerns(known.sid) && batch === known.batch)
    if (known.fate === 'alive' && isDisputed && known.batch === this.#batch) known.fate = 'maybe'
    // Redis' own clock has not moved: what the gateways' clock says is expired is looked at, what
    // Redis says is not.
    const now = this.#clock.now()
    const isExpired = now >= known.createdUntil + config.absoluteTimeoutMs
    if (!isExpired && now >= known.createdFrom + config.absoluteTimeoutMs) return
    // The tokens of an ended session are not checked.
    if (!isExpired) await this.#lookAtRecord(known)
    const seen = await Promise.all(this.#replicas.map((replica) => this.#isSeen(known, replica)))
    const told = JSON.stringify(known)
    if (known.fate === 'ended' || isExpired) return assert.deepEqual(seen, [false, false], `came back: ${told}`)
    if (known.fate === 'alive') assert.ok(!seen.includes(false), `was lost: ${told}`)
    if (seen.includes(undefined)) return
    assert.equal(seen[0], seen[1], `is seen differently: ${told}`)
    if (seen[0] !== true) known.fate = 'ended'
    else {
      await this.#lookAtContents(known)
      known.fate = (await this.#lookAtRecord(known)) === 'good' ? 'alive' : 'maybe'
    }
  }

  /** The time of the last UserInfo response may differ: without changes it is not announced. */
  async #lookAtContents({ key }: Known): Promise<void> {
    await until(`both replicas know the same of ${key}`, async () => {
      const found = await Promise.all(this.#replicas.map(({ sessions }) => sessions.find(key)))
      const [one, other] = found.map((session) => JSON.stringify({ ...session?.record, userinfo_read_at: 0 }))
      return one === other
    })
  }

  /** What is stored is the newest that there was: the refresh token of an older record is spent. */
  async #lookAtRecord(known: Known): Promise<'good' | 'spent' | 'ended' | undefined> {
    const { key } = known
    // Past the replicas, which are not to learn anything by it.
    const stored = await (this.#replicas[0] as Replica).store.read(key)
    const opened = stored && openRecord(this.#keyring, { key, audiences: [audience] }, stored.sealed)
    const record = typeof opened === 'object' ? opened.record : undefined
    const state = record && this.#provider.stateOf(record.tokens.refresh_token ?? '')
    // A token that was rotated may have died with a replica.
    if (!known.hasCrashed) assert.notEqual(state, 'spent', `an older record was written: ${JSON.stringify(known)}`)
    return state
  }

  /** No two replicas use one refresh token, as long as none of them stands still or dies. */
  lookAtGrants(): void {
    for (const { grant, wasSuspended, hasCrashed } of this.#known)
      if (!wasSuspended && !hasCrashed)
        assert.equal(this.#provider.endedByReuse.has(grant), false, 'was refreshed twice')
  }

  /**
   * `undefined`: not to be told, for a replica that died in a refresh has left its lease behind.
   */
  async #isSeen({ key }: Known, { sessions, upkeep }: Replica): Promise<boolean | undefined> {
    const found = await sessions.find(key)
    if (found === undefined) return false
    const fresh = await Promise.resolve(upkeep.fresh(found)).then(
      (session) => session !== undefined,
      () => undefined,
    )
    await upkeep.settled()
    return fresh
  }
}

const batches = fc.array(fc.array(step, { minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 8 })

const signIn: Step = { kind: 'sign_in', sid: 0, at: 0, delay: 0 }
const logOut = (delay: number): Step => ({ kind: 'logout_token', of: { sid: 0 }, at: 1, delay })
const time: Step = { kind: 'time', minutes: 6, delay: 0 }
const visit = (at: number): Step => ({ kind: 'request', session: 0, at, delay: 0 })

/** What chance finds seldom. */
const examples: Step[][][] = [
  // A replica stands still at this or that point of a poll or a refresh.
  ...[3, 6].flatMap((minutes) =>
    [2, 8, 14, 20, 26, 32, 38, 44, 50, 56].map((later): Step[][] => [
      [signIn],
      [{ kind: 'suspend', session: 0, at: 0, later, minutes, delay: 0 }],
      [time],
    ]),
  ),
  // A session expires in the middle of a refresh, whose tokens are not written any more.
  ...[4, 12, 20, 28].map((delay): Step[][] => [
    [signIn],
    [time, visit(1), { kind: 'suspend', session: 0, at: 0, later: 0, minutes: 400, delay }],
  ]),
  // A browser returns from the provider after a logout of the sign-in that it began.
  ...[{ sid: 0 }, { person: 0 }].map((of): Step[][] => [
    [{ kind: 'begin', sid: 0, delay: 0 }],
    [{ kind: 'logout_token', of, at: 1, delay: 0 }],
    [{ kind: 'finish', attempt: 0, at: 0, delay: 0 }],
  ]),
  // The notice of an end arrives before a reply that was sent earlier.
  ...[0, 2, 4, 6, 8, 10, 12, 14, 16, 18].flatMap((delay): Step[][][] => [
    [[signIn, logOut(delay)], [visit(0)]],
    [[signIn], [{ kind: 'crash', at: 0, delay: 0 }], [visit(0), logOut(delay)]],
  ]),
]

/** Most of the time is spent in waiting, so several of them go on at once. */
const atOnce = 6
const runs = Number(process.env['RUNS'] ?? searchFor(40))
/** However busy the machine is: as many as there is time for, in ms. */
const limit = process.env['RUNS'] === undefined ? 6_000 : Infinity

test('in random orders of sign-ins, requests, logouts, expiries, standstills and crashes, no ended session returns and no live one is lost', async () => {
  const until = performance.now() + limit
  const property = fc.asyncProperty(batches, async (batches) => {
    if (performance.now() > until) return
    const run = new Run()
    try {
      await run.start()
      for (const steps of batches) await run.batch(steps)
      run.lookAtGrants()
    } finally {
      await run.stop()
    }
  })
  const outcomes = await Promise.allSettled(
    Array.from({ length: atOnce }, (_, lane) => {
      const own = examples.filter((_, at) => at % atOnce === lane).map((batches): [Step[][]] => [batches])
      return fc.assert(property, { numRuns: own.length + Math.ceil(runs / atOnce), examples: own })
    }),
  )
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
})
