import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { Redis } from 'ioredis'
import { auditEventsIn } from '../support/audit-schema.ts'
import { goOn } from '../support/form-browser.ts'
import { freePort } from '../support/free-port.ts'
import {
  accessTokenSeconds,
  askForKey,
  basic,
  type KeyWorld,
  makeKey,
  send,
  signedIn,
  startKeyWorld,
  withOfflineTokens,
} from '../support/key-world.ts'
import { startSentinel } from '../support/redis-sentinel.ts'
import { formsOf, press, sendForm } from '../support/session-page.ts'
import { openEventStream } from '../support/streams.ts'
import { audience, caep, startTransmitter } from '../support/transmitter.ts'
import { until } from '../support/until.ts'

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

const works = async ({ url }: Pick<KeyWorld, 'url'>, key: string) =>
  (await send(`${url}/echo`, basic(key))).status === 200

/** How the keys of a world have ended. */
const endings = ({ replicas }: KeyWorld) =>
  replicas
    .flatMap(({ log }) => auditEventsIn(log))
    .flatMap(({ message, fields }) => (message === 'key.ended' ? [fields['by']] : []))

test('redis: An administrator ends a key by its person, with its streams on each replica', async (t) => {
  const adminPort = await freePort()
  const world = await startKeyWorld(t, {
    store: 'redis',
    settings: `admin: { listen: "127.0.0.1:${adminPort}", page: {} }`,
  })
  const key = await makeKey(await signedIn(world), world)
  const stream = await openEventStream(t, `${world.url}/events`, basic(key))

  const response = await fetch(`http://127.0.0.1:${adminPort}/sessions/end`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ sub: 'jane' }),
  })

  assert.equal(((await response.json()) as { ended: number }).ended, 2)
  await stream.ended
  assert.equal(await works(world, key), false)
  assert.deepEqual(endings(world), ['administrator'])
})

test('A security event about the person ends the key, one about the session does not', async (t) => {
  const transmitter = await startTransmitter(t)
  const own = `transmitter: "${transmitter.issuer}", audience: [${audience}], signing_alg: ES256`
  const world = await startKeyWorld(t, { providerSettings: `signals: { ${own} }` })
  const key = await makeKey(await signedIn(world), world)
  const { sid } = world.provider.sessions()[0] ?? assert.fail()
  const subjects = [
    {
      format: 'complex',
      user: { format: 'iss_sub', iss: world.provider.issuer, sub: 'jane' },
      session: { format: 'opaque', id: sid },
    },
    { format: 'iss_sub', iss: world.provider.issuer, sub: 'jane' },
  ]
  const expected = [true, false]
  for (const [index, sub_id] of subjects.entries()) {
    const token = transmitter.token({ sub_id, events: { [`${caep}session-revoked`]: {} } })
    assert.equal((await transmitter.push(world.url, token)).status, 202)
    assert.equal(await works(world, key), expected[index])
  }
  assert.deepEqual(endings(world), ['signal'])
})

