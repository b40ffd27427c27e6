import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import type { SessionKey } from '../../src/core/names.ts'
import { sessionIdFromCookie, sessionKey } from '../../src/session/record/record.ts'
import { RedisKeys } from '../../src/session/store/redis/keys.ts'
import { replacePauses } from '../support/pauses.ts'
import { openWebSocket } from '../support/streams.ts'
import { until } from '../support/until.ts'
import { startWorld, type Replica, type World } from '../support/world.ts'

const minute = 60_000

/** The responses of the provider say that its access tokens live for `seconds`. */
function shortTokens(world: World, seconds: number): void {
  world.provider.bend('/oauth/token', (body) => (body['expires_in'] = seconds))
}

test('A session in Redis survives a restart of the gateway', async (t) => {
  const world = await startWorld(t, { store: 'redis' })
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  const [before] = world.replicas as [Replica]
  const { port } = before.gateway.address
  await before.stop()

  await world.startReplica({ port })

  assert.equal((await jane.fetch(`${world.url}/echo`)).status, 200)
})

test('A session record that is copied over the record of another session in Redis signs nobody in', async (t) => {
  const world = await startWorld(t, { store: 'redis' })
  const [jane, samir] = [world.browser('jane'), world.browser('samir')]
  for (const browser of [jane, samir]) await browser.get(`${world.url}/echo`)
  const [hers, his] = [jane, samir].map(({ cookies }) => {
    const id = sessionIdFromCookie(cookies.get('gatehouse')?.value)
    return id && sessionKey(id)
  })
  assert.ok(hers && his)
  const placeOf = (key: SessionKey) => new RedisKeys('gatehouse:').session(key).session
  const redis = new Redis(world.redis?.url ?? '')
  t.after(() => redis.disconnect())
  const sealed = await redis.hgetBuffer(placeOf(his), 'sealed')
  assert.ok(sealed)

  assert.equal(await redis.hset(placeOf(hers), 'sealed', sealed), 0)
  // A replica that has never served her reads from Redis.
  const { url, log } = await world.startReplica()

  assert.equal((await jane.fetch(`${url}/echo`)).status, 401)
  const unreadable = log.filter(({ message }) => message === 'session.unreadable')
  assert.deepEqual(
    unreadable.map(({ fields }) => fields['session']),
    [hers],
  )
  assert.equal((await samir.fetch(`${url}/echo`)).status, 200)
})

test('Fifty requests at once after the access token has expired make one refresh', async (t) => {
  const world = await startWorld(t, { store: 'redis' })
  shortTokens(world, 10)
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  const before = world.provider.hits('/oauth/token')
  world.moveClock(11_000)

  const responses = await Promise.all(Array.from({ length: 50 }, () => jane.fetch(`${world.url}/echo`)))

  assert.deepEqual(new Set(responses.map(({ status }) => status)), new Set([200]))
  assert.equal(world.provider.hits('/oauth/token') - before, 1)
})

test('Fifty requests at once at two replicas make one refresh', async (t) => {
  const world = await startWorld(t, { store: 'redis', replicas: 2 })
  shortTokens(world, 10)
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  await jane.fetch(`${world.replicas[1]?.url}/echo`)
  const before = world.provider.hits('/oauth/token')
  world.moveClock(11_000)

  const responses = await Promise.all(
    Array.from({ length: 50 }, (_, index) => jane.fetch(`${world.replicas[index % 2]?.url}/echo`)),
  )

  assert.deepEqual(new Set(responses.map(({ status }) => status)), new Set([200]))
  assert.equal(world.provider.hits('/oauth/token') - before, 1)
})

test('A rotated refresh token works for the next refresh, and for the one after it', async (t) => {
  const world = await startWorld(t, { store: 'redis' })
  shortTokens(world, 10)
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)

  for (let refresh = 0; refresh < 3; refresh += 1) {
    world.moveClock(11_000)
    assert.equal((await jane.fetch(`${world.url}/echo`)).status, 200)
  }

  // A sign-in and three refreshes. A refresh token that is used twice would have ended the grant.
  assert.equal(world.provider.hits('/oauth/token'), 4)
})

test('No request waits for a refresh while the access token is still valid', async (t) => {
  const world = await startWorld(t)
  shortTokens(world, 20)
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  let release = () => {}
  const asked = new Promise<void>((resolve) => {
    world.provider.fault('/oauth/token', (_req, _res, pass) => {
      release = pass
      resolve()
    })
  })
  world.moveClock(16_000)

  assert.equal((await jane.fetch(`${world.url}/echo`)).status, 200)

  await asked
  release()
})

test('A session that has expired at the provider ends at the next refresh', async (t) => {
  const world = await startWorld(t, { store: 'redis' })
  shortTokens(world, 10)
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  const [session] = world.provider.sessions()
  world.provider.expireSession(session?.sid ?? '')
  world.moveClock(11_000)

  assert.equal((await jane.fetch(`${world.url}/echo`)).status, 401)
})

test('A UserInfo response with status 401 ends the session, by polling alone', async (t) => {
  const world = await startWorld(t, { session: 'poll_userinfo: 30s' })
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  const [session] = world.provider.sessions()
  world.provider.expireSession(session?.sid ?? '')
  world.moveClock(31_000)

  // The current request is still served, because it does not wait for the UserInfo response.
  assert.equal((await jane.fetch(`${world.url}/echo`)).status, 200)
  await until('the session has ended', async () => (await jane.fetch(`${world.url}/echo`)).status === 401)
})

