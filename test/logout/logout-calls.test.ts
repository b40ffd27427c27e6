import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { SessionKey } from '../../src/core/names.ts'
import { Keyring } from '../../src/core/seal.ts'
import { type CallUpstream, LogoutCalls } from '../../src/logout/logout-calls.ts'
import { LogoutJobs } from '../../src/session/live/logout-jobs.ts'
import type { SessionRecord } from '../../src/session/record/record.ts'
import { recorder } from '../session/redis-stores.ts'
import { created, times } from '../session/store-contract.ts'
import { memoryStore } from '../support/memory-store.ts'
import { until } from '../support/until.ts'

const keyring = new Keyring([Buffer.alloc(32, 5)])
const upstreams = ['wiki', 'shop'].map((name) => ({
  name,
  headers: [],
  rules: [],
  logout: { paths: [], passFirst: false, cookies: [], call: { method: 'POST', target: '/logout', timeoutMs: 5_000 } },
})) as never

function jobsOf(keys = keyring): LogoutJobs {
  return new LogoutJobs({ keyring: keys, audience: 'audience', upstreams })
}

const cookie = { name: 'sid', value: '1', domain: 'a.example', hostOnly: true, path: '/' } as const
const record = (cookies: SessionRecord['cookies']): SessionRecord => ({
  iss: 'https://id.example.com',
  sub: 'jane',
  created_at: 0,
  absolute_expires_at: Date.UTC(2026, 1, 1),
  tokens: { access_token: 'secret', refresh_token: 'secret', id_token: 'secret', obtained_at: 0 },
  claims: { sub: 'jane' },
  userinfo_read_at: 0,
  ...(cookies !== undefined && { cookies }),
})

async function turns(): Promise<void> {
  for (let count = 0; count < 20; count += 1) await new Promise((resolve) => setImmediate(resolve))
}

/** A store with a movable clock, and the calls of this process. */
function start(t: TestContext, call: CallUpstream, jobs = jobsOf()) {
  let now = Date.UTC(2026, 0, 1)
  const store = memoryStore({ maxSessions: 10_000, clock: { now: () => now } })
  t.after(() => store.close())
  const log = recorder()
  const audited: Readonly<Record<string, unknown>>[] = []
  const calls = new LogoutCalls({
    ...{ store: store.jobs, jobs, call, log, longestCallMs: 5_000 },
    audit: { record: (_event, fields) => void audited.push(fields as never) },
  })
  t.after(() => calls.finish())
  return {
    ...{ store, calls, log, audited, jobs },
    pass: (ms: number) => void (now += ms),
    /** Lets the process look for jobs, and gives it time to do them. */
    look: async () => {
      calls.noteEnded([], 'here')
      await turns()
    },
    /** A session with a job, which has ended. */
    ended: async (sealed = jobs.sealedFor): Promise<SessionKey> => {
      const { key } = await created(store, now)
      await store.jobs.watch(jobs.audience, key, 60_000, 60_000)
      const job = sealed.call(jobs, key, record({ wiki: [cookie], shop: [cookie], other: [cookie] }))
      assert.equal(await store.replace(key, Buffer.from('x'), 1, job), 'replaced')
      await store.endOne(key)
      return key
    },
  }
}

test('An application that does not respond is called five times, with growing pauses', async (t) => {
  let called = 0
  const { ended, calls, look, pass, audited, log, store } = start(t, async (upstream) => {
    if (upstream === 'shop') return 204
    called += 1
    throw new Error('connect ECONNREFUSED')
  })
  const key = await ended()

  calls.noteEnded([key], 'here')
  await until('the first attempt', () => called === 1)
  await look()
  for (const [n, ms] of [2_000, 10_000, 30_000, 90_000].entries()) {
    pass(ms - 1)
    await look()
    assert.equal(called, n + 1)
    pass(1)
    await look()
    assert.equal(called, n + 2)
  }
  pass(24 * 60 * 60_000)
  await look()

  assert.equal(called, 5)
  assert.deepEqual(
    audited.map(({ upstream, outcome, status }) => [upstream, outcome, status]),
    [
      ['shop', 'done', 204],
      ['wiki', 'failed', undefined],
    ],
  )
  const failed = log.lines.find(({ message }) => message === 'application_logout.failed')
  assert.deepEqual([failed?.level, failed?.fields?.['attempts']], ['warn', 5])
  assert.equal((await store.jobs.open(key, 1)).kind, 'none')
})

test('The endings of a thousand sessions are called for, some at a time', async (t) => {
  let [running, most, done] = [0, 0, 0]
  const { ended, calls } = start(t, async () => {
    running += 1
    most = Math.max(most, running)
    await new Promise((resolve) => setImmediate(resolve))
    running -= 1
    done += 1
    return 200
  })
  const keys = await Promise.all(times(1_000, () => ended()))

  calls.noteEnded(keys, 'here')
  await until('all are called', () => done === 2_000)

  assert.ok(most <= 32, `${most} at a time`)
})

