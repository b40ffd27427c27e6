import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { Redis } from 'ioredis'
import { systemClock } from '../../src/core/clock.ts'
import { RedisStore } from '../../src/session/store/redis/redis-store.ts'
import { created, times } from '../session/store-contract.ts'
import { commandsDuring, commandsSinceStart, type RedisServer } from '../support/redis.ts'
import { silent } from '../support/signing-provider.ts'
import { openWebSocket } from '../support/streams.ts'
import { until } from '../support/until.ts'
import { startWorld, type Replica, type World } from '../support/world.ts'

const keyPrefix = 'gatehouse:'

/**
 * The commands that the gateway may send to Redis while people are served, and why their cost does
 * not grow with the number of sessions.
 */
const servingCommands = new Set([
  // Commands on one key.
  ...['get', 'set', 'del', 'exists', 'hget', 'hmget', 'hset', 'pexpire', 'pexpireat', 'persist', 'pttl'],
  // Commands on the index of one sid or one sub. Their cost is the number of its sessions.
  ...['zadd', 'zrem', 'zrange', 'zrevrange', 'zremrangebyscore'],
  // Commands on no key.
  ...['eval', 'evalsha', 'time', 'publish', 'subscribe', 'ping', 'info', 'hello', 'client|setname'],
])

test('While people are served, the gateway sends Redis no command that scans all of its keys', async (t) => {
  const world = await startJourneys(t)

  await everyJourney(t, world)

  const asked = await commandsSinceStart(world.redis)
  assert.deepEqual(
    // Servers before Redis 7.2 do not have this command.
    [...asked.keys()].filter((name) => !servingCommands.has(name) && name !== 'client|setinfo'),
    [],
  )
  // A permitted command that was not sent would be a gap in the journeys.
  assert.deepEqual(
    [...servingCommands].filter((name) => !asked.has(name)),
    [],
  )
})

test('A sign-in, a request and a logout cost the same Redis commands among a thousand sessions as alone', async (t) => {
  const world = await startJourneys(t)
  const [first, second] = world.replicas as [Replica, Replica]
  const signInAndOut = async () => {
    const jane = world.browser('jane')
    assert.equal((await jane.get(`${first.url}/echo`)).status, 200)
    assert.equal((await jane.fetch(`${second.url}/echo`)).status, 200)
    await world.provider.endSession(sessionOf(world, 'jane').sid)
    assert.equal((await jane.fetch(`${second.url}/echo`)).status, 401)
  }
  // Scripts are sent once. Redis then knows them.
  await signInAndOut()
  const alone = await askedDuring(world.redis, signInAndOut)

  await addSessions(t, world.redis, 1_000)
  let amongOthers = await askedDuring(world.redis, signInAndOut)
  // On a busy machine a command may come twice, because a process checks whether it still gets the
  // notices of the others.
  for (let more = 0; more < 5 && !isDeepStrictEqual(amongOthers, alone); more += 1)
    amongOthers = await askedDuring(world.redis, signInAndOut)

  assert.ok(alone.length > 20, alone.join('\n'))
  assert.deepEqual(amongOthers, alone)
})

test('Every key that a journey leaves in Redis expires', async (t) => {
  const world = await startJourneys(t)
  await everyJourney(t, world)
  const redis = new Redis(world.redis.port, '127.0.0.1')
  t.after(() => redis.disconnect())

  const kinds = new Map<string, number>()
  for (const key of await redis.keys('*')) {
    const kind = key.replace(/\{[^}]*\}/, '{}').replace(/[\w-]{32,}$/, '…')
    kinds.set(kind, Math.max(kinds.get(kind) ?? -Infinity, await redis.pttl(key)))
    // Moves past all expiry times.
    await redis.eval("if redis.call('PTTL', KEYS[1]) > 0 then redis.call('PEXPIRE', KEYS[1], 1) end", 1, key)
  }

  const [minute, hour] = [60_000, 3_600_000]
  const { [`${keyPrefix}{}:epoch`]: epoch, ...others } = Object.fromEntries(kinds)
  assert.equal(epoch, -1, 'whether Redis has lost something shows by a value that never expires')
  const longest: Readonly<Record<string, number>> = {
    // A session, its entries in the two indexes, and those of its tombstones.
    [`${keyPrefix}{}:s:…`]: minute,
    [`${keyPrefix}{}:i`]: 12 * hour,
    [`${keyPrefix}{}:u`]: 12 * hour,
    [`${keyPrefix}{}:t`]: 30 * minute,
    [`${keyPrefix}{}:t:…`]: 30 * minute,
    // An accepted Logout Token, and a completed sign-in.
    [`${keyPrefix}{}:j:…`]: 15 * minute,
    [`${keyPrefix}o:…`]: 15 * minute,
  }
  assert.deepEqual(Object.keys(others).toSorted(), Object.keys(longest).toSorted())
  for (const [kind, ttl] of Object.entries(others)) {
    assert.ok(ttl > 0, `${kind} never expires`)
    assert.ok(ttl <= (longest[kind] ?? 0), `${kind} expires in ${ttl} ms`)
  }
  await until('all but that one value is gone', async () => (await redis.dbsize()) === 1)
})

interface Journeys extends World {
  readonly redis: RedisServer
}

async function startJourneys(t: TestContext): Promise<Journeys> {
  const session = 'idle_timeout: 1m\n  absolute_timeout: 12h\n  poll_userinfo: 30s'
  const providerSettings = 'frontchannel_logout: true'
  return (await startWorld(t, { store: 'redis', replicas: 2, session, providerSettings })) as Journeys
}

