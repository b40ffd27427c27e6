import assert from 'node:assert/strict'
import { test } from 'node:test'
import { auditEventsIn } from '../support/audit-schema.ts'
import { startDecisionPoint } from '../support/decision-point.ts'
import { accessTokenSeconds, askForKey, basic, makeKey, send, signedIn, startKeyWorld } from '../support/key-world.ts'
import { press } from '../support/session-page.ts'
import { until } from '../support/until.ts'

for (const store of ['memory', 'redis'] as const)
  test(`${store}: A person makes a key, a program uses it on each replica, and the person ends it`, async (t) => {
    const world = await startKeyWorld(t, { store, ...(store === 'redis' && { replicas: 2 }) })
    const jane = await signedIn(world)
    const cookie = jane.cookieHeader

    const shown = await askForKey(jane, world)

    const key = /ghk_[\w-]+/.exec(shown.body)?.[0] ?? ''
    assert.match(shown.body, /Copy the key into the program now/)
    assert.equal(shown.headers['cache-control'], 'no-store')
    assert.equal(jane.cookieHeader, cookie, 'the session of the browser stays')
    for (const { url } of world.replicas)
      for (const headers of [basic(key), { authorization: `Bearer ${key}` }, { 'x-api-key': key }]) {
        const response = await send(`${url}/echo`, headers)
        assert.equal(response.status, 200)
        assert.match(response.body, /"X-Remote-User",\s*"jane"/)
        assert.ok(!response.body.includes(key) && !response.body.includes(String(basic(key).authorization)))
      }
    const page = await jane.get(world.page)
    assert.ok(!page.body.includes(key))
    assert.match(page.body, /<h3>DAVx5<\/h3>/)
    assert.deepEqual(
      auditEventsIn(world.replicas[0]?.log ?? [])
        .filter(({ message }) => message.startsWith('key.'))
        .map(({ message, fields }) => [message, fields['upstream'], fields['sub']]),
      [['key.created', 'orders', 'jane']],
    )

    const after = await press(jane, page, /^End the key DAVx5$/)

    assert.match(after.body, /The key has ended\./)
    for (const { url } of world.replicas) assert.equal((await send(`${url}/echo`, basic(key))).status, 401)
    const written = JSON.stringify(world.replicas.map(({ log, access }) => [log, access]))
    assert.ok(!written.includes(key))
  })

test('A key outlives the session of the browser, and ends with an order about the person', async (t) => {
  const world = await startKeyWorld(t)
  const jane = await signedIn(world)
  const key = await makeKey(jane, world)
  const { sid, sub } = world.provider.sessions()[0] ?? assert.fail()

  assert.equal(
    (await world.postLogoutToken({ logout_token: await world.provider.logoutToken({ sub, sid }) })).status,
    200,
  )
  assert.equal((await jane.fetch(`${world.url}/echo`)).status, 401)
  assert.equal((await send(`${world.url}/echo`, basic(key))).status, 200)

  assert.equal((await world.postLogoutToken({ logout_token: await world.provider.logoutToken({ sub }) })).status, 200)
  assert.equal((await send(`${world.url}/echo`, basic(key))).status, 401)
})

test('A sign-out in the browser leaves the key, and the removed account ends it at the next refresh', async (t) => {
  const world = await startKeyWorld(t)
  const jane = await signedIn(world)
  const key = await makeKey(jane, world)
  await jane.get(`${world.url}/.gatehouse/sign-out`, { headers: { 'sec-fetch-site': 'same-origin' } })
  assert.equal((await jane.fetch(`${world.url}/echo`)).status, 401)

  // The access token expires, and the refresh shows that the key has a grant of its own.
  world.moveClock((accessTokenSeconds + 1) * 1000)
  assert.equal((await send(`${world.url}/echo`, basic(key))).status, 200)

  world.people.splice(0, 1)
  world.moveClock((accessTokenSeconds + 1) * 1000)
  assert.equal((await send(`${world.url}/echo`, basic(key))).status, 401)
  await until('the end is recorded', () =>
    auditEventsIn(world.replicas[0]?.log ?? []).some(
      ({ message, fields }) => message === 'key.ended' && fields['by'] === 'invalid_grant',
    ),
  )
})

test('A page for a program has no notice about the end of a session', async (t) => {
  const world = await startKeyWorld(t, {
    upstreamSettings: 'session_notice: true\n    keys: {}\n    rules: [{ path: /*, keys: true }]',
  })
  const jane = world.browser()
  assert.match((await jane.get(`${world.url}/`)).body, /session\.js/)
  const key = await makeKey(jane, world)

  const page = await send(`${world.url}/`, { ...basic(key), accept: 'text/html' })

  assert.equal(page.status, 200)
  assert.doesNotMatch(page.body, /session\.js/)
})

test('A policy decision point learns that a person sends the request with a key', async (t) => {
  const point = await startDecisionPoint(t)
  const world = await startKeyWorld(t, {
    upstreamSettings: `authorize_with: { url: "${point.url}" }\n    keys: {}\n    rules: [{ path: /*, keys: true }]`,
  })
  const jane = world.browser()
  await jane.get(`${world.url}/.gatehouse/sign-in?return_to=/.gatehouse/sessions`)

  await send(`${world.url}/echo`, basic(await makeKey(jane, world)))

  const [asked] = point.asked.slice(-1)
  assert.match(JSON.stringify(asked), /"type":"user","id":"jane"/)
  assert.match(JSON.stringify(asked), /"credentials":"key"/)
})
