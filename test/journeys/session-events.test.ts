import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import type { Browser } from '../support/browser.ts'
import { replacePauses } from '../support/pauses.ts'
import { openSessionEvents as open, type SessionEvent } from '../support/session-events.ts'
import { until } from '../support/until.ts'
import { startWorld, type World } from '../support/world.ts'

const minutes = 60_000

async function signedIn(world: World): Promise<Browser> {
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  return jane
}

for (const store of ['memory', 'redis'] as const)
  test(`A page learns when its session ends, and at once that the provider has ended it: ${store}`, async (t) => {
    const world = await startWorld(t, { store, session: 'idle_timeout: 20m\n  absolute_timeout: 8h' })
    const jane = await signedIn(world)
    const before = Date.now()

    const events = await open(t, world.url, jane)
    const { name, data } = (await events.next()) as SessionEvent

    assert.equal(name, 'session')
    const left = (time: number | undefined) => Math.round(((time ?? 0) - (data['now'] ?? 0)) / minutes)
    assert.ok((data['now'] ?? 0) >= before)
    assert.deepEqual([left(data['expires_at']), left(data['absolute_expires_at'])], [20, 480])
    assert.deepEqual(Object.keys(data), ['now', 'expires_at', 'absolute_expires_at', 'person'])
    assert.match(data.person ?? '', /^[\w-]{16}$/, 'nothing personal')

    await world.provider.endSession(world.provider.sessions()[0]?.sid ?? '')
    assert.deepEqual(await events.next(), { name: 'ended', data: {} })
    assert.equal(await events.next(), undefined, 'the stream ends')
  })

test('Without a session, the only event is ended, and the next connection gets 204', async (t) => {
  const world = await startWorld(t)

  const events = await open(t, world.url, undefined)
  assert.deepEqual(
    [events.status, await events.next(), await events.next()],
    [200, { name: 'ended', data: {} }, undefined],
  )
  assert.equal((await open(t, world.url, undefined, { 'last-event-id': 'ended' })).status, 204)

  const jane = await signedIn(world)
  const again = await open(t, world.url, jane, { 'last-event-id': 'ended' })
  assert.equal((await again.next())?.name, 'session', 'signed in again')
})

test('An event stream does not count as activity, and reports when activity has moved the end', async (t) => {
  replacePauses(t, { checkStreamsMs: 50 })
  const world = await startWorld(t, { session: 'idle_timeout: 30m' })
  const jane = await signedIn(world)
  const events = await open(t, world.url, jane)
  const first = (await events.next()) as SessionEvent

  world.moveClock(10 * minutes)
  const second = (await (await open(t, world.url, jane)).next()) as SessionEvent
  assert.ok(Math.abs((second.data['expires_at'] ?? 0) - (first.data['expires_at'] ?? 0)) < minutes)
  assert.equal((await jane.send(`${world.url}/echo`)).status, 200)
  const moved = (await events.next()) as SessionEvent
  assert.equal(moved.name, 'session')
  assert.ok((moved.data['expires_at'] ?? 0) - (first.data['expires_at'] ?? 0) > 9 * minutes)

  world.moveClock(31 * minutes)
  assert.equal((await events.next())?.name, 'ended', 'the stream did not keep the session alive')
})

test('A page of another origin gets no events', async (t) => {
  const world = await startWorld(t)
  const jane = await signedIn(world)

  for (const site of ['same-site', 'cross-site'])
    assert.equal((await open(t, world.url, jane, { 'sec-fetch-site': site })).status, 403)
})

test('A session has a limited number of event streams', async (t) => {
  const world = await startWorld(t)
  const [jane, other] = [await signedIn(world), await signedIn(world)]
  const streams = await Promise.all(Array.from({ length: 16 }, () => open(t, world.url, jane)))
  assert.ok(streams.every(({ status }) => status === 200))

  assert.equal((await open(t, world.url, jane)).status, 429)
  assert.equal((await open(t, world.url, other)).status, 200, 'of another session')
})

test('Behind a proxy, the event streams of a client count together, also with many sessions', async (t) => {
  const world = await startWorld(t, {
    settings: 'trusted_proxies: [127.0.0.1]\nlimits: { per_client: { connections: 3 } }',
  })
  const people = [await signedIn(world), await signedIn(world)]
  const openFrom = (client: string, each: number) =>
    open(t, world.url, people[each % 2], { 'x-forwarded-for': client, 'x-forwarded-proto': 'http' })
  for (const each of [0, 1, 2]) assert.equal((await openFrom('192.0.2.1', each)).status, 200)

  assert.equal((await openFrom('192.0.2.1', 3)).status, 429)
  assert.equal((await openFrom('192.0.2.2', 3)).status, 200)
})

test('Clients that leave while their session is looked up do not use up the event streams', async (t) => {
  const world = await startWorld(t, { store: 'redis', redisSettings: 'timeout: 10s' })
  const jane = await signedIn(world)
  const { port } = new URL(world.url)
  const head = `GET /.gatehouse/events HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nSec-Fetch-Site: same-origin\r\nCookie: ${jane.cookieHeader}\r\n\r\n`
  // The gateway reads what was sent before this request.
  const isRead = () => world.browser().fetch(`${world.url}/.gatehouse/session.js`)
  world.redis?.freeze()
  const sockets = Array.from({ length: 16 }, () => connect(Number(port), '127.0.0.1'))
  for (const socket of sockets) socket.write(head)
  for (const socket of sockets) if (socket.connecting) await once(socket, 'connect')
  await isRead()
  for (const socket of sockets) socket.resetAndDestroy()
  await isRead()
  await isRead()
  world.redis?.resume()

  await until('all have left', async () => (await open(t, world.url, jane)).status === 200)
  for (let each = 1; each < 16; each += 1) assert.equal((await open(t, world.url, jane)).status, 200)
})

test('When the gateway stops, an event stream ends without the event ended', async (t) => {
  const world = await startWorld(t, { drain: '60s' })
  const events = await open(t, world.url, await signedIn(world))
  assert.equal((await events.next())?.name, 'session')

  await world.replicas[0]?.stop()

  assert.equal(await events.next(), undefined)
})