test('A request for Global Token Revocation ends the keys of its person only', async (t) => {
  const { issuer, metadata, token } = await startTransmitter(t)
  const world = await startKeyWorld(t, {
    providerSettings: `global_token_revocation: { issuer: "${issuer}", jwks_uri: "${String(metadata['jwks_uri'])}", signing_alg: ES256 }`,
  })
  const key = await makeKey(await signedIn(world), world)
  const url = `${world.url}/.gatehouse/global-token-revocation`
  const revoke = (sub: string) => {
    const bearer = token(
      { aud: url, exp: Math.floor(Date.now() / 1000) + 300 },
      { header: { typ: 'global-token-revocation+jwt' } },
    )
    const sub_id = { format: 'iss_sub', iss: world.provider.issuer, sub }
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${bearer}` }
    return fetch(url, { method: 'POST', headers, body: JSON.stringify({ sub_id }) })
  }

  assert.equal((await revoke('samir')).status, 204)
  assert.equal(await works(world, key), true)
  assert.equal((await revoke('jane')).status, 204)
  assert.equal(await works(world, key), false)
})

/** Tokens that live for an hour: only UserInfo is due. */
async function startPolled(t: TestContext) {
  const world = await startKeyWorld(t, { session: 'poll_userinfo: 30s' })
  world.provider.bend('/oauth/token', (body) => void (body['expires_in'] = 3600))
  const key = await makeKey(await signedIn(world), world)
  return { world, key }
}

test('poll_userinfo reads UserInfo for a key: the program gets new claims, and loses a right', async (t) => {
  const { world, key } = await startPolled(t)
  const api = async () => (await send(`${world.url}/api/me`, basic(key))).status
  assert.equal(await api(), 200)
  world.provider.bend(
    '/oauth/userinfo',
    (body) => void (body['https://id.example.com/claims/fields'] = { groups: ['audit'] }),
  )

  world.moveClock(30_000)

  await until('the claims are new', async () => (await api()) === 403)
  assert.match((await send(`${world.url}/echo`, basic(key))).body, /"X-Groups",\s*"audit"/)
})

for (const [what, isRejectedAgain] of [
  ['rejects the access token once', false],
  ['rejects the refreshed access token too', true],
] as const)
  test(`With poll_userinfo, UserInfo ${what}: a key is refreshed once, and ${isRejectedAgain ? 'ends' : 'stays'}`, async (t) => {
    const { world, key } = await startPolled(t)
    const [polls, refreshes] = [world.provider.hits('/oauth/userinfo'), world.provider.hits('/oauth/token')]
    const mend = world.provider.fault('/oauth/userinfo', (_req, res) => {
      if (!isRejectedAgain) mend()
      res.writeHead(401, { 'www-authenticate': 'Bearer error="invalid_token"' }).end()
    })

    world.moveClock(30_000)
    await works(world, key)
    await until('UserInfo was read again', () => world.provider.hits('/oauth/userinfo') - polls >= 2)

    if (isRejectedAgain) await until('the key has ended', async () => !(await works(world, key)))
    assert.equal(await works(world, key), !isRejectedAgain)
    assert.deepEqual(endings(world), isRejectedAgain ? ['userinfo_401'] : [])
    assert.equal(world.provider.hits('/oauth/token') - refreshes, 1)
  })

for (const tokens of ['a refresh token', 'no refresh token'] as const)
  test(`An older copy of Redis brings back no key that the provider has ended: with ${tokens}`, async (t) => {
    const world = await startKeyWorld(t, {
      store: 'redis',
      ...(tokens === 'no refresh token' && {
        provider: { adjust: (configuration) => ({ ...configuration, issueRefreshToken: async () => false }) },
      }),
    })
    const [jane, samir] = [await signedIn(world), await signedIn(world, 'samir')]
    const [ended, kept] = [await makeKey(jane, world), await makeKey(samir, world)]
    const redis = world.redis ?? assert.fail()
    const direct = new Redis(redis.port, '127.0.0.1')
    await direct.save()
    direct.disconnect()
    await press(jane, await jane.get(world.page), /^End the key/)
    // The account is gone, so that the provider confirms nothing.
    world.people.splice(0, 1)

    await redis.restart()
    const fresh = await world.startReplica()
    const asked = () => world.provider.hits('/oauth/token') + world.provider.hits('/oauth/userinfo')
    const before = asked()

    await until('the gateway serves', () => works(fresh, kept))
    assert.ok(asked() > before, 'the provider was asked')
    assert.equal((await send(`${fresh.url}/echo`, basic(ended))).status, 401)
    const now = asked()
    assert.equal(await works(fresh, kept), true)
    assert.equal(asked(), now, 'once')
  })

test('A failover of Redis keeps a key, and an ended one stays ended', async (t) => {
  const setup = await startSentinel(t)
  const world = await startKeyWorld(t, { sentinel: setup })
  await world.startReplica()
  const jane = await signedIn(world)
  const [kept, ended] = [await makeKey(jane, world, { name: 'kept' }), await makeKey(jane, world, { name: 'ended' })]
  await press(jane, await jane.get(world.page), /^End the key ended$/)

  const primary = new Redis(setup.servers[0].port, '127.0.0.1')
  t.after(() => primary.disconnect())
  primary.on('error', () => {})
  // The replica has all writes before this one, too.
  await primary.set('last', '1')
  assert.equal(await primary.wait(1, 30_000), 1)

  await setup.servers[0].kill()

  for (const at of world.replicas) await until('the key works again', () => works(at, kept))
  for (const at of world.replicas) assert.equal((await send(`${at.url}/echo`, basic(ended))).status, 401)
})

test('A key ends by itself: when no program uses it, and at its end', async (t) => {
  const world = await startKeyWorld(t, {
    upstreamSettings: `keys: { for_at_most: 3d, idle: 1d }
    rules: [{ path: /echo, keys: true }]`,
    // No refresh in the time of the test.
    provider: {
      adjust: (configuration) => ({ ...configuration, ttl: { ...configuration.ttl, AccessToken: 864_000 } }),
    },
  })
  const jane = await signedIn(world)
  const [used, unused] = [await makeKey(jane, world), await makeKey(jane, world, { name: 'unused' })]

  for (let days = 0.9; days < 4; days += 0.9) {
    world.moveClock(0.9 * day)
    assert.equal(await works(world, used), days < 3, String(days))
    if (days > 1) assert.equal(await works(world, unused), false)
  }
})

test('Without a refresh token, a key lasts for absolute_timeout at most', async (t) => {
  const world = await startKeyWorld(t, {
    session: 'absolute_timeout: 2h',
    provider: { adjust: (configuration) => ({ ...configuration, issueRefreshToken: async () => false }) },
  })
  world.provider.bend('/oauth/token', (body) => void delete body['expires_in'])
  const key = await makeKey(await signedIn(world), world)

  world.moveClock(2 * hour - minute)
  assert.equal(await works(world, key), true)
  world.moveClock(2 * minute)
  assert.equal(await works(world, key), false)
})

test('The provider is away: a fresh key works, one whose token has expired waits for it', async (t) => {
  const world = await startKeyWorld(t)
  const key = await makeKey(await signedIn(world), world)

  await world.provider.down()
  assert.equal(await works(world, key), true)
  world.moveClock((accessTokenSeconds + 1) * 1000)
  assert.equal((await send(`${world.url}/echo`, basic(key))).status, 503)
  await world.provider.up()
  // The provider is asked again after a pause.
  world.moveClock(2_000)
  await until('the provider is asked again', () => works(world, key))
})

test('The store is away: keys in memory are served for store_outage_grace, others get 503', async (t) => {
  const world = await startKeyWorld(t, {
    store: 'redis',
    session: 'store_outage_grace: 1m',
    redisSettings: 'timeout: 300ms',
  })
  const jane = await signedIn(world)
  const [known, unknown] = [await makeKey(jane, world), await makeKey(jane, world, { name: 'unknown' })]
  await world.startReplica()
  const [first, second] = world.replicas
  assert.ok(first && second)
  await until('the key is in memory', () => works(second, known))

  await world.redis?.kill()

  await until('the grace has begun', async () => {
    const { status } = await send(`${second.url}/echo`, basic(known))
    assert.ok(status === 200 || status === 503)
    return second.log.some(({ message }) => message === 'session.grace_began') && status === 200
  })
  assert.equal((await send(`${second.url}/echo`, basic(unknown))).status, 503)

  // A store that has lost everything has no keys.
  await world.redis?.restart()
  await until('the store is back', async () => (await send(`${second.url}/echo`, basic(known))).status === 401)
})

test('A person has a number of keys for each upstream, ends all, and sessions do not count', async (t) => {
  const world = await startKeyWorld(t, {
    session: 'max_per_person: { count: 1, when_exceeded: end_oldest }',
    upstreamSettings: 'keys: { per_person: 2 }\n    rules: [{ path: /echo, keys: true }]',
  })
  const jane = await signedIn(world)
  const keys = [await makeKey(jane, world), await makeKey(jane, world, { name: 'backup' })]

  const full = await jane.get(world.page)
  assert.doesNotMatch(full.body, /Make a key/)
  assert.match(full.body, /You may not have more keys for orders\. End one to make another\./)
  assert.match(full.body, /<dt>Last used<\/dt><dd>Not yet<\/dd>/)
  for (const key of keys) assert.equal(await works(world, key), true)
  await until('the use is noted', async () =>
    /<dt>IP address<\/dt><dd>127/.test((await jane.get(world.page)).body.split('id="keys"')[1] ?? ''),
  )

  const others = await press(jane, full, /^End all keys$/)
  assert.match(others.body, /All keys have ended\./)
  for (const key of keys) assert.equal(await works(world, key), false)
  assert.equal((await jane.get(world.page)).status, 200, 'the session of the browser stays')

  const again = await makeKey(jane, world)
  const laptop = await signedIn(world)
  assert.equal(await works(world, again), true, 'a new session ends no key')
  await press(laptop, await laptop.get(world.page), /^End the key/)
  assert.equal(await works(world, again), false)
})

test('No person ends a key of another one', async (t) => {
  const world = await startKeyWorld(t)
  const [jane, samir] = [await signedIn(world), await signedIn(world, 'samir')]
  const key = await makeKey(jane, world)
  const buttons = formsOf(await jane.get(world.page)).filter(({ button }) => button.startsWith('End the key'))
  assert.equal(buttons.length, 1)

  for (const button of buttons) assert.equal((await sendForm(samir, button)).status, 200)

  assert.equal(await works(world, key), true)
})

test('When a key ends, the session of its program at the application ends too', async (t) => {
  const called: string[] = []
  const application = createServer((req, res) => {
    if (req.url === '/bye') called.push(String(req.headers.cookie))
    res.setHeader('Set-Cookie', 'APP=of-the-key; Path=/').end()
  })
  await once(application.listen(0, '127.0.0.1'), 'listening')
  t.after(() => void application.close().closeAllConnections())
  const world = await startKeyWorld(t, {
    upstream: new URL(`http://127.0.0.1:${(application.address() as AddressInfo).port}`),
    upstreamSettings: `session_cookies: [APP]
    logout: { call: /bye }
    keys: {}
    rules: [{ path: /echo, keys: true }]`,
  })
  const jane = world.browser()
  await jane.get(`${world.url}/.gatehouse/sign-in?return_to=/.gatehouse/sessions`)
  const key = await makeKey(jane, world)
  const response = await send(`${world.url}/echo`, basic(key))
  assert.equal(response.headers['set-cookie'], undefined, 'the program does not get the cookie')

  await press(jane, await jane.get(world.page), /^End the key/)

  await until('the application is told', () => called.includes('APP=of-the-key'))
})

