import assert from 'node:assert/strict'
import { after, test, type TestContext } from 'node:test'
import { deviceKey, proofOf } from '../support/device-browser.ts'
import { boundCookie, startDeviceWorld } from './world.ts'

const scope = { after } as unknown as TestContext
/** For tests that do not move the clock. */
const shared = await startDeviceWorld(scope)

test('The response with a new session asks the browser for a key, and the registration binds the session', async () => {
  const browser = shared.device()
  await browser.get(`${shared.url}/`)

  const { status, headers } = await browser.register()

  assert.equal(status, 200)
  const { session_identifier, ...instructions } = browser.instructions
  assert.equal(typeof session_identifier, 'string')
  assert.deepEqual(instructions, {
    refresh_url: '/.gatehouse/device-refresh',
    scope: { origin: shared.url, include_site: false, scope_specification: [] },
    credentials: [{ type: 'cookie', name: boundCookie, attributes: 'Path=/; HttpOnly; SameSite=Lax; Secure' }],
    allowed_refresh_initiators: ['*'],
  })
  assert.match(
    String(headers['set-cookie']),
    new RegExp(`^${boundCookie}=[\\w-]{54}; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=300$`),
  )
  assert.equal((await browser.send(`${shared.url}/`)).status, 200)
  assert.equal(shared.events('session.bound').at(-1)?.['sub'], 'jane')
})

test('A session can be bound to an RSA key', async () => {
  const browser = shared.device('jane', deviceKey('RS256'))
  await browser.get(`${shared.url}/`)

  assert.equal((await browser.register()).status, 200)
  browser.cookies.delete(boundCookie)
  assert.equal((await browser.renew()).status, 200)
  assert.equal((await browser.send(`${shared.url}/`)).status, 200)
})

test('The application gets neither the bound cookie nor the fields of a proof', async () => {
  const browser = await shared.bound()

  const { body } = await browser.get(`${shared.url}/`)

  assert.match(body, /x-remote-user/i)
  assert.doesNotMatch(body, /gatehouse-bound/)
})

test('A repeated registration of the same key succeeds, because its first response may be lost', async () => {
  const browser = await shared.bound()

  assert.equal((await browser.register()).status, 200)
  assert.equal(
    shared
      .events('session.bound')
      .filter(({ session }) => session === shared.events('session.bound').at(-1)?.['session']).length,
    1,
  )
})

test('A bound session cannot be bound to another key', async () => {
  const browser = await shared.bound()

  const { status } = await browser.register(deviceKey())

  assert.equal(status, 403)
  browser.cookies.delete(boundCookie)
  assert.equal((await browser.renew(deviceKey())).status, 403, 'a proof of the other key')
})

test('Of two registrations at the same moment with different keys, one wins', async () => {
  const browser = shared.device()
  await browser.get(`${shared.url}/`)

  const outcomes = await Promise.all([browser.register(deviceKey()), browser.register(deviceKey())])

  assert.deepEqual(outcomes.map(({ status }) => status).toSorted(), [200, 403])
})

const refused: Readonly<Record<string, (challenge: string) => string>> = {
  'is no JWT': () => 'abc',
  'is empty': () => '""',
  'has no challenge': () => proofOf(deviceKey(), {}),
  'has another challenge': () => proofOf(deviceKey(), { jti: 'abc' }),
  'has another type': (jti) => proofOf(deviceKey(), { jti }, { typ: 'JWT' }),
  'has no key': (jti) => proofOf(deviceKey(), { jti }, { jwk: undefined }),
  'has a key that did not sign it': (jti) => proofOf(deviceKey(), { jti }, { jwk: deviceKey().jwk }),
  'is not signed': (jti) => proofOf(deviceKey(), { jti }, { alg: 'none' }),
  'has a symmetric key': (jti) => proofOf(deviceKey(), { jti }, { alg: 'HS256', jwk: { kty: 'oct', k: 'AAAA' } }),
  'has a private key': (jti) => {
    const key = deviceKey()
    return proofOf(key, { jti }, { jwk: key.privateKey.export({ format: 'jwk' }) })
  },
  'has an unknown extension': (jti) => proofOf(deviceKey(), { jti }, { crit: ['x'], x: 1 }),
  'has 9 KiB': (jti) => proofOf(deviceKey(), { jti, text: 'x'.repeat(9 * 1024) }),
}