/** Everything that can happen to sessions, over two replicas. */
async function everyJourney(t: TestContext, world: World): Promise<void> {
  const { provider } = world
  const [first, second] = world.replicas as [Replica, Replica]
  provider.bend('/oauth/token', (body) => (body['expires_in'] = 10))
  const [jane, zoe, samir, phone, noa] = ['jane', 'zoe', 'samir', 'samir', 'noa'].map((who) => world.browser(who))
  assert.ok(jane && zoe && samir && phone && noa)

  // A sign-in, a request at both replicas, a stream, and a request to the session endpoint.
  assert.equal((await jane.get(`${first.url}/echo`)).status, 200)
  assert.equal((await jane.fetch(`${second.url}/echo`)).status, 200)
  assert.equal((await jane.fetch(`${first.url}/.gatehouse/session`)).status, 200)
  const socket = await openWebSocket(t, `${second.url}/ws`, jane.cookieHeader)

  // The access token has expired for both at once. Later the claims are old, and activity has to be
  // written.
  world.moveClock(11_000)
  const [refreshes, polls] = [provider.hits('/oauth/token'), provider.hits('/oauth/userinfo')]
  const many = await Promise.all(times(10, (n) => jane.fetch(`${n % 2 ? first.url : second.url}/echo`)))
  assert.deepEqual(new Set(many.map(({ status }) => status)), new Set([200]))
  assert.equal(provider.hits('/oauth/token'), refreshes + 1)
  provider.bend('/oauth/token', (body) => (body['expires_in'] = 3_600))
  world.moveClock(31_000)
  assert.equal((await jane.fetch(`${first.url}/echo`)).status, 200)
  await until('userinfo was read again', () => provider.hits('/oauth/userinfo') > polls)
  provider.bend('/oauth/token', (body) => (body['expires_in'] = 10))

  // A Logout Token ends the session, and is sent again.
  const logout_token = await provider.logoutToken(sessionOf(world, 'jane'))
  assert.equal((await world.postLogoutToken({ logout_token }, first)).status, 200)
  assert.equal((await world.postLogoutToken({ logout_token }, second)).status, 200)
  assert.equal((await jane.fetch(`${second.url}/echo`)).status, 401)
  await socket.ended

  // The Logout Token arrives before the callback of its session.
  const callback = await noa.until(`${first.url}/echo`, '/.gatehouse/callback')
  await world.postLogoutToken({ logout_token: await provider.logoutToken(sessionOf(world, 'noa')) })
  assert.equal((await noa.send(callback)).status, 403)

  // All sessions of one person.
  for (const browser of [samir, phone]) assert.equal((await browser.get(`${first.url}/echo`)).status, 200)
  const ofAll = await provider.logoutToken({ sub: 'samir' })
  assert.equal((await world.postLogoutToken({ logout_token: ofAll })).status, 200)
  for (const browser of [samir, phone]) assert.equal((await browser.fetch(`${second.url}/echo`)).status, 401)

  // A front-channel logout in a frame of the provider.
  assert.equal((await zoe.get(`${first.url}/echo`)).status, 200)
  const inFrame = new URLSearchParams({ iss: provider.issuer, sid: sessionOf(world, 'zoe').sid })
  assert.equal((await fetch(`${second.url}/.gatehouse/frontchannel-logout?${inFrame}`)).status, 200)
  assert.equal((await zoe.fetch(`${first.url}/echo`)).status, 401)

  // A sign-out by the person and by a script, an end at the provider when it rejects a refresh, and
  // an expiry.
  await zoe.signInAgain(`${first.url}/echo`)
  assert.match((await zoe.get(`${first.url}/.gatehouse/sign-out`, fromThisSite)).url, /signed-out/)
  await zoe.signInAgain(`${first.url}/echo`)
  assert.equal((await zoe.fetch(`${first.url}/.gatehouse/sign-out`, { method: 'POST' })).status, 200)
  await zoe.signInAgain(`${first.url}/echo`)
  provider.expireSession(sessionOf(world, 'zoe').sid)
  world.moveClock(11_000)
  assert.equal((await zoe.fetch(`${first.url}/echo`)).status, 401)
  await zoe.signInAgain(`${first.url}/echo`)
}

const fromThisSite = { headers: { 'sec-fetch-site': 'same-origin' } }

function sessionOf({ provider }: World, person: string): { readonly sub: string; readonly sid: string } {
  return provider.sessions().find(({ sub }) => sub === person) ?? assert.fail(`${person} is not signed in`)
}

/**
 * The commands that Redis gets during `work`, with the number of their arguments, without
 * heartbeats.
 */
async function askedDuring(redis: RedisServer, work: () => Promise<void>): Promise<string[]> {
  const commands = await commandsDuring(redis, work)
  const isSignOfLife = ([name = '', ...args]: readonly string[]) =>
    ['ping', 'info', 'persist', 'time'].includes(name) || args.some((arg) => /:beat:|:epoch$/.test(arg))
  return commands
    .filter((command) => !isSignOfLife(command))
    .map(([name, ...args]) => `${name} ${args.length}`)
    .toSorted()
}

async function addSessions(t: TestContext, redis: RedisServer, count: number): Promise<void> {
  const settings = {
    username: undefined,
    password: undefined,
    tls: undefined,
    keyPrefix,
    timeoutMs: 5_000,
    replicasAcknowledge: 0,
  }
  const url = new URL(redis.url)
  const store = new RedisStore({ kind: 'redis', url, ...settings }, { log: silent, clock: systemClock })
  t.after(() => store.close())
  await store.ping()
  await Promise.all(times(count, (n) => created(store, Date.now(), { sub: `sub ${n}` })))
  await store.close()
}