test('Another person at the provider gets no key, and what the gateway then has is revoked', async (t) => {
  const world = await startKeyWorld(t)
  const jane = await signedIn(world)
  const asSamir = world.browser('samir')
  // The session of Jane here, and none at the provider.
  for (const [name, cookie] of jane.cookies) if (!name.startsWith('demo_provider')) asSamir.cookies.set(name, cookie)

  const refused = await askForKey(asSamir, world)

  assert.equal(refused.status, 403)
  assert.doesNotMatch(refused.body, /ghk_/)
  assert.doesNotMatch(refused.body, /You are not signed in/)
  await until('the tokens are revoked', () => world.provider.hits('/oauth/revoke') === 1)
  const failed = auditEventsIn(world.replicas[0]?.log ?? []).find(({ message }) => message === 'sign_in.failed')
  assert.equal(failed?.fields['code'], 'ERR_KEY_NOT_MADE')
})

test('An order to end all sessions of a person, during the sign-in for a key, leaves no key', async (t) => {
  const world = await startKeyWorld(t)
  const jane = await signedIn(world)
  const form = formsOf(await jane.get(world.page)).find(({ button }) => button === 'Make a key') ?? assert.fail()
  const begun = await sendForm(jane, { ...form, fields: { ...form.fields, name: 'DAVx5', upstream: 'orders' } })
  const [, provider = ''] = /url=(.*)$/.exec(String(begun.headers['refresh'])) ?? []

  const logout_token = await world.provider.logoutToken({ sub: 'jane' })
  assert.equal((await world.postLogoutToken({ logout_token })).status, 200)
  const page = await jane.get(provider)

  assert.match(page.body, /Your session was ended while you were signing in/)
  assert.doesNotMatch(page.body, /ghk_/)
  const events = auditEventsIn(world.replicas[0]?.log ?? [])
  assert.deepEqual(
    events.filter(({ message }) => message === 'key.created'),
    [],
  )
  assert.equal(events.find(({ message }) => message === 'sign_in.failed')?.fields['code'], 'ERR_SIGN_IN_ENDED')
})

