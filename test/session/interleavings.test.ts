import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import { setImmediate as turn, setTimeout as pause } from 'node:timers/promises'
import fc from 'fast-check'
import type { RedisStoreConfig } from '../../src/config/model.ts'
import type { SessionId, SessionKey } from '../../src/core/names.ts'
import { Keyring } from '../../src/core/seal.ts'
import type { TokenSet } from '../../src/core/token-set.ts'
import type { Log } from '../../src/observe/log.ts'
import type { Refreshed } from '../../src/provider/openid-provider.ts'
import { OwedEndings } from '../../src/session/owed-endings.ts'
import { audienceOf, sessionKey } from '../../src/session/record.ts'
import { createRedisStore } from '../../src/session/redis-store.ts'
import { Sessions } from '../../src/session/sessions.ts'
import type { SessionStore } from '../../src/session/store.ts'
import { Upkeep } from '../../src/tokens/upkeep.ts'
import { startRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

const minute = 60_000
const accessTokenLifetime = 5 * minute
const config = {
  idleTimeoutMs: 4 * 60 * minute,
  absoluteTimeoutMs: 6 * 60 * minute,
  storeOutageGraceMs: 0,
  refreshBeforeMs: minute,
  pollUserinfoMs: undefined,
}
const redis = await startRedis({ after })
const quiet: Log = { debug() {}, info() {}, warn() {}, error() {}, announce() {} }
const audience = audienceOf({ issuer: 'https://id.example.com', client_id: 'orders' })

/** What happens, and at which replica. Steps of one batch happen at once, each a little later or earlier than the others. */
type Step = { readonly delay: number } & What

type What =
  | { readonly kind: 'sign_in'; readonly sid: number; readonly at: number }
  | { readonly kind: 'request'; readonly session: number; readonly at: number }
  | { readonly kind: 'logout_token'; readonly sid: number; readonly at: number }
  | { readonly kind: 'sign_out'; readonly session: number; readonly at: number }
  | { readonly kind: 'time'; readonly minutes: number }
  | { readonly kind: 'crash'; readonly at: number }

const at = fc.nat(1)
const sid = fc.nat(2)
const what: fc.Arbitrary<What> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('sign_in' as const), sid, at }) },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('request' as const), session: fc.nat(5), at }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('logout_token' as const), sid, at }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('sign_out' as const), session: fc.nat(5), at }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('time' as const), minutes: fc.constantFrom(3, 6, 60, 400) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('crash' as const), at }) },
)

/** In ms. */
const step: fc.Arbitrary<Step> = fc.tuple(what, fc.nat(8)).map(([given, delay]) => ({ ...given, delay }))

/** A provider with rotating refresh tokens: one that is used twice ends its session, as RFC 9700 §4.14 has it. */
class RotatingProvider {
  readonly config = { timeoutMs: 100 } as never
  readonly spentTwice: string[] = []
  readonly #current = new Map<string, { token: string; ended: boolean }>()
  readonly #clock: { now(): number }
  #calls = 0

  constructor(clock: { now(): number }) {
    this.#clock = clock
  }

  /** Now quick, now slow, in ms; the same in each run of the same steps. */
  #slowness(): number {
    this.#calls += 1
    return (this.#calls * 7) % 11
  }

  issue(sub: string): TokenSet {
    const grant = randomUUID()
    this.#current.set(grant, { token: `${grant}/0`, ended: false })
    return this.#tokens(`${grant}/0`, sub)
  }