test('A session ends when it is idle for longer than idle_timeout, and not before', async (t) => {
  const world = await startWorld(t, { session: 'idle_timeout: 30m' })
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)

  for (let visits = 0; visits < 2; visits += 1) {
    world.moveClock(25 * minute)
    assert.equal((await jane.fetch(`${world.url}/echo`)).status, 200, `visit ${visits}`)
  }

  world.moveClock(31 * minute)
  assert.equal((await jane.fetch(`${world.url}/echo`)).status, 401)
})

test('A session that is used only over a WebSocket is not idle', async (t) => {
  const world = await startWorld(t, { session: 'idle_timeout: 30m' })
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  const socket = await openWebSocket(t, `${world.url}/ws`, jane.cookieHeader)

  world.moveClock(25 * minute)
  await socket.echo('still here')
  world.moveClock(25 * minute)

  assert.equal((await jane.fetch(`${world.url}/echo`)).status, 200)
})

for (const direction of ['upload', 'download'] as const)
  test(`A session with a long ${direction} is not idle while bytes move, until absolute_timeout`, async (t) => {
    replacePauses(t, { checkStreamsMs: 50 })
    const arrived: string[] = []
    let answer: ServerResponse | undefined
    const application = createServer((req, res) => {
      req.on('data', (part: Buffer) => arrived.push(String(part)))
      if (req.url === '/long') (answer = res).writeHead(200).flushHeaders()
      else res.end('hello')
    }).listen(0, '127.0.0.1')
    await once(application, 'listening')
    t.after(() => application.close().closeAllConnections())
    const world = await startWorld(t, {
      session: 'idle_timeout: 30m\n  absolute_timeout: 2h',
      upstream: new URL(`http://127.0.0.1:${(application.address() as AddressInfo).port}`),
    })
    const jane = world.browser()
    await jane.get(`${world.url}/page`)
    const sent = request(`${world.url}/long`, {
      method: direction === 'upload' ? 'POST' : 'GET',
      headers: { cookie: jane.cookieHeader, ...(direction === 'upload' ? { 'content-length': 1000 } : {}) },
    })
    sent.on('error', () => {}).flushHeaders()
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    const broken = new Promise((resolve) => response.on('error', () => {}).once('close', resolve))
    response.on('data', (part: Buffer) => arrived.push(String(part)))

    world.moveClock(25 * minute)
    if (direction === 'upload') sent.write('part')
    else answer?.write('part')
    await until('the part has arrived', () => arrived.includes('part'))
    world.moveClock(25 * minute)
    assert.equal((await jane.fetch(`${world.url}/page`)).status, 200)

    world.moveClock(75 * minute)
    await broken
    assert.equal((await jane.fetch(`${world.url}/page`)).status, 401)
  })

test('A session of one client is invalid at the gateway of another client, even with the same Redis and keys', async (t) => {
  const world = await startWorld(t, { store: 'redis' })
  const other = await startWorld(t, { store: 'redis', redis: world.redis, client_id: 'payroll' })
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)

  const atTheOther = await other.browser().fetch(`${other.url}/echo`, { headers: { cookie: jane.cookieHeader } })

  assert.equal(atTheOther.status, 401)
  assert.equal((await jane.fetch(`${world.url}/echo`)).status, 200)
})

test('Activity does not extend a session beyond absolute_timeout', async (t) => {
  const world = await startWorld(t, { session: 'absolute_timeout: 1h' })
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)

  for (const minutes of [20, 20, 15]) {
    world.moveClock(minutes * minute)
    assert.equal((await jane.fetch(`${world.url}/echo`)).status, 200)
  }
  world.moveClock(6 * minute)

  assert.equal((await jane.fetch(`${world.url}/echo`)).status, 401)
})

test('The session endpoint shows no token and does not extend the session', async (t) => {
  const world = await startWorld(t, { session: 'idle_timeout: 30m' })
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)

  world.moveClock(20 * minute)
  const session = await jane.fetch(`${world.url}/.gatehouse/session`)
  world.moveClock(20 * minute)

  const { sub, claims } = JSON.parse(session.body) as { sub: string; claims: Record<string, unknown> }
  assert.equal(sub, 'jane')
  assert.equal(claims['given_name'], 'Jane')
  assert.doesNotMatch(session.body, /token|eyJ/)
  assert.equal((await jane.fetch(`${world.url}/.gatehouse/session`)).status, 401)
})

test('The session endpoint shows the person, and not the session id or the provider', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  const [atProvider] = world.provider.sessions()

  const { body } = await jane.fetch(`${world.url}/.gatehouse/session`)

  const shown = JSON.parse(body) as { claims: object }
  assert.deepEqual(Object.keys(shown), ['sub', 'signed_in_at', 'expires_at', 'claims'])
  const claims = [
    'preferred_username',
    'sub',
    'email',
    'given_name',
    'family_name',
    'https://id.example.com/claims/fields',
  ]
  assert.deepEqual(Object.keys(shown.claims).sort(), claims.sort())
  assert.ok(atProvider !== undefined && !body.includes(atProvider.sid))
  assert.ok(!body.includes(world.provider.issuer))
})

test('While Redis is unreachable, nobody is sent to sign in, and all sessions are there when it is back', async (t) => {
  const world = await startWorld(t, { store: 'redis' })
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  world.redis?.freeze()

  await until('pages are refused', async () => (await jane.send(`${world.url}/echo`)).status === 503)
  const refused = await jane.send(`${world.url}/echo`)
  assert.ok(refused.headers['retry-after'])
  assert.equal(refused.headers['set-cookie'], undefined)
  // The gateway does not claim a sign-out that it cannot know of.
  assert.equal((await jane.send(`${world.url}/.gatehouse/signed-out`)).status, 503)

  world.redis?.resume()
  await until('pages are served again', async () => (await jane.send(`${world.url}/echo`)).status === 200)
})
