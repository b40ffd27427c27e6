// Slow: 3 s, each situation with each kind of store
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { test, type TestContext } from 'node:test'
import { Redis } from 'ioredis'
import { openAdministration } from '../../src/admin/administration.ts'
import { loadConfig } from '../../src/config/load.ts'
import { isShared } from '../../src/config/model/session.ts'
import { systemClock } from '../../src/core/clock.ts'
import type { SessionKey } from '../../src/core/names.ts'
import { RedisStore } from '../../src/session/store/redis/redis-store.ts'
import { recorder } from '../session/redis-stores.ts'
import type { Browser } from '../support/browser.ts'
import { replacePauses } from '../support/pauses.ts'
import { type SessionApplication, startSessionApplication } from '../support/session-application.ts'
import { until } from '../support/until.ts'
import { type Replica, secrets, startWorld, type World, type WorldOptions } from '../support/world.ts'

interface Setting extends WorldOptions {
  /** The value of `logout.call`. */
  readonly call?: string
  readonly application?: SessionApplication
}

async function worldWith(t: TestContext, { call = '/logout', application, ...options }: Setting = {}) {
  replacePauses(t, { lookForLogoutCallsMs: 50 })
  const upstream = application ?? (await startSessionApplication(t))
  const world = await startWorld(t, {
    upstream: upstream.url,
    upstreamSettings: `session_cookies: [JSESSIONID, kept_*]
    logout: { call: ${call} }`,
    ...options,
  })
  return { application: upstream, world }
}

/** Signs in, and begins a session of the application. */
async function signIn(world: World, person = 'jane', url = world.url): Promise<Browser> {
  const browser = world.browser(person)
  assert.equal((await browser.get(`${url}/`)).status, 200)
  return browser
}

async function signOut(browser: Browser, url: string): Promise<void> {
  const { status, body } = await browser.fetch(`${url}/.gatehouse/sign-out`, { method: 'POST' })
  assert.equal(status, 200, body)
}

async function endAtProvider(world: World, person: string, at?: Replica): Promise<void> {
  const { sid, sub } = world.provider.sessions().find((session) => session.sub === person) ?? assert.fail(person)
  assert.equal(
    (await world.postLogoutToken({ logout_token: await world.provider.logoutToken({ sid, sub }) }, at)).status,
    200,
  )
}

/** Waits until the application has received this many logout calls that ended a session. */
async function called(application: SessionApplication, count = 1): Promise<void> {
  await until(
    'the application is called',
    () => application.logouts.filter(({ owner }) => owner !== '').length >= count,
  )
}

const outcomes = ({ log }: Replica) =>
  log.filter(({ message }) => message === 'application.logout').map(({ fields }) => fields['outcome'])

const keyOf = ({ log }: Replica): SessionKey =>
  log.find(({ message }) => message === 'session.created')?.fields['session'] as SessionKey

const first = (world: World) => world.replicas[0] as Replica

for (const store of ['memory', 'redis'] as const) {
  test(`${store}: The sign-out of a person ends the session of the application`, async (t) => {
    const { application, world } = await worldWith(t, { store })
    const jane = await signIn(world)

    await signOut(jane, world.url)
    await called(application)

    assert.deepEqual(application.owners(), [])
    const [{ method, url, headers } = assert.fail()] = application.logouts
    assert.deepEqual([method, url], ['POST', '/logout'])
    assert.match(headers.cookie ?? '', /^JSESSIONID=[\w-]+$/)
    assert.equal(headers['x-remote-user'], 'jane')
    assert.equal(headers['content-length'], '0')
    assert.equal(headers.host, new URL(world.url).host)
    assert.equal(headers.origin, world.url)
    await until('the outcome is logged', () => outcomes(first(world)).length > 0)
    assert.deepEqual(outcomes(first(world)), ['done'])
  })

  test(`${store}: A Logout Token ends the session of that person at the application, and of no other`, async (t) => {
    const { application, world } = await worldWith(t, { store })
    await signIn(world, 'jane')
    await signIn(world, 'samir')

    await endAtProvider(world, 'jane')
    await called(application)

    assert.deepEqual(application.owners(), ['samir'])
    assert.deepEqual(
      application.logouts.map(({ owner, headers }) => [owner, headers['x-remote-user']]),
      [['jane', 'jane']],
    )
  })
}

