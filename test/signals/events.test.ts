import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withoutSid } from '../support/provider.ts'
import { openEventStream } from '../support/streams.ts'
import { caep, risc } from '../support/transmitter.ts'
import { startSignals } from './world.ts'

const ending = [
  `${caep}session-revoked`,
  `${caep}credential-change`,
  `${risc}account-disabled`,
  `${risc}account-purged`,
  `${risc}account-credential-change-required`,
]

for (const type of ending)
  test(`${type.slice(type.lastIndexOf('/') + 1)} about a person ends all of their sessions, and no others`, async (t) => {
    const world = await startSignals(t)
    const [jane, again, zoe] = [world.browser(), world.browser(), world.browser('zoe')]
    for (const browser of [jane, again, zoe]) await browser.get(`${world.url}/`)

    assert.equal(await world.event(type, world.person('jane')), 202)

    assert.deepEqual(await Promise.all([jane, again, zoe].map(world.hasSession)), [false, false, true])
    assert.deepEqual(
      world.audits('signal.obeyed').map(({ action, matched, sub }) => [action, matched, sub]),
      [['end', 2, 'jane']],
    )
    assert.ok(world.audits('session.ended').every(({ by }) => by === 'signal'))
  })

test('An event about a session ends this session only', async (t) => {
  const world = await startSignals(t)
  const [one, other] = [world.browser(), world.browser()]
  await one.get(`${world.url}/`)
  const sid = world.sidOf('jane')
  await other.get(`${world.url}/`)
  const subject = { format: 'complex', session: { format: 'opaque', id: sid }, user: world.person('jane') }

  assert.equal(await world.event(`${caep}session-revoked`, subject), 202)

  assert.deepEqual([await world.hasSession(one), await world.hasSession(other)], [false, true])
})

test('An event about a session ends the sessions of its user whose ID Token had no sid', async (t) => {
  const world = await startSignals(t, { provider: { adjust: withoutSid } })
  const [jane, samir] = [world.browser('jane'), world.browser('samir')]
  await jane.get(`${world.url}/`)
  await samir.get(`${world.url}/`)
  const session = { format: 'opaque', id: world.sidOf('jane') }

  assert.equal(await world.event(`${caep}session-revoked`, { format: 'complex', session }), 202)
  assert.equal(await world.hasSession(jane), true)
  const withUser = { format: 'complex', session, user: world.person('jane') }
  assert.equal(await world.event(`${caep}session-revoked`, withUser), 202)

  assert.deepEqual([await world.hasSession(jane), await world.hasSession(samir)], [false, true])
})

test('The subject may be in the event, as in earlier versions of the specification', async (t) => {
  const world = await startSignals(t)
  const jane = world.browser()
  await jane.get(`${world.url}/`)

  assert.equal(await world.event(`${caep}session-revoked`, undefined, { subject: world.person('jane') }), 202)

  assert.equal(await world.hasSession(jane), false)
})

test('A group that was taken away is gone with the next request after token-claims-change', async (t) => {
  const world = await startSignals(t)
  const jane = world.browser()
  await jane.get(`${world.url}/`)
  const groups = async () =>
    (await jane.get(`${world.url}/`)).body.match(/x-groups[^<]*<[^>]*>[^<]*<[^>]*>([^<]*)/i)?.[1]
  const before = await groups()
  world.provider.bend(
    '/oauth/userinfo',
    (body) => void (body['https://id.example.com/claims/fields'] = { groups: ['nothing'] }),
  )

  assert.equal(await world.event(`${caep}token-claims-change`, world.person('jane'), { claims: {} }), 202)

  const after = await groups()
  assert.notEqual(after, before)
  assert.equal(after, 'nothing')
  assert.equal(await world.hasSession(jane), true)
})

test('While UserInfo is away, token-claims-change gets 503, so that the transmitter repeats it', async (t) => {
  const world = await startSignals(t)
  const jane = world.browser()
  await jane.get(`${world.url}/`)
  const mend = world.provider.fault('/oauth/userinfo', (_req, res) => void res.writeHead(500).end())
  const { transmitter } = world
  const token = transmitter.token({ sub_id: world.person('jane'), events: { [`${caep}token-claims-change`]: {} } })

  assert.equal((await transmitter.push(world.url, token)).status, 503)
  mend()
  assert.equal((await transmitter.push(world.url, token)).status, 202)
  assert.equal((await transmitter.push(world.url, token)).status, 202)

  assert.deepEqual([world.audits('signal.obeyed').length, world.audits('signal.replayed').length], [1, 1])
})

