import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Configuration } from 'oidc-provider'
import { Browser } from '../support/browser.ts'
import { ecKey, type Json } from '../support/signing-provider.ts'
import { audience, caep, risc, startTransmitter } from '../support/transmitter.ts'
import { separate, twoProviders } from '../support/two-providers.ts'
import { startSignals, type SignalWorld } from './world.ts'

const disabled = `${risc}account-disabled`

/** UserInfo says that the address of each person is verified. */
function verifyAddresses({ provider }: Pick<SignalWorld, 'provider'>): void {
  provider.bend('/oauth/userinfo', (body) => void (body['email_verified'] = true))
}

test('A replay about an e-mail address does not end the session of a later sign-in', async (t) => {
  const world = await startSignals(t, { signals: 'trusted_subjects: [email]' })
  verifyAddresses(world)
  const jane = world.browser()
  await jane.get(`${world.url}/`)
  const subject = { format: 'email', email: 'jane.doe@example.com' }
  const token = world.transmitter.token({ sub_id: subject, events: { [disabled]: {} } })
  assert.equal((await world.transmitter.push(world.url, token)).status, 202)
  assert.equal(await world.hasSession(jane), false)
  await jane.get(`${world.url}/`)

  assert.equal((await world.transmitter.push(world.url, token)).status, 202)

  assert.equal(await world.hasSession(jane), true)
  assert.deepEqual([world.audits('signal.obeyed').length, world.audits('signal.replayed').length], [1, 1])
})

test('The same token twice at the same time takes effect once in the audit log', async (t) => {
  const world = await startSignals(t, { store: 'redis', replicas: 2 })
  const jane = world.browser()
  await jane.get(`${world.url}/`)
  for (const [type, details] of [
    [`${caep}assurance-level-change`, { change_direction: 'decrease' }],
    [disabled, {}],
  ] as const) {
    const token = world.transmitter.token({ sub_id: world.person('jane'), events: { [type]: details } })
    const pushes = Array.from({ length: 12 }, (_, n) => world.transmitter.push(world.replicas[n % 2]?.url ?? '', token))
    assert.ok((await Promise.all(pushes)).every(({ status }) => status === 202))
  }

  assert.deepEqual([world.audits('signal.obeyed').length, world.audits('signal.replayed').length], [2, 22])
  assert.equal(world.audits('session.ended').length, 1)
})

test('A fraction of a second in iat is no reason for 503', async (t) => {
  const world = await startSignals(t, { store: 'redis' })
  const jane = world.browser()
  await jane.get(`${world.url}/`)
  const iat = Date.now() / 1000 - 0.123456
  const token = world.transmitter.token({ iat, sub_id: world.person('jane'), events: { [disabled]: {} } })

  assert.equal((await world.transmitter.push(world.url, token)).status, 202)

  assert.equal(await world.hasSession(jane), false)
})

test('An event at one replica changes what another replica has in memory', async (t) => {
  const world = await startSignals(t, {
    store: 'redis',
    replicas: 2,
    upstreamSettings: `rules:
      - { path: /api/*, unauthenticated: 401 }
      - { path: /strong/*, step_up: { max_age: 1h } }`,
  })
  const jane = world.browser()
  const other = world.replicas[1]?.url ?? ''
  await jane.get(`${world.url}/strong/a`)
  assert.equal((await jane.fetch(`${other}/strong/a`)).status, 404)

  const level = `${caep}assurance-level-change`
  assert.equal(await world.event(level, world.person('jane'), { change_direction: 'decrease' }), 202)

  // 401, because the request is not for a page.
  assert.equal((await jane.fetch(`${other}/strong/a`)).status, 401)
  assert.equal(await world.hasSession(jane), true)
})

