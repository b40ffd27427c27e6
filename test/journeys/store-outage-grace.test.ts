// Slow: 3 s, outages of Redis that last as long as the grace
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { Agent, getGlobalDispatcher, request } from 'undici'
import { loadConfig } from '../../src/config/load.ts'
import { Browser } from '../support/browser.ts'
import { startCommand } from '../support/command.ts'
import { prepareGateway } from '../support/gateway-process.ts'
import { commandsDuring, startRedis, type RedisServer } from '../support/redis.ts'
import { openEventStream, openWebSocket } from '../support/streams.ts'
import { until } from '../support/until.ts'
import { secrets, startWorld, type Replica, type World } from '../support/world.ts'

const started = (t: TestContext, grace: string, replicas = 1) =>
  startWorld(t, {
    store: 'redis',
    redisSettings: 'timeout: 600ms',
    replicas,
    session: `store_outage_grace: ${grace}`,
    settings: 'admin: { listen: 127.0.0.1:0 }',
  })

const hasSaid = ({ log }: Replica, message: string) => log.some((line) => line.message === message)

async function ready({ gateway }: Replica) {
  const { statusCode, body } = await request(`http://127.0.0.1:${gateway.adminAddress?.port}/ready`)
  return { code: statusCode, grace: ((await body.json()) as { grace?: boolean }).grace }
}

/** Jane, signed in. `visit` returns the status of a page for her current cookie. */
async function signedIn(world: World) {
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  const { cookieHeader: cookie } = jane
  const visit = (at: { readonly url: string } = world) => statusOf(`${at.url}/echo`, cookie)
  return { jane, cookie, visit }
}

async function statusOf(url: string, cookie: string, dispatcher = getGlobalDispatcher()): Promise<number> {
  const { statusCode, body } = await request(url, { headers: { cookie }, dispatcher })
  await body.dump()
  return statusCode
}

/** Redis hangs, and `visit` is served until the first replica logs that it serves in the grace. */
async function goAway({ redis, replicas: [first] }: World, visit: () => Promise<number>): Promise<void> {
  await freeze(redis as RedisServer, async () => assert.equal(await visit(), 200))
  await until('the grace has begun', async () => {
    assert.equal(await visit(), 200)
    return hasSaid(first as Replica, 'session.grace_began')
  })
}

/**
 * Redis hangs as soon as the replica that serves `visits` has the session in memory and gets its
 * notices.
 */
async function freeze(redis: RedisServer, visits: () => Promise<unknown>): Promise<void> {
  await until('the session is in memory', async () => {
    const commands = await commandsDuring(redis, visits)
    return commands.every(([name]) => name !== 'hmget')
  })
  redis.freeze()
}

test('While Redis is unreachable, people with a recent request are served, and nobody else', async (t) => {
  const world = await started(t, '5m', 2)
  const [first, second] = world.replicas as [Replica, Replica]
  const { jane, cookie, visit } = await signedIn(world)
  const socket = await openWebSocket(t, `${world.url}/ws`, cookie)

  await goAway(world, visit)

  assert.equal((await jane.fetch(`${world.url}/.gatehouse/session`)).status, 200)
  await socket.echo('still here')
  assert.deepEqual(await ready(first), { code: 200, grace: true })
  const unknown = await jane.send(`${second.url}/echo`)
  assert.equal(unknown.status, 503)
  assert.match(String(unknown.headers['retry-after']), /^\d+$/)
  const stranger = await world.browser('samir').send(`${world.url}/.gatehouse/sign-in`)
  assert.deepEqual([stranger.status, stranger.headers.location], [503, undefined])

  world.redis?.resume()
  await until('the store is asked again', () => hasSaid(first, 'session.grace_ended'))
  assert.equal(await visit(), 200)
  await until('the other one asks it, too', async () => (await visit(second)) === 200)
  assert.deepEqual(await ready(first), { code: 200, grace: undefined })
  await socket.echo('and still here')
})

test('When the grace is over, all requests are rejected, and the probe says so', async (t) => {
  const world = await started(t, '3s')
  const [first] = world.replicas as [Replica]
  const { jane, visit } = await signedIn(world)
  await goAway(world, visit)

  await until('the grace is over', () => hasSaid(first, 'session.grace_ended'))

  assert.equal((await jane.send(`${world.url}/echo`)).status, 503)
  assert.deepEqual(await ready(first), { code: 503, grace: undefined })
  world.redis?.resume()
  await until('pages are served again', async () => (await visit()) === 200)
  assert.equal(jane.cookies.has('gatehouse'), true)
})