  async refresh(tokens: TokenSet & { readonly refresh_token: string }): Promise<Refreshed> {
    const [grant = '', count = ''] = tokens.refresh_token.split('/')
    const known = this.#current.get(grant)
    await pause(this.#slowness())
    if (known === undefined || known.ended) return { kind: 'invalid_grant' }
    if (known.token !== tokens.refresh_token) {
      this.spentTwice.push(tokens.refresh_token)
      known.ended = true
      return { kind: 'invalid_grant' }
    }
    known.token = `${grant}/${Number(count) + 1}`
    const rotated = this.#tokens(known.token, '')
    await pause(this.#slowness())
    return { kind: 'refreshed', tokens: rotated }
  }

  userinfo(_access_token: string, sub: string) {
    return Promise.resolve({ kind: 'claims' as const, claims: { sub } })
  }

  #tokens(refresh_token: string, sub: string): TokenSet {
    const obtained_at = this.#clock.now()
    return {
      access_token: `access ${refresh_token}`,
      id_token: sub,
      refresh_token,
      obtained_at,
      access_token_expires_at: obtained_at + accessTokenLifetime,
    }
  }
}

/** What is known of a session, whatever the order in which things that happened at once took effect. */
interface Known {
  readonly key: SessionKey
  readonly sid: number
  readonly created_at: number
  /** `maybe`: something that may end it happened at the same time as its creation, or a replica died that was at work on it. */
  fate: 'alive' | 'ended' | 'maybe'
}

/** A store at a distance: each question takes its time to get there, and each answer to come back. */
function farAway(store: SessionStore): SessionStore {
  let calls = 0
  const distance = () => pause((++calls * 5) % 7)
  const travelling = ['create', 'read', 'replace', 'touch', 'endOne', 'endSid', 'acquireLease', 'releaseLease'] as const
  const methods = travelling.map((name) => {
    const ask = store[name].bind(store) as (...args: unknown[]) => Promise<unknown>
    const slow = async (...args: unknown[]) => {
      await distance()
      const answer = await ask(...args)
      await distance()
      return answer
    }
    return [name, slow]
  })
  return Object.assign(store, Object.fromEntries(methods))
}

interface Replica {
  readonly sessions: Sessions
  readonly upkeep: Upkeep
}

class Run {
  readonly #prefix = `run-${randomUUID()}:`
  readonly #keyring = new Keyring([Buffer.alloc(32, 3)])
  readonly #known: Known[] = []
  readonly #replicas: Replica[] = []
  #moved = 0
  readonly #clock = { now: () => Date.now() + this.#moved }
  readonly provider = new RotatingProvider(this.#clock)

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
    const store = farAway(createRedisStore(storeConfig, { log: quiet, clock: this.#clock }))
    const audit = { record: () => {} }
    const sessions = new Sessions({
      store,
      keyring: this.#keyring,
      audience,
      config,
      clock: this.#clock,
      log: quiet,
      audit,
      owed: new OwedEndings(quiet),
    })
    const upkeep = new Upkeep(config, { sessions, provider: this.provider, clock: this.#clock, log: quiet, audit })
    await until('the replica hears the others', () => store.hearsNotices())
    return { sessions, upkeep }
  }

  async stop(): Promise<void> {
    await Promise.all(this.#replicas.map(({ sessions }) => sessions.store.close()))
  }

  /** One batch, all of it at once; then the fates of the sessions that are certain by now are looked at, at every replica. */
  async batch(steps: readonly Step[]): Promise<void> {
    for (const { minutes } of steps.filter((given) => given.kind === 'time')) this.#moved += minutes * minute
    const before = [...this.#known]
    const crashed = new Set(steps.filter((given) => given.kind === 'crash').map((given) => given.at))
    await Promise.all(steps.map((given) => this.#take(given, before, crashed)))
    for (const index of crashed) this.#replicas[index] = await this.#replica()
    await this.#look()
  }

  async #take(given: Step, before: readonly Known[], crashed: ReadonlySet<number>): Promise<void> {
    const replica = given.kind === 'time' ? undefined : this.#replicas[given.at]
    if (replica === undefined) return
    await pause(given.delay)
    switch (given.kind) {
      case 'sign_in': {
        const sub = `person ${given.sid}`
        const claims = { sub }
        const record = {
          iss: 'https://id.example.com',
          sub,
          sid: `sid ${given.sid}`,
          tokens: this.provider.issue(sub),
          claims,
          userinfo_read_at: 0,
        }
        const begun_at = this.#clock.now()
        const id = await replica.sessions.create(record, begun_at).catch(() => undefined)
        if (id !== undefined) this.#enter(id, given.sid)
        return
      }
      case 'request': {
        const target = before[given.session % Math.max(before.length, 1)]
        if (target === undefined) return
        // A replica that dies while it refreshes may take the rotated token with it.
        if (crashed.has(given.at) && target.fate === 'alive') target.fate = 'maybe'
        const found = await replica.sessions.find(target.key).catch(() => undefined)
        await Promise.resolve(found && replica.upkeep.fresh(found)).catch(() => undefined)
        return
      }
      case 'logout_token': {
        const order = { iss: 'https://id.example.com', jti: randomUUID(), exp: this.#clock.now() / 1000 + 120 }
        const about = before.filter((known) => known.sid === given.sid)
        for (const known of about) if (known.fate === 'alive') known.fate = 'maybe'
        this.#endingNow.add(given.sid)
        const ended = await replica.sessions.endSid(`sid ${given.sid}`, order, 'provider').catch(() => undefined)
        if (ended !== undefined) for (const known of about) known.fate = 'ended'
        return
      }
      case 'sign_out': {
        const target = before[given.session % Math.max(before.length, 1)]
        if (target === undefined) return
        if (target.fate === 'alive') target.fate = 'maybe'
        const ended = await replica.sessions.endOne(target.key, 'person').catch(() => undefined)
        if (ended !== undefined) target.fate = 'ended'
        return
      }
      case 'crash':
        await turn()
        await replica.sessions.store.close()
        return
    }
  }

  readonly #endingNow = new Set<number>()

  #enter(id: SessionId, ofSid: number): void {
    this.#known.push({ key: sessionKey(id), sid: ofSid, created_at: this.#clock.now(), fate: 'alive' })
  }

  async #look(): Promise<void> {
    for (const known of this.#known) {
      // Made at the same time as its sid was ended: either order is right, but all replicas have to see the same.
      if (known.fate === 'alive' && this.#endingNow.has(known.sid) && !this.#settled.has(known)) known.fate = 'maybe'
      this.#settled.add(known)
      // Redis' own clock has not moved: what the gateways' clock says is expired is looked at, what Redis says is not.
      const expired = this.#clock.now() >= known.created_at + config.absoluteTimeoutMs
      const seen = await Promise.all(this.#replicas.map((replica) => this.#isSeen(known, replica)))
      if (known.fate === 'ended' || expired)
        assert.deepEqual(seen, [false, false], `came back: ${JSON.stringify(known)}`)
      else if (known.fate === 'alive') assert.deepEqual(seen, [true, true], `was lost: ${JSON.stringify(known)}`)
      else {
        if (seen.includes(undefined)) continue
        assert.equal(seen[0], seen[1], `is seen differently: ${JSON.stringify(known)}`)
        known.fate = seen[0] === true ? 'alive' : 'ended'
      }
    }
    this.#endingNow.clear()
  }

  readonly #settled = new Set<Known>()

  /** `undefined`: not to be told, for a replica that died in a refresh has left its lease behind. */
  async #isSeen({ key }: Known, { sessions, upkeep }: Replica): Promise<boolean | undefined> {
    const found = await sessions.find(key)
    if (found === undefined) return false
    return Promise.resolve(upkeep.fresh(found)).then(
      (fresh) => fresh !== undefined,
      () => undefined,
    )
  }
}

test('in no order of sign-ins, requests, logouts, expiries and crashes does a session come back or get lost', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(step, { minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 8 }),
      async (batches) => {
        const run = new Run()
        try {
          await run.start()
          for (const steps of batches) await run.batch(steps)
          const crashes = batches.flat().some(({ kind }) => kind === 'crash')
          if (!crashes) assert.deepEqual(run.provider.spentTwice, [])
        } finally {
          await run.stop()
        }
      },
    ),
    { numRuns: Number(process.env['RUNS'] ?? 30) },
  )
})