test('The sign-in for a key is fresh, and as strong as keys.acr_values says', async (t) => {
  const world = await startKeyWorld(t, {
    upstreamSettings: `keys: { acr_values: [mfa] }
    rules: [{ path: /echo, keys: true, step_up: { acr_values: [mfa] } }]`,
  })
  const jane = await signedIn(world)
  const key = await makeKey(jane, world)
  assert.equal(await works(world, key), true)

  // A provider that ignores max_age: its session is older than the sign-in for the key.
  world.moveClock(3 * minute)
  const stale = await askForKey(jane, world)

  assert.equal(stale.status, 502)
  assert.doesNotMatch(stale.body, /ghk_/)
})

test('Two keys are made at the same time: the one beyond per_person is refused', async (t) => {
  const world = await startKeyWorld(t, {
    upstreamSettings: 'keys: { per_person: 1 }\n    rules: [{ path: /echo, keys: true }]',
  })
  const [here, there] = [await signedIn(world), await signedIn(world)]
  const forms = await Promise.all([here, there].map(async (browser) => formsOf(await browser.get(world.page))))

  const made = await Promise.all(
    [here, there].map(async (browser, index) => {
      const form = forms[index]?.find(({ button }) => button === 'Make a key') ?? assert.fail()
      const fields = { ...form.fields, name: 'one', upstream: 'orders' }
      return goOn(browser, await sendForm(browser, { ...form, fields }))
    }),
  )

  assert.deepEqual(made.map(({ status }) => status).toSorted(), [200, 403])
  // The tokens of the refused key are not revoked, because that could end what the person has.
  const page = await here.get(world.page)
  assert.equal(world.provider.hits('/oauth/revoke'), 0)
  await press(here, page, /^End the key/)
  await until('the token of the other key is revoked', () => world.provider.hits('/oauth/revoke') === 1)
})