test('No token is refreshed during the grace, so a session with an expired access token has to wait', async (t) => {
  const world = await started(t, '5m')
  world.provider.bend('/oauth/token', (body) => (body['expires_in'] = 100))
  const { visit } = await signedIn(world)
  const before = world.provider.hits('/oauth/token')
  await goAway(world, visit)

  world.moveClock(80_000)
  assert.equal(await visit(), 200, 'it could be refreshed, and is still good')
  world.moveClock(30_000)
  assert.equal(await visit(), 503)

  assert.equal(world.provider.hits('/oauth/token'), before)
  world.redis?.resume()
  await until('pages are served again', async () => (await visit()) === 200)
  assert.equal(world.provider.hits('/oauth/token'), before + 1)
})

test('A Logout Token that Redis cannot store applies where it was received, and everywhere when Redis is back', async (t) => {
  const world = await started(t, '5m', 2)
  const [first, second] = world.replicas as [Replica, Replica]
  const { cookie, visit } = await signedIn(world)
  const [session] = world.provider.sessions()
  const logout_token = await world.provider.logoutToken({ sid: session?.sid ?? '', sub: 'jane' })
  await visit(second)
  const here = await openWebSocket(t, `${first.url}/ws`, cookie)
  const there = await openEventStream(t, `${second.url}/events`, cookie)
  await goAway(world, visit)

  assert.equal((await world.postLogoutToken({ logout_token }, first)).status, 503)

  assert.equal(await visit(), 401)
  assert.equal(await here.closing, '1008 session ended')
  world.redis?.resume()
  await there.ended
  assert.equal(await visit(second), 401)
  await until('it was carried out', () => hasSaid(first, 'session.ended'))
  assert.equal((await world.postLogoutToken({ logout_token }, second)).status, 200)
})

test('A sign-out that Redis cannot store applies here, and a second sign-out leads through the provider', async (t) => {
  const world = await started(t, '5m')
  const [first] = world.replicas as [Replica]
  const { jane, visit } = await signedIn(world)
  const signOut = () => jane.send(`${world.url}/.gatehouse/sign-out`, { headers: { 'sec-fetch-site': 'same-origin' } })
  await goAway(world, visit)

  assert.equal((await signOut()).status, 503)

  assert.equal(await visit(), 401)
  world.redis?.resume()
  await until('it was carried out', () => hasSaid(first, 'session.ended'))
  const again = await signOut()
  assert.equal(again.status, 303)
  assert.match(String(again.headers.location), /id_token_hint=/)
})

test('A sign-out that Redis cannot store still applies after a reload', async (t) => {
  const world = await started(t, '5m')
  const [first] = world.replicas as [Replica]
  const { jane, visit } = await signedIn(world)
  await goAway(world, visit)
  await jane.send(`${world.url}/.gatehouse/sign-out`, { headers: { 'sec-fetch-site': 'same-origin' } })
  const loaded = loadConfig(first.file, secrets)
  assert.ok(loaded.ok)

  await first.gateway.reload(loaded.config)

  assert.equal(await visit(), 401)
  world.redis?.resume()
  await until('it was carried out', () => hasSaid(first, 'session.ended'))
  assert.equal(await visit(), 401)
})

test('A reload while Redis is unreachable keeps people signed in, unless it makes their sessions invalid', async (t) => {
  const world = await started(t, '5m')
  const [first] = world.replicas as [Replica]
  const { visit } = await signedIn(world)
  await goAway(world, visit)
  const loaded = loadConfig(first.file, secrets)
  const others = loadConfig(first.file, { ...secrets, SESSION_KEY: Buffer.alloc(32, 8).toString('base64') })
  assert.ok(loaded.ok && others.ok)

  await first.gateway.reload(loaded.config)
  assert.equal(await visit(), 200)

  await first.gateway.reload(others.config)
  assert.equal(await visit(), 503)
  world.redis?.resume()
})

test('Each worker serves the sessions that it has in memory', async (t) => {
  const redis = await startRedis(t)
  const around = await prepareGateway(t, {
    store: `{ redis: { url: "${redis.url}" } }`,
    session: 'store_outage_grace: 5m',
    settings: 'workers: 2',
  })
  const gateway = startCommand(t, ['run', '--config', around.file], { env: around.env })
  await gateway.said('gatehouse is ready')
  const jane = new Browser('jane')
  await jane.get(`${around.url}/`)
  /** Connections go to the workers in turn. */
  const visits = () =>
    Promise.all(
      [1, 2, 3, 4].map(async () => {
        const dispatcher = new Agent()
        assert.equal(await statusOf(`${around.url}/`, jane.cookieHeader, dispatcher), 200)
        await dispatcher.close()
      }),
    )

  await freeze(redis, visits)

  const began = () => gateway.log().filter(({ msg }) => msg === 'session.grace_began').length
  await until('both say that the grace has begun', async () => {
    await visits()
    return began() === 2
  })
  redis.resume()
})
