import assert from 'node:assert/strict'
import { after, test, type TestContext } from 'node:test'
import type { MaxPerPersonConfig } from '../../src/config/model/session.ts'
import { Keyring } from '../../src/core/seal.ts'
import { Sessions, SessionsOfAudience } from '../../src/session/live/live-sessions.ts'
import { PendingEndings } from '../../src/session/live/pending-endings.ts'
import { type CountedSession, PersonSessions } from '../../src/session/people/person-sessions.ts'
import { RedisStore } from '../../src/session/store/redis/redis-store.ts'
import type { SessionStore } from '../../src/session/store/store.ts'
import { memoryStore } from '../support/memory-store.ts'
import { clusterConfig, startCluster } from '../support/redis-cluster.ts'
import { hearing, settings } from './redis-stores.ts'

const cluster = await startCluster({ after })
const quiet = { debug() {}, info() {}, warn() {}, error() {}, announce() {} }

/** A replica whose clock differs from that of the machine, in ms. */
function replica(store: SessionStore, max: MaxPerPersonConfig, differs = 0) {
  const sessions = new Sessions({
    store,
    keyring: new Keyring([Buffer.alloc(32, 1)]),
    audiences: ['orders'],
    config: { idleTimeoutMs: 60_000, absoluteTimeoutMs: 3_600_000, storeOutageGraceMs: 0 },
    clock: { now: () => Date.now() + differs },
    log: quiet,
    audit: { record() {} },
    pending: new PendingEndings(quiet),
  })
  const { endings } = sessions
  const ofAudience = new SessionsOfAudience('orders', sessions)
  const person = new PersonSessions({ sessions: ofAudience, store, endings, max })
  const record = {
    ...{ iss: 'https://id.example.com', sub: 'jane', claims: { sub: 'jane' }, userinfo_read_at: 0 },
    tokens: { access_token: 'a', obtained_at: 0, id_token: 'i' },
  }
  return {
    signIn: (): Promise<CountedSession> =>
      person.create({ sub: 'jane', replaced: [], create: () => ofAudience.create(record, Date.now()) }),
    live: async () => (await person.live(await person.keys('jane'))).length,
    close: () => sessions.close(),
  }
}

/** The two replicas of a Cluster. Their clocks differ by two seconds. */
async function clusterReplicas(t: TestContext, max: MaxPerPersonConfig) {
  const config = { ...clusterConfig(cluster), ...settings, keyPrefix: `${max.whenExceeded}:` }
  const stores: SessionStore[] = []
  const replicas = [0, 2_000].map((differs) => {
    const store = new RedisStore(config, { log: quiet, clock: { now: () => Date.now() + differs } })
    stores.push(store)
    const one = replica(store, max, differs)
    t.after(async () => {
      one.close()
      await store.close()
    })
    return one
  })
  await hearing(...stores)
  return replicas
}

const count = (outcomes: readonly CountedSession[], kind: CountedSession['kind']) =>
  outcomes.filter((outcome) => outcome.kind === kind).length

for (const whenExceeded of ['end_oldest', 'refuse'] as const)
  test(`Redis Cluster, ${whenExceeded}: of twenty sign-ins at the same time, exactly three sessions remain`, async (t) => {
    const replicas = await clusterReplicas(t, { count: 3, whenExceeded })

    const outcomes = await Promise.all(Array.from({ length: 20 }, (_, n) => replicas[n % 2]?.signIn() ?? assert.fail()))

    assert.equal(await replicas[0]?.live(), 3)
    if (whenExceeded === 'refuse') assert.deepEqual([count(outcomes, 'created'), count(outcomes, 'refused')], [3, 17])
  })

test('The number does not depend on the turns: sign-ins that do not wait never exceed it', async (t) => {
  const store = memoryStore({ maxSessions: 100, clock: { now: Date.now } })
  t.after(() => store.close())
  // Each sign-in gets a turn at once, as if the previous one had lost it.
  t.mock.method(store, 'acquireLease', async () => true)
  const { signIn, live } = replica(store, { count: 3, whenExceeded: 'refuse' })

  const outcomes = await Promise.all(Array.from({ length: 10 }, signIn))

  assert.equal(await live(), count(outcomes, 'created'))
  assert.ok((await live()) <= 3)
  await signIn()
  assert.ok((await live()) <= 3)
})

test('A sign-in says that its session has ended when those of other replicas are newer', async (t) => {
  const store = memoryStore({ maxSessions: 100, clock: { now: Date.now } })
  t.after(() => store.close())
  const max = { count: 1, whenExceeded: 'end_oldest' } as const
  const [one, behind] = [replica(store, max), replica(store, max, -2_000)]

  const outcomes = [await one.signIn(), await behind.signIn()]

  assert.deepEqual(
    outcomes.map(({ kind }) => kind),
    ['created', 'ended'],
  )
  assert.equal(await one.live(), 1)
})