test('An idle session in memory ends at the application too', async (t) => {
  const { application, world } = await worldWith(t, { session: 'idle_timeout: 10m' })
  await signIn(world)

  world.moveClock(9 * 60_000)
  await until('the index was read', () => first(world).log.length >= 0)
  assert.deepEqual(application.logouts, [])
  world.moveClock(2 * 60_000)
  await called(application)

  assert.deepEqual(application.owners(), [])
})

test('An idle session in Redis ends at the application too, once for both replicas', async (t) => {
  const { application, world } = await worldWith(t, { store: 'redis', replicas: 2, session: 'idle_timeout: 1s' })
  await signIn(world)
  await called(application)

  assert.deepEqual(application.owners(), [])
  assert.equal(application.logouts.length, 1)
})

test('A session that is used is not ended at the application', async (t) => {
  const { application, world } = await worldWith(t, { store: 'redis', session: 'idle_timeout: 2s' })
  const [jane, samir] = [await signIn(world, 'jane'), await signIn(world, 'samir')]

  await until('the unused session has ended', async () => {
    assert.equal((await jane.fetch(`${world.url}/quiet/`)).status, 200)
    return application.logouts.length > 0
  })

  assert.deepEqual(application.owners(), ['jane'])
  await signOut(samir, world.url)
})

test('Two replicas call the application once', async (t) => {
  const { application, world } = await worldWith(t, { store: 'redis', replicas: 2 })
  const people = ['jane', 'samir', 'zoe', 'noa']
  for (const person of people) await signIn(world, person)

  for (const [index, person] of people.entries())
    await endAtProvider(world, person, world.replicas[index % 2] as Replica)
  await called(application, people.length)
  await until('all outcomes are logged', () => world.replicas.flatMap(outcomes).length === people.length)

  assert.deepEqual(application.logouts.map(({ owner }) => owner).toSorted(), people.toSorted())
})

test('When the process that ended a session dies at that moment, another one calls', async (t) => {
  const { application, world } = await worldWith(t, { store: 'redis' })
  await signIn(world)
  const dying = await storeOf(t, first(world))

  assert.equal((await dying.endOne(keyOf(first(world)))).length, 1)
  await called(application)

  assert.deepEqual(outcomes(first(world)).length <= 1, true)
  assert.deepEqual(application.owners(), [])
})

test('An ending while all replicas are stopped is called for by the next start', async (t) => {
  const { application, world } = await worldWith(t, { store: 'redis', session: 'idle_timeout: 1s' })
  await signIn(world)
  await first(world).stop()
  const store = await storeOf(t, first(world))
  await until('the session has expired', async () => (await store.read(keyOf(first(world)))) === undefined)
  assert.deepEqual(application.logouts, [])

  await world.startReplica()
  await called(application)

  assert.deepEqual(application.owners(), [])
})

test('An administrator ends the session at the application', async (t) => {
  const { application, world } = await worldWith(t, { store: 'redis' })
  await signIn(world, 'jane')
  await signIn(world, 'samir')
  const loaded = loadConfig(first(world).file, secrets)
  assert.ok(loaded.ok)
  const administration = await openAdministration(loaded.config, { log: recorder(), clock: systemClock })
  t.after(() => administration.close())

  assert.equal((await administration.end({ sub: 'jane' })).ended, 1)
  await called(application)

  assert.deepEqual(application.owners(), ['samir'])
})

test('A session that the provider has ended by itself ends at the application at the next refresh', async (t) => {
  const { application, world } = await worldWith(t)
  world.provider.bend('/oauth/token', (body) => void (body['expires_in'] = 10))
  const jane = await signIn(world)
  world.provider.expireSession(world.provider.sessions()[0]?.sid ?? '')
  world.moveClock(11_000)

  assert.equal((await jane.fetch(`${world.url}/`)).status, 401)
  await called(application)

  assert.deepEqual(application.owners(), [])
})

test('A header with a token has the token of the last refresh', async (t) => {
  const { application, world } = await worldWith(t, { headers: 'Authorization: { bearer: access_token }' })
  let token = ''
  world.provider.bend('/oauth/token', (body) => {
    body['expires_in'] = 100
    token = String(body['access_token'])
  })
  const jane = await signIn(world)
  const before = token
  world.moveClock(101_000)
  assert.equal((await jane.fetch(`${world.url}/quiet/`)).status, 200)
  await until('the tokens are refreshed', () => token !== before)

  await signOut(jane, world.url)
  await until('the application is called', () => application.logouts.length > 0)

  assert.equal(application.logouts[0]?.headers.authorization, `Bearer ${token}`)
})