for (const [what, proof] of Object.entries(refused))
  test(`A registration whose proof ${what} is refused, and the session stays unbound`, async () => {
    const browser = shared.device()
    await browser.get(`${shared.url}/`)
    const { url, challenge } = browser.registration ?? assert.fail('no registration')

    const { status, headers } = await browser.prove(url, { 'secure-session-response': proof(challenge) })

    assert.equal(status, 403)
    assert.equal(headers['set-cookie'], undefined)
    assert.equal((await browser.register()).status, 200, 'the right proof is still accepted')
  })

test('A registration without a proof is refused', async () => {
  const browser = shared.device()
  await browser.get(`${shared.url}/`)

  assert.equal((await browser.prove(browser.registration?.url ?? '', {})).status, 403)
})

test('The challenge of a refresh does not register a key', async () => {
  const browser = await shared.bound()
  const id = String(browser.instructions['session_identifier'])
  const asked = await browser.prove(`${shared.url}/.gatehouse/device-refresh`, { 'sec-secure-session-id': id })
  const [, jti] = /^"([^"]+)"/.exec(String(asked.headers['secure-session-challenge'])) ?? []

  const proof = proofOf(deviceKey(), { jti })
  const { status } = await browser.prove(browser.registration?.url ?? '', { 'secure-session-response': proof })

  assert.equal(status, 403)
})

test('A refresh without a proof gets a challenge, and with the proof a new cookie', async () => {
  const browser = await shared.bound()
  const url = `${shared.url}/.gatehouse/device-refresh`
  const id = String(browser.instructions['session_identifier'])

  const asked = await browser.prove(url, { 'sec-secure-session-id': `"${id}"` })

  assert.equal(asked.status, 403)
  assert.match(String(asked.headers['secure-session-challenge']), new RegExp(`^"[\\w-]+";id="${id}"$`))
  const before = browser.cookies.get(boundCookie)?.value
  assert.equal((await browser.renew()).status, 200)
  assert.notEqual(browser.cookies.get(boundCookie)?.value, before)
})

test('A refresh of one session with the key of another is refused', async () => {
  const [jane, mallory] = [await shared.bound(), await shared.bound('samir')]

  assert.equal((await jane.renew(mallory.key)).status, 403)
})

test('A refresh for a session that does not exist tells the browser to delete its key', async () => {
  const browser = shared.device()
  for (const id of ['abc', '', '"abc"', 'x'.repeat(2_000)]) {
    const { status, body } = await browser.prove(`${shared.url}/.gatehouse/device-refresh`, {
      'sec-secure-session-id': id,
    })
    assert.equal(status, 200, id)
    assert.equal((JSON.parse(body) as Record<string, unknown>)['continue'], false)
  }
})

test('After a sign-out, the refresh tells the browser to delete its key', async () => {
  const browser = await shared.bound()
  const signedOut = await browser.get(`${shared.url}/.gatehouse/sign-out`, {
    headers: { 'sec-fetch-site': 'same-origin' },
  })
  assert.equal(signedOut.status, 200)
  assert.equal(browser.cookies.has(boundCookie), false, 'the sign-out deletes the cookie')

  const { status, body } = await browser.renew()

  assert.equal(status, 200)
  assert.deepEqual(JSON.parse(body), {
    session_identifier: browser.instructions['session_identifier'],
    continue: false,
  })
})

test('A browser without keys has access as before', async () => {
  const browser = shared.browser()

  assert.equal((await browser.get(`${shared.url}/`)).status, 200)
  assert.equal((await browser.send(`${shared.url}/`)).status, 200)
})

test('Nothing about a key is in the log', async () => {
  const browser = await shared.bound()
  await browser.renew()

  const text = JSON.stringify(shared.replicas.map(({ log, access }) => [log, access]))
  for (const secret of [browser.registration?.challenge, browser.cookies.get(boundCookie)?.value, browser.key.jwk['x']])
    assert.ok(typeof secret === 'string' && !text.includes(secret))
})