test('Who may make a key: the page has no form for others, and a sent form is refused', async (t) => {
  const world = await startKeyWorld(t, {
    upstreamSettings: `keys: { require: { claim: fields.groups, any_of: [admins] } }
    rules: [{ path: /echo, keys: true }]`,
  })
  const [jane, samir] = [await signedIn(world), await signedIn(world, 'samir')]

  assert.equal(await works(world, await makeKey(jane, world)), true)
  assert.doesNotMatch((await samir.get(world.page)).body, /Keys of your programs/)
})

test('The end of the other sessions leaves keys, and the end of a key leaves the session at the provider', async (t) => {
  const world = await startKeyWorld(t)
  const [jane, laptop] = [await signedIn(world), await signedIn(world)]
  const key = await makeKey(jane, world)

  await press(jane, await jane.get(world.page), /^End all other sessions$/)
  assert.equal((await laptop.fetch(`${world.url}/echo`)).status, 401)
  assert.equal(await works(world, key), true)
  await until('the other session has ended at the provider', () => world.provider.sessions().length === 1)

  await press(jane, await jane.get(world.page), /^End the key/)
  await until('its token is revoked', () => world.provider.hits('/oauth/revoke') > 0)
  assert.equal(world.provider.sessions().length, 1)
})

test('The session_expiry of the provider does not end a key', async (t) => {
  const session_expiry = Math.floor(Date.now() / 1000) + 100
  const world = await startKeyWorld(t, {
    provider: {
      adjust: (configuration) => ({
        ...withOfflineTokens(configuration),
        claims: { ...configuration.claims, openid: ['sub', 'session_expiry'] },
        conformIdTokenClaims: false,
        findAccount: (_ctx, sub) => ({ accountId: sub, claims: () => ({ sub, session_expiry }) }),
      }),
    },
  })
  const jane = await signedIn(world)
  const key = await makeKey(jane, world)

  for (const isSignedIn of [true, false]) {
    world.moveClock((accessTokenSeconds + 1) * 1000)
    assert.equal(await works(world, key), true)
    assert.equal((await jane.fetch(`${world.url}/echo`)).status === 200, isSignedIn)
  }
})