test('A second sign-in of the same person in the same browser keeps the session of the application', async (t) => {
  const { application, world } = await worldWith(t)
  const jane = world.browser()
  const signInAgain = await jane.until(`${world.url}/`, '/.gatehouse/callback')
  const ofSignIn = [...jane.cookies].filter(([name]) => name.includes('-signin-'))
  assert.equal((await jane.get(`${world.url}/`)).status, 200)

  for (const [name, cookie] of ofSignIn) jane.cookies.set(name, cookie)
  assert.equal((await jane.get(signInAgain)).status, 200)

  assert.equal(application.begun(), 1)
  await signOut(jane, world.url)
  await called(application)
  assert.equal(application.logouts.length, 1, 'not for the first session of the gateway')
  assert.deepEqual(application.owners(), [])
})

test('An application that is away or fails is called again', async (t) => {
  const { application, world } = await worldWith(t, { store: 'redis' })
  application.nextLogouts.push(503)
  const jane = await signIn(world)

  await signOut(jane, world.url)
  await until('the session of the application has ended', () => application.owners().length === 0)

  assert.equal(application.logouts.length, 2)
  await until('the outcome is logged', () => outcomes(first(world)).length > 0)
  assert.deepEqual(outcomes(first(world)), ['done'])
})

test('The response of an application that rejects the call is logged with a hint', async (t) => {
  const { application, world } = await worldWith(t)
  application.nextLogouts.push(403)
  const jane = await signIn(world)

  await signOut(jane, world.url)
  await until('the outcome is logged', () => outcomes(first(world)).length > 0)

  const logged = first(world).log.find(({ message }) => message === 'application_logout.rejected') ?? assert.fail()
  assert.equal(logged.fields['status'], 403)
  assert.match(String(logged.fields['hint']), /upstreams\.orders\.logout\.call/)
  assert.equal(application.logouts.length, 1)
})

test('A call has the path, query and cookies that belong to it', async (t) => {
  const { application, world } = await worldWith(t, {
    upstreamSettings: `path: /wiki
    strip_path: true
    session_cookies: [JSESSIONID, kept_*]
    rules: [{ path: /wiki/admin/*, headers: { X-Of-Rule: sub } }]
    logout: { call: { get: '/wiki/admin/logout?action=logout&b=%20' } }`,
  })
  const set = ['kept_a=1; Path=/admin', 'kept_b=1; Path=/other', 'kept_c=1; Max-Age=600', 'free=1']
  const jane = world.browser()
  await jane.get(`${world.url}/wiki/?${set.map((cookie) => `set=${encodeURIComponent(cookie)}`).join('&')}`)
  world.moveClock(11 * 60_000)

  await signOut(jane, world.url)
  await called(application)

  const [{ method, url, headers } = assert.fail()] = application.logouts
  assert.deepEqual([method, url], ['GET', '/admin/logout?action=logout&b=%20'])
  assert.match(headers.cookie ?? '', /^kept_a=1; JSESSIONID=[\w-]+$/)
  assert.deepEqual([headers['x-of-rule'], headers['x-remote-user']], ['jane', 'jane'])
})

test('A session without a cookie of the application costs no call', async (t) => {
  const { application, world } = await worldWith(t)
  const jane = world.browser()
  await jane.get(`${world.url}/quiet/`)
  const samir = await signIn(world, 'samir')

  await signOut(jane, world.url)
  await signOut(samir, world.url)
  await called(application)

  assert.deepEqual(
    application.logouts.map(({ owner }) => owner),
    ['samir'],
  )
})

test('An application that has ended its own session is not called', async (t) => {
  const { application, world } = await worldWith(t)
  const [jane, samir] = [await signIn(world), await signIn(world, 'samir')]
  await jane.fetch(`${world.url}/quiet/?set=${encodeURIComponent('JSESSIONID=; Path=/; Max-Age=0')}`)

  await signOut(jane, world.url)
  await signOut(samir, world.url)
  await called(application)

  assert.deepEqual(
    application.logouts.map(({ owner }) => owner),
    ['samir'],
  )
})