test('UserInfo is read after the event, also when a reading was under way', async (t) => {
  const world = await startSignals(t)
  const jane = world.browser()
  await jane.get(`${world.url}/`)
  const waiting: (() => void)[] = []
  let isHeld = (_value: unknown) => {}
  const first = new Promise((resolve) => (isHeld = resolve))
  world.provider.fault('/oauth/userinfo', (_req, _res, pass) => {
    waiting.push(pass)
    isHeld(undefined)
  })
  const before = world.provider.hits('/oauth/userinfo')
  const change = () => world.event(`${caep}token-claims-change`, world.person('jane'), { claims: {} })
  const one = change()
  await first
  const mend = world.provider.fault('/oauth/userinfo', (_req, _res, pass) => pass())
  const two = change()
  for (const pass of waiting) pass()

  assert.deepEqual(await Promise.all([one, two]), [202, 202])
  assert.equal(world.provider.hits('/oauth/userinfo') - before, 2)
  mend()
  const flood = await Promise.all(Array.from({ length: 40 }, change))
  assert.ok(flood.every((status) => status === 202))
  const read = world.provider.hits('/oauth/userinfo') - before - 2
  assert.ok(read < 20, `${read} requests to UserInfo`)
})

test('token-claims-change ends a session that UserInfo rejects and that has no refresh token', async (t) => {
  const adjust = (base: Configuration) => ({ ...base, issueRefreshToken: () => false })
  const world = await startSignals(t, { provider: { adjust } })
  const jane = world.browser()
  await jane.get(`${world.url}/`)
  world.provider.fault('/oauth/userinfo', (_req, res) => void res.writeHead(401).end())

  assert.equal(await world.event(`${caep}token-claims-change`, world.person('jane')), 202)

  assert.equal(await world.hasSession(jane), false)
  assert.equal(world.audits('session.ended')[0]?.['by'], 'userinfo_401')
})

const odd: Readonly<Record<string, Json>> = {
  'a session that is no object': { format: 'complex', session: 'abc', user: 'USER' },
  'a list of sessions': { format: 'complex', session: [{ format: 'opaque', id: 'x' }], user: 'USER' },
  'a prototype': JSON.parse('{ "__proto__": { "format": "opaque", "id": "jane" } }') as Json,
  'a constructor': { constructor: { format: 'opaque', id: 'jane' } },
  'a list of identifiers': { format: 'opaque', id: ['jane'] },
  'many people': { format: 'aliases', identifiers: ['USER'] },
}

test('A subject of another shape ends nothing, and the gateway says so', async (t) => {
  const world = await startSignals(t)
  const jane = world.browser()
  await jane.get(`${world.url}/`)
  for (const [what, subject] of Object.entries(odd)) {
    const sub_id = JSON.parse(JSON.stringify(subject).replace('"USER"', JSON.stringify(world.person('jane')))) as Json
    const type = `${caep}session-revoked`
    assert.equal(await world.event(type, sub_id), 202, what)
    assert.equal(await world.hasSession(jane), true, what)
  }
  assert.equal(world.audits('signal.ignored').length, Object.keys(odd).length)
})

test('A token with hundreds of events is refused', async (t) => {
  const world = await startSignals(t)
  const events = Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`e${n}`, {}]))

  const token = world.transmitter.token({ sub_id: world.person('jane'), events })

  assert.equal((await world.transmitter.push(world.url, token)).status, 400)
  assert.equal(world.audits('signal.ignored').length, 0)
})

test('Tokens of an unknown key, and metadata of another shape, cause few requests to the transmitter', async (t) => {
  const world = await startSignals(t)
  const { transmitter } = world
  const forged = () =>
    transmitter.token({ sub_id: world.person('jane'), events: { [disabled]: {} } }, { key: ecKey('unknown') })
  const push = async () => (await transmitter.push(world.url, forged())).status
  const good = transmitter.metadata

  for (const metadata of [null, [], { ...good, jwks_uri: ['x'] }, { ...good, padding: 'x'.repeat(2 ** 20) }]) {
    transmitter.metadata = metadata as Json
    assert.equal(await push(), 503)
    world.moveClock(1_001)
  }
  transmitter.metadata = good
  const before = transmitter.hits()
  const statuses = await Promise.all(Array.from({ length: 40 }, push))

  assert.ok(statuses.every((status) => status === 400))
  assert.ok(transmitter.hits() - before <= 6, `${transmitter.hits() - before} requests`)
})