test('A job of a removed key is logged, and never called for', async (t) => {
  let called = 0
  const { ended, calls, look, pass, log, store } = start(t, async () => (called += 1))
  const removed = jobsOf(new Keyring([Buffer.alloc(32, 6)]))
  const key = await ended((...args) => removed.sealedFor(...args))

  calls.noteEnded([key], 'here')
  await until('it is logged', () => log.warnings().includes('application_logout.unreadable'))
  for (let times = 0; times < 5; times += 1) {
    pass(90_000)
    await look()
  }

  assert.equal(called, 0)
  assert.equal((await store.jobs.open(key, 1)).kind, 'none')
})

test('A job of an upstream that is not configured any more is logged, and dropped after some attempts', async (t) => {
  const { ended, calls, look, pass, log, store } = start(t, async () => 'unknown_upstream')
  const key = await ended()

  calls.noteEnded([key], 'here')
  await until('it is logged', () => log.warnings().includes('application_logout.postponed'))
  for (let times = 0; times < 5; times += 1) {
    pass(90_000)
    await look()
  }

  assert.ok(log.warnings().includes('application_logout.failed'))
  assert.equal((await store.jobs.open(key, 1)).kind, 'none')
})

test('A call without a cookie for its path is logged once and not repeated', async (t) => {
  const { ended, calls, look, audited, log } = start(t, async () => 'no_cookie')

  calls.noteEnded([await ended()], 'here')
  await look()

  assert.deepEqual(
    audited.map(({ outcome }) => outcome),
    ['no_cookie', 'no_cookie'],
  )
  assert.deepEqual(log.warnings(), ['application_logout.no_cookie', 'application_logout.no_cookie'])
})

test('An ended session is called for, although the store was unavailable when it ended', async (t) => {
  const called: string[] = []
  const { calls, store, ended, look } = start(t, async (upstream) => {
    called.push(upstream)
    return 204
  })
  const key = await ended()
  t.mock.method(store.jobs, 'take').mock.mockImplementationOnce(() => Promise.reject(new Error('away')))

  calls.noteEnded([key], 'here')
  await look()
  await look()

  assert.deepEqual(called.toSorted(), ['shop', 'wiki'])
})

for (const [what, isAway] of [
  ['nothing is due', false],
  ['it is unavailable', true],
] as const)
  test(`The store is asked at most once a second while ${what}`, async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { calls, store } = start(t, async () => 200)
    const take = t.mock.method(store.jobs, 'take', async () => {
      if (isAway) throw new Error('away')
      return []
    })
    calls.noteEnded(['key' as SessionKey], 'here')
    await turns()

    t.mock.timers.tick(999)
    await turns()

    assert.equal(take.mock.callCount(), 1)
  })

test('A process that stops finishes its calls, and leaves the others to the store', async (t) => {
  let finish = () => {}
  const isHeld = new Promise<void>((resolve) => (finish = resolve))
  let called = 0
  const { ended, calls, store, jobs } = start(t, async () => {
    called += 1
    await isHeld
    return 200
  })
  const [first, second] = [await ended(), await ended()]
  calls.noteEnded([first], 'here')
  await until('the first call is under way', () => called === 2)

  const finished = calls.finish()
  calls.noteEnded([second], 'here')
  finish()
  await finished

  assert.equal(called, 2)
  assert.equal((await store.jobs.open(first, 1)).kind, 'none')
  const taken = await store.jobs.take(jobs.audience, { ended: [], limit: 10, lease: 1_000 })
  assert.deepEqual(
    taken.map(({ key }) => key),
    [second],
  )
})

test('A job has no refresh token, and other tokens only for an upstream that gets them', () => {
  const key = 'key' as SessionKey
  const opened = (jobs: LogoutJobs) => {
    const sealed = jobs.sealedFor(key, record({ wiki: [cookie], other: [cookie] }))
    assert.ok(sealed instanceof Buffer)
    const job = jobs.open(key, sealed)
    return job === undefined || job === 'newer' ? assert.fail() : job
  }
  const withBearer = new LogoutJobs({
    ...{ keyring, audience: 'audience' },
    upstreams: (upstreams as object[]).map((upstream) => ({
      ...upstream,
      headers: [{ source: { kind: 'bearer', bearer: 'access_token' } }],
    })) as never,
  })

  assert.doesNotMatch(JSON.stringify(opened(jobsOf())), /secret/)
  const { tokens } = opened(withBearer)
  assert.deepEqual(JSON.parse(JSON.stringify(tokens)), { access_token: 'secret', id_token: 'secret', obtained_at: 0 })
  assert.deepEqual(Object.keys(opened(jobsOf()).cookies ?? {}), ['wiki'])
  assert.equal(jobsOf().open('another' as SessionKey, jobsOf().seal(key, record({}))), undefined)
  assert.equal(jobsOf().sealedFor(key, record({ other: [cookie] })), undefined)
  assert.equal(jobsOf().sealedFor(key, record({ wiki: [], other: [cookie] })), 'none')
})