test('Gateways of other clients in the same Redis leave the calls alone', async (t) => {
  const { application, world } = await worldWith(t, { store: 'redis', session: 'idle_timeout: 1s' })
  const jane = await signIn(world)
  await first(world).stop()
  const other = await worldWith(t, { store: 'redis', redis: world.redis, client_id: 'others', application })
  const samir = await signIn(other.world, 'samir')
  await signOut(samir, other.world.url)
  await called(application)
  assert.deepEqual(application.owners(), ['jane'])

  await world.startReplica()
  await called(application, 2)

  assert.deepEqual(application.owners(), [])
  assert.ok(jane.cookies.size > 0)
})

test('A reload keeps the calls of people who are signed in, with the new address', async (t) => {
  const { application, world } = await worldWith(t, { store: 'redis' })
  const jane = await signIn(world)
  const replica = first(world)
  const { gateway, file } = replica
  writeFileSync(file, readFileSync(file, 'utf8').replace('call: /logout', 'call: /v2/logout'))
  const loaded = loadConfig(file, secrets)
  assert.ok(loaded.ok)
  await gateway.reload(loaded.config)

  await signOut(jane, world.url)
  await called(application)

  assert.deepEqual(
    application.logouts.map(({ url }) => url),
    ['/v2/logout'],
  )
})

test('A gateway that stops waits for a call that is under way', async (t) => {
  const { application, world } = await worldWith(t, { store: 'redis', drain: '20s' })
  const jane = await signIn(world)
  let respond = () => {}
  application.nextLogouts.push(new Promise<void>((resolve) => (respond = resolve)))
  await signOut(jane, world.url)
  await called(application)

  const stopped = first(world).stop()
  respond()
  await stopped

  assert.deepEqual(outcomes(first(world)), ['done'])
})

test('A call that a stop has cut off is repeated by another process', async (t) => {
  const { application, world } = await worldWith(t, { store: 'redis', drain: '10ms' })
  const jane = await signIn(world)
  application.nextLogouts.push(new Promise<void>(() => {}))
  await signOut(jane, world.url)
  await called(application)
  await first(world).stop()

  await world.startReplica()
  await called(application, 2)

  assert.deepEqual(application.owners(), [])
})

test('What is kept for a call is sealed, and every key of it expires', async (t) => {
  const { world } = await worldWith(t, { store: 'redis' })
  await signIn(world)
  const redis = new Redis((world.redis ?? assert.fail()).port, '127.0.0.1')
  t.after(() => redis.disconnect())

  const keys = (await redis.keys('*')).filter((key) => /\}:c(?::|$)/.test(key))

  assert.equal(keys.length, 2)
  for (const key of keys)
    assert.ok((await redis.pttl(key)) > 12 * 3_600_000 && (await redis.pttl(key)) <= 13 * 3_600_000)
  const [job = ''] = keys.filter((key) => key.includes(':c:'))
  const sealed = (await redis.hgetBuffer(job, 'sealed')) ?? assert.fail()
  for (const secret of ['JSESSIONID', 'jane']) assert.ok(!sealed.includes(secret))
})

async function storeOf(t: TestContext, { file }: Replica) {
  const loaded = loadConfig(file, secrets)
  assert.ok(loaded.ok)
  const { store: config } = loaded.config.session
  assert.ok(isShared(config))
  const store = new RedisStore(config, { log: recorder(), clock: systemClock })
  t.after(() => store.close())
  await until('the store is connected', () => store.receivesNotices())
  return store
}

test('With several targets, the call goes to the target that has the session of the person', async (t) => {
  const applications = [await startSessionApplication(t), await startSessionApplication(t)] as const
  const people = ['jane', 'samir']
  const world = await startWorld(t, {
    targets: `[${applications.map(({ url }) => url.origin).join(', ')}]`,
    upstreamSettings: `balance: sticky
    session_cookies: [JSESSIONID]
    logout: { call: /logout }`,
  })
  const browsers: Browser[] = []
  // Until both targets have a session: which one gets it, the key of the session decides.
  while (applications.some(({ owners }) => owners().length === 0))
    browsers.push(await signIn(world, people[browsers.length % people.length]))

  for (const browser of browsers) await signOut(browser, world.url)
  await until('all were called', () => applications.flatMap(({ logouts }) => logouts).length === browsers.length)

  for (const application of applications) {
    assert.deepEqual(application.owners(), [])
    assert.ok(application.logouts.every(({ owner, headers }) => owner === headers['x-remote-user']))
  }
})