test('A lower assurance level asks for a new sign-in where a rule has a step-up, and nowhere else', async (t) => {
  const world = await startSignals(t, {
    upstreamSettings: `rules:
      - { path: /api/*, unauthenticated: 401 }
      - { path: /strong/*, step_up: { max_age: 1h } }`,
  })
  const jane = world.browser()
  // With an ID Token that has auth_time.
  assert.equal((await jane.get(`${world.url}/strong/a`)).status, 404)

  const level = `${caep}assurance-level-change`
  assert.equal(await world.event(level, world.person('jane'), { change_direction: 'increase' }), 202)
  assert.equal((await jane.send(`${world.url}/strong/a`)).status, 404)
  assert.equal(await world.event(level, world.person('jane'), { change_direction: 'decrease' }), 202)

  assert.equal((await jane.send(`${world.url}/strong/a`)).status, 303)
  assert.equal(await world.hasSession(jane), true)
})

test('A device that does not comply ends the sessions; one that complies again does nothing', async (t) => {
  const world = await startSignals(t)
  const jane = world.browser()
  await jane.get(`${world.url}/`)
  const compliance = (current_status: string) =>
    world.event(`${caep}device-compliance-change`, world.person('jane'), { current_status })

  assert.equal(await compliance('compliant'), 202)
  assert.equal(await world.hasSession(jane), true)
  assert.equal(await compliance('not-compliant'), 202)
  assert.equal(await world.hasSession(jane), false)
})

test('signals.events says what an event does', async (t) => {
  const world = await startSignals(t, { signals: 'events: { session-revoked: ignore, token-claims-change: end }' })
  const jane = world.browser()
  await jane.get(`${world.url}/`)

  assert.equal(await world.event(`${caep}session-revoked`, world.person('jane')), 202)
  assert.equal(await world.hasSession(jane), true)
  assert.equal(await world.event(`${caep}token-claims-change`, world.person('jane')), 202)
  assert.equal(await world.hasSession(jane), false)
})

test('An e-mail address names a person only if it is trusted, and only a verified one', async (t) => {
  const [careful, trusting] = [await startSignals(t), await startSignals(t, { signals: 'trusted_subjects: [email]' })]
  const subject = { format: 'email', email: 'jane.doe@EXAMPLE.com' }
  for (const world of [careful, trusting]) {
    const jane = world.browser()
    await jane.get(`${world.url}/`)
    assert.equal(await world.event(`${risc}account-disabled`, subject), 202)
    const [obeyed] = world.audits('signal.obeyed')
    const [ignored] = world.audits('signal.ignored')
    assert.equal(world === careful ? ignored?.['event'] : obeyed?.['event'], 'account-disabled')
  }
})

test('What names nobody is accepted and counted', async (t) => {
  const world = await startSignals(t)
  const jane = world.browser()
  await jane.get(`${world.url}/`)

  for (const subject of [
    world.person('somebody'),
    { format: 'iss_sub', iss: 'https://other.example', sub: 'jane' },
    { format: 'did', url: 'did:example:1' },
    { format: 'complex', device: { format: 'opaque', id: 'jane' } },
    undefined,
  ])
    assert.equal(await world.event(`${caep}session-revoked`, subject), 202)

  assert.equal(await world.hasSession(jane), true)
  assert.equal(world.audits('signal.ignored').length, 4)
  assert.deepEqual(
    world.audits('signal.obeyed').map(({ matched }) => matched),
    [0],
  )
})

test('An event ends the sessions and the streams of all replicas before its response', async (t) => {
  const world = await startSignals(t, { store: 'redis', replicas: 2 })
  const jane = world.browser()
  await jane.get(`${world.url}/`)
  const other = world.replicas[1]?.url ?? ''
  const stream = await openEventStream(t, `${other}/events`, jane.cookieHeader)

  assert.equal(await world.event(`${risc}account-disabled`, world.person('jane')), 202)

  assert.equal((await jane.fetch(`${other}/api/me`)).status, 401)
  await stream.ended
})

test('A sign-in that began before the event does not become a session', async (t) => {
  const world = await startSignals(t)
  const jane = world.browser()
  const callback = await jane.until(`${world.url}/`, '/.gatehouse/callback')

  assert.equal(await world.event(`${risc}account-disabled`, world.person('jane')), 202)

  await jane.send(callback)
  assert.equal(await world.hasSession(jane), false)
})