test('An event of one provider ends no session of another provider with the same transmitter', async (t) => {
  const transmitter = await startTransmitter(t)
  const own = `transmitter: "${transmitter.issuer}", audience: [${audience}], signing_alg: ES256`
  const world = await twoProviders(t, {
    upstreams: separate,
    providerSettings: `signals: { ${own}, trusted_subjects: [email] }`,
  })
  for (const provider of [world.staff, world.partners]) verifyAddresses({ provider })
  const jane = new Browser('jane')
  const isIn = async (name: string) => (await jane.send(`${world.url}/${name}/api/me`)).status === 200
  const disable = async (sub_id: Json) => {
    const token = transmitter.token({ sub_id, events: { [disabled]: {} } })
    assert.equal((await transmitter.push(world.url, token, {}, 'partners/')).status, 202)
  }
  for (const name of ['staff', 'partners']) await jane.get(`${world.url}/${name}/api/me`)

  await disable({ format: 'iss_sub', iss: world.staff.issuer, sub: 'jane' })
  assert.deepEqual([await isIn('staff'), await isIn('partners')], [true, true])

  // The address has the name `mail` in the sessions of the partners.
  await disable({ format: 'email', email: 'jane.doe@example.com' })
  assert.deepEqual([await isIn('staff'), await isIn('partners')], [true, false])

  await jane.get(`${world.url}/partners/api/me`)
  await disable({ format: 'opaque', id: 'jane' })
  assert.deepEqual([await isIn('staff'), await isIn('partners')], [true, false])
})

test('A token whose iat is a little ahead is remembered as long as it is accepted', async (t) => {
  const world = await startSignals(t)
  const jane = world.browser()
  await jane.get(`${world.url}/`)
  const week = 7 * 86_400
  const token = world.transmitter.token({
    iat: Math.floor(Date.now() / 1000) + 20,
    sub_id: world.person('jane'),
    events: { [`${caep}assurance-level-change`]: { change_direction: 'decrease' } },
  })
  assert.equal((await world.transmitter.push(world.url, token)).status, 202)
  world.moveClock((week + 10) * 1000)

  assert.equal((await world.transmitter.push(world.url, token)).status, 202)

  assert.deepEqual([world.audits('signal.obeyed').length, world.audits('signal.replayed').length], [1, 1])
})

test('The media type of an event may have parameters and capital letters', async (t) => {
  const world = await startSignals(t)
  for (const type of ['application/secevent+jwt; charset=utf-8', 'Application/SecEvent+JWT']) {
    const token = world.transmitter.token({ sub_id: world.person('jane'), events: { [disabled]: {} } })
    const response = await world.transmitter.push(world.url, token, { 'content-type': type })
    assert.equal(response.status, 202, type)
  }
})

test('The e-mail address of a person whose sessions end at the same time is searched without an error', async (t) => {
  const world = await startSignals(t, { store: 'redis', signals: 'trusted_subjects: [email, account]' })
  verifyAddresses(world)
  for (let n = 0; n < 6; n += 1) await world.browser().get(`${world.url}/`)
  const subjects = [
    { format: 'email', email: 'jane.doe@example.com' },
    { format: 'account', uri: 'acct:jane.doe@example.com' },
    world.person('jane'),
  ]
  const statuses = await Promise.all(subjects.map((subject) => world.event(disabled, subject)))
  assert.deepEqual(statuses, [202, 202, 202])
  assert.equal(world.audits('session.ended').length, 6)
})

test('A sign-in that began before an event about the e-mail address of its person does not become a session', async (t) => {
  const world = await startSignals(t, { store: 'redis', replicas: 2, signals: 'trusted_subjects: [email]' })
  verifyAddresses(world)
  const [jane, zoe] = [world.browser(), world.browser('zoe')]
  const callback = await jane.until(`${world.url}/`, '/.gatehouse/callback')
  const ofZoe = await zoe.until(`${world.url}/`, '/.gatehouse/callback')
  const subject = { format: 'email', email: 'jane.doe@EXAMPLE.com' }
  const token = world.transmitter.token({ sub_id: subject, events: { [disabled]: {} } })
  assert.equal((await world.transmitter.push(world.replicas[1]?.url ?? '', token)).status, 202)

  await jane.send(callback)
  await zoe.send(ofZoe)

  assert.deepEqual([await world.hasSession(jane), await world.hasSession(zoe)], [false, true])

  // A sign-in after the event is another one, also when the event is sent again.
  const again = await jane.until(`${world.url}/`, '/.gatehouse/callback')
  assert.equal((await world.transmitter.push(world.url, token)).status, 202)
  await jane.send(again)
  assert.equal(await world.hasSession(jane), true)
})
