import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inTime } from '../support/in-time.ts'
import { openEventStream, openWebSocket } from '../support/streams.ts'
import { startWorld, type Replica } from '../support/world.ts'

for (const store of ['memory', 'redis'] as const) {
  test(`A back-channel logout ends the session on its very next request (${store})`, async (t) => {
    const world = await startWorld(t, { store })
    const jane = world.browser()
    assert.equal((await jane.get(`${world.url}/echo`)).status, 200)
    const [session] = world.provider.sessions()

    const delivery = await world.provider.endSession(session?.sid ?? '')

    assert.deepEqual(delivery, { kind: 'delivered', status: 200 })
    assert.equal((await jane.fetch(`${world.url}/echo`)).status, 401)
    assert.ok(!jane.cookies.has('gatehouse'), 'the cookie of an ended session is expired when it is next seen')
  })
}

test('After a back-channel logout, the next request also removes the cookie of the application', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()
  await jane.get(`${world.url}/`)
  assert.ok(jane.cookies.has('JSESSIONID'))
  const [session] = world.provider.sessions()
  await world.provider.endSession(session?.sid ?? '')

  await jane.fetch(`${world.url}/echo`)

  assert.ok(!jane.cookies.has('JSESSIONID'))
})

test('A Logout Token sent to one replica applies to the very next request at the other', async (t) => {
  const world = await startWorld(t, { store: 'redis', replicas: 2 })
  const [first, second] = world.replicas as [Replica, Replica]

  for (let round = 0; round < 25; round += 1) {
    const jane = world.browser()
    await jane.get(`${first.url}/echo`)
    assert.equal((await jane.fetch(`${second.url}/echo`)).status, 200)
    const [session] = world.provider.sessions()

    await world.provider.endSession(session?.sid ?? '')

    assert.equal((await jane.fetch(`${second.url}/echo`)).status, 401, `round ${round}`)
  }
})

test('A Logout Token with a sid signs out only the browser with that session, not another browser of the same person', async (t) => {
  const world = await startWorld(t, { store: 'redis' })
  const [laptop, phone] = [world.browser('jane'), world.browser('jane')]
  await laptop.get(`${world.url}/echo`)
  const [ofLaptop] = world.provider.sessions()
  await phone.get(`${world.url}/echo`)

  await world.provider.endSession(ofLaptop?.sid ?? '')

  assert.equal((await laptop.fetch(`${world.url}/echo`)).status, 401)
  assert.equal((await phone.fetch(`${world.url}/echo`)).status, 200)
})

test('A Logout Token for an unknown sid gets 200', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  const logout_token = await world.provider.logoutToken({ sid: 'never-seen-here', sub: 'jane' })

  const response = await world.postLogoutToken({ logout_token })

  assert.equal(response.status, 200)
  assert.equal(response.headers.get('cache-control'), 'no-store')
  assert.equal(
    (await jane.fetch(`${world.url}/echo`)).status,
    200,
    'whoever has another sid stays, though the sub is theirs',
  )
})

test('A callback that comes after the Logout Token of its own sid makes no session', async (t) => {
  const world = await startWorld(t, { store: 'redis' })
  const jane = world.browser()
  const callback = await jane.until(`${world.url}/echo`, '/.gatehouse/callback')
  // The provider ends the session after UserInfo has been read, when the callback is at its last
  // step.
  let release = () => {}
  const atUserinfo = new Promise<void>((resolve) => {
    world.provider.fault('/oauth/userinfo', (_req, _res, pass) => {
      release = pass
      resolve()
    })
  })
  const coming = jane.send(callback)
  await atUserinfo
  const [session] = world.provider.sessions()
  const logout_token = await world.provider.logoutToken({ sid: session?.sid ?? '', sub: 'jane' })

  assert.equal((await world.postLogoutToken({ logout_token })).status, 200)
  release()

  assert.equal((await coming).status, 403)
  assert.equal((await jane.fetch(`${world.url}/echo`)).status, 401)
})

test('A callback that comes many minutes after the Logout Token of its own sid makes no session', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()
  const callback = await jane.until(`${world.url}/echo`, '/.gatehouse/callback')
  const [session] = world.provider.sessions()
  const logout_token = await world.provider.logoutToken({ sid: session?.sid ?? '', sub: 'jane' })
  assert.equal((await world.postLogoutToken({ logout_token })).status, 200)

  world.moveClock(14 * 60_000)

  assert.equal((await jane.send(callback)).status, 403)
  assert.equal((await jane.fetch(`${world.url}/echo`)).status, 401)
})

test('A WebSocket and an event stream are closed within a second of the Logout Token, on every replica', async (t) => {
  const world = await startWorld(t, { store: 'redis', replicas: 2 })
  const [first, second] = world.replicas as [Replica, Replica]
  const [jane, samir] = [world.browser('jane'), world.browser('samir')]
  await jane.get(`${first.url}/echo`)
  const [session] = world.provider.sessions()
  await samir.get(`${first.url}/echo`)
  const streams = [
    await openWebSocket(t, `${first.url}/ws`, jane.cookieHeader),
    await openEventStream(t, `${first.url}/events`, jane.cookieHeader),
    await openWebSocket(t, `${second.url}/ws`, jane.cookieHeader),
    await openEventStream(t, `${second.url}/events`, jane.cookieHeader),
  ]
  const ofSamir = await openEventStream(t, `${second.url}/events`, samir.cookieHeader)

  await inTime(1_000, async () => {
    await world.provider.endSession(session?.sid ?? '')
    await Promise.all(streams.map(({ ended }) => ended))
  })

  const stillOpen = Symbol('still open')
  assert.equal(
    await Promise.race([ofSamir.ended, new Promise((resolve) => setImmediate(resolve, stillOpen))]),
    stillOpen,
  )
})

for (const [why, form, error] of [
  ['there is no logout_token', {}, 400],
  ['logout_token is empty', { logout_token: '' }, 400],
  ['it is not a JWT', { logout_token: 'x.y.z' }, 400],
] as const) {
  test(`The back-channel logout endpoint responds with ${error} when ${why}`, async (t) => {
    const world = await startWorld(t)

    const response = await world.postLogoutToken(form)

    assert.equal(response.status, error)
    assert.equal(response.headers.get('cache-control'), 'no-store')
  })
}

test('The back-channel logout endpoint responds with 503 while Redis is unreachable, so that the provider tries again', async (t) => {
  const world = await startWorld(t, { store: 'redis' })
  await world.browser().get(`${world.url}/echo`)
  const [session] = world.provider.sessions()
  const logout_token = await world.provider.logoutToken({ sid: session?.sid ?? '', sub: 'jane' })
  await world.redis?.kill()

  assert.equal((await world.postLogoutToken({ logout_token })).status, 503)
})
