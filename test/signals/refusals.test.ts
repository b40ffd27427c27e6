import assert from 'node:assert/strict'
import { after, test, type TestContext } from 'node:test'
import { ecKey, hmacJwt, type Json, part, rsaKey } from '../support/signing-provider.ts'
import { caep, type Transmitter } from '../support/transmitter.ts'
import { startSignals } from './world.ts'

/** No test ends the session of its browser. */
const shared = await startSignals({ after } as unknown as TestContext)
const jane = shared.browser()
await jane.get(`${shared.url}/`)
const revoked = { sub_id: shared.person('jane'), events: { [`${caep}session-revoked`]: {} } }
const seconds = () => Math.floor(Date.now() / 1000)

async function pushed(token: string, headers: Readonly<Record<string, string>> = {}): Promise<[number, string]> {
  const response = await shared.transmitter.push(shared.url, token, headers)
  const text = await response.text()
  return [response.status, text === '' ? '' : String((JSON.parse(text) as Json)['err'])]
}

const refused: Readonly<Record<string, readonly [(by: Transmitter) => string, string]>> = {
  'is no JWT': [() => 'abc', 'invalid_request'],
  'has the type of other JWTs': [(by) => by.token(revoked, { header: { typ: 'JWT' } }), 'invalid_request'],
  'has no type': [(by) => by.token(revoked, { header: { typ: undefined } }), 'invalid_request'],
  'is a Logout Token': [
    (by) => by.token({ ...revoked, sub: 'jane' }, { header: { typ: 'logout+jwt' } }),
    'invalid_request',
  ],
  'is from another issuer': [(by) => by.token({ ...revoked, iss: 'https://other.example' }), 'invalid_issuer'],
  'is from the provider and not the transmitter': [
    (by) => by.token({ ...revoked, iss: shared.provider.issuer }),
    'invalid_issuer',
  ],
  'is for another audience': [(by) => by.token({ ...revoked, aud: 'https://other.example' }), 'invalid_audience'],
  'has no audience': [(by) => by.token({ ...revoked, aud: undefined }), 'invalid_audience'],
  'is signed with another key': [(by) => by.token(revoked, { key: ecKey('signals') }), 'invalid_key'],
  'names an unknown key': [(by) => by.token(revoked, { key: ecKey('unknown') }), 'invalid_key'],
  'is signed with another algorithm': [(by) => by.token(revoked, { key: rsaKey('signals') }), 'invalid_key'],
  'is signed with a shared secret': [() => hmacJwt(revoked, 'secret', { typ: 'secevent+jwt' }), 'invalid_key'],
  'is not signed': [() => `${part({ alg: 'none', typ: 'secevent+jwt' })}.${part(revoked)}.`, 'invalid_key'],
  'has no time': [(by) => by.token({ ...revoked, iat: undefined }), 'invalid_request'],
  'is from the future': [(by) => by.token({ ...revoked, iat: seconds() + 3_600 }), 'invalid_request'],
  'is more than a week old': [(by) => by.token({ ...revoked, iat: seconds() - 8 * 86_400 }), 'invalid_request'],
  'has expired': [(by) => by.token({ ...revoked, exp: seconds() - 3_600 }), 'invalid_request'],
  'has no jti': [(by) => by.token({ ...revoked, jti: undefined }), 'invalid_request'],
  'has a sub': [(by) => by.token({ ...revoked, sub: 'jane' }), 'invalid_request'],
  'has no events': [(by) => by.token({ ...revoked, events: undefined }), 'invalid_request'],
  'has an empty list of events': [(by) => by.token({ ...revoked, events: [] }), 'invalid_request'],
  'has no event in events': [(by) => by.token({ ...revoked, events: {} }), 'invalid_request'],
  'has an event that is no object': [
    (by) => by.token({ ...revoked, events: { [`${caep}session-revoked`]: true } }),
    'invalid_request',
  ],
  'has a subject that is no object': [(by) => by.token({ ...revoked, sub_id: 'jane' }), 'invalid_request'],
  'has deep JSON': [
    (by) => by.token({ ...revoked, deep: JSON.parse(`${'['.repeat(200)}${']'.repeat(200)}`) as unknown }),
    'invalid_request',
  ],
}

for (const [what, [token, err]] of Object.entries(refused))
  test(`A security event that ${what} is refused with ${err}, and ends nothing`, async () => {
    assert.deepEqual(await pushed(token(shared.transmitter)), [400, err])
    assert.equal(await shared.hasSession(jane), true)
  })

test('The response names the error, and the log its reason', async () => {
  const response = await shared.transmitter.push(shared.url, 'abc')

  assert.equal(response.headers.get('content-type'), 'application/json')
  assert.equal(response.headers.get('content-language'), 'en')
  assert.deepEqual(await response.json(), { err: 'invalid_request', description: 'The security event is not valid.' })
  assert.equal(shared.audits('signal.refused').at(-1)?.['code'], 'ERR_SECURITY_EVENT_INVALID')
})

test('Another content type, and a body over the limit, are refused', async () => {
  const token = shared.transmitter.token(revoked)

  assert.deepEqual(await pushed(token, { 'content-type': 'application/jwt' }), [400, 'invalid_request'])
  assert.equal((await shared.transmitter.push(shared.url, 'x'.repeat(1024 * 1024))).status, 413)
  assert.equal((await fetch(`${shared.url}/.gatehouse/security-events`)).status, 405)
  assert.equal(await shared.hasSession(jane), true)
})

test('A security event is no Logout Token', async () => {
  const { status } = await shared.postLogoutToken({ logout_token: shared.transmitter.token(revoked) })

  assert.equal(status, 400)
  assert.equal(await shared.hasSession(jane), true)
})

const verification = 'https://schemas.openid.net/secevent/ssf/event-type/verification'

test('A verification event without state, which was not requested, is accepted and logged', async () => {
  assert.equal(await shared.event(verification, { format: 'opaque', id: 'stream-1' }), 202)
  const lines = shared.replicas.flatMap(({ log }) => log).filter(({ message }) => message === 'signals.stream')
  assert.equal(lines.at(-1)?.fields['event'], 'verification')
})

for (const state of ['abc', '', 7, null])
  test(`A verification event whose state was not sent gets 400 and invalid_state: ${JSON.stringify(state)}`, async () => {
    const { transmitter, url } = shared
    const token = transmitter.token({
      sub_id: { format: 'opaque', id: 'stream-1' },
      events: { [verification]: { state } },
    })

    const response = await transmitter.push(url, token)

    assert.equal(response.status, 400)
    assert.equal(((await response.json()) as Json)['err'], 'invalid_state')
  })

test('With push_secret, only a request with it is accepted', async (t) => {
  const world = await startSignals(t, { signals: 'push_secret: { env: PHPMYADMIN_PASSWORD }' })
  const push = (authorization?: string) =>
    world.transmitter.push(world.url, world.transmitter.token(revoked), {
      ...(authorization !== undefined && { authorization }),
    })

  for (const wrong of [undefined, '', 'Bearer x']) {
    const response = await push(wrong)
    assert.equal(response.status, 400)
    assert.equal(((await response.json()) as Json)['err'], 'authentication_failed')
  }
  assert.equal((await push('a password that only the gateway knows')).status, 202)
})

test('While the keys of the transmitter are away, an event gets 503', async (t) => {
  const world = await startSignals(t)
  world.transmitter.metadata = { issuer: 'https://other.example', jwks_uri: 'http://127.0.0.1:1/' }

  assert.equal(await world.event(`${caep}session-revoked`, world.person('jane')), 503)
})
