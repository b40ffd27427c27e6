import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { decodeProtectedHeader, type JSONWebKeySet } from 'jose'
import type { Configuration } from 'oidc-provider'
import { loadConfig } from '../../src/config/load.ts'
import { registrationOf, registrationsText } from '../../src/config/registration.ts'
import { rotateEveryMs } from '../../src/keys/decryption-keys.ts'
import { assertWholeJourney, startClient } from '../support/client-journey.ts'
import { clientKeyPair, withFeatures } from '../support/client-keys.ts'
import { folderWith } from '../support/command-line.ts'
import { until } from '../support/until.ts'
import { type Replica, secrets, type WorldOptions } from '../support/world.ts'

// The npm package oidc-provider, which encrypts to the keys of the gateway.

const minute = 60_000

type Client = Readonly<Record<string, unknown>>

const idTokens = { id_token_encrypted_response_alg: 'RSA-OAEP-256', id_token_encrypted_response_enc: 'A256GCM' }
const userinfo = {
  userinfo_signed_response_alg: 'RS256',
  userinfo_encrypted_response_alg: 'ECDH-ES',
  userinfo_encrypted_response_enc: 'A128CBC-HS256',
}

/** The options of a world whose client is registered so, also in the configuration. */
function encrypting(client: Client, more: WorldOptions & { readonly registered?: Client } = {}): WorldOptions {
  const { registered = {}, providerSettings = '', ...others } = more
  const features = {
    encryption: { enabled: true },
    jwtUserinfo: { enabled: true },
    jwtResponseModes: { enabled: true },
  }
  const adjust = (base: Configuration) => {
    const [{ backchannel_logout_uri = '' } = {}] = base.clients ?? []
    const jwks_uri = String(backchannel_logout_uri).replace('backchannel-logout', 'client-jwks.json')
    return withFeatures(features, { ...client, ...('jwks' in registered ? {} : { jwks_uri }), ...registered })(base)
  }
  const settings = Object.entries(client).map(([name, value]) => `${name}: ${String(value)}`)
  return {
    ...others,
    provider: { adjust },
    providerSettings: [...settings, providerSettings].join('\n  '),
  }
}

async function jwksOf(replica: Pick<Replica, 'url'>): Promise<JSONWebKeySet> {
  const response = await fetch(`${replica.url}/.gatehouse/client-jwks.json`)
  assert.equal(response.status, 200)
  assert.equal(response.headers.get('cache-control'), 'public, max-age=300')
  return (await response.json()) as JSONWebKeySet
}

/** The headers of the ID Tokens that arrive from now on. */
function headersOf(provider: { bend(path: string, change: (body: Record<string, unknown>) => void): unknown }) {
  const headers: ReturnType<typeof decodeProtectedHeader>[] = []
  provider.bend('/oauth/token', ({ id_token }) => void headers.push(decodeProtectedHeader(String(id_token))))
  return headers
}

/** Moves the clocks of the gateways and of the provider, which are in this process. */
function movableTime(t: TestContext): (ms: number) => void {
  let at = Date.now()
  t.mock.timers.enable({ apis: ['Date'], now: at })
  return (ms) => t.mock.timers.setTime((at += ms))
}

for (const [what, client] of [
  ['ID Tokens', idTokens],
  ['ID Tokens and UserInfo, with different algorithms', { ...idTokens, ...userinfo }],
  ['ID Tokens with ECDH-ES', { id_token_encrypted_response_alg: 'ECDH-ES' }],
] as const)
  test(`a person signs in, claims and tokens are renewed, and a Logout Token ends the session: encrypted ${what}`, async (t) => {
    const pass = movableTime(t)
    const { world, jane, log } = await startClient(t, encrypting(client))
    const headers = headersOf(world.provider)
    const opens = async () => assert.equal((await jane.send(`${world.url}/echo`)).status, 200, log())

    assert.equal((await jane.get(`${world.url}/echo`)).status, 200, log())
    pass(11 * minute)
    await opens()
    assert.equal(headers.length, 2, 'the tokens were refreshed')
    const polls = world.provider.hits('/oauth/userinfo')
    pass(40_000)
    await until('UserInfo was read again', async () => {
      await opens()
      return world.provider.hits('/oauth/userinfo') > polls
    })
    assert.doesNotMatch(log(), /upkeep_failed/)
    for (const { alg, kid } of headers) {
      assert.equal(alg, client.id_token_encrypted_response_alg)
      assert.equal(typeof kid, 'string')
    }

    const [session] = world.provider.sessions()
    assert.deepEqual(await world.provider.endSession(session?.sid ?? ''), { kind: 'delivered', status: 200 })
    assert.match(await jane.until(`${world.url}/echo`, '/oauth/authorize'), /authorize/)
  })

test('a person signs out at the provider with the signed ID Token as hint', async (t) => {
  const { world, jane } = await startClient(t, encrypting(idTokens))
  await jane.get(`${world.url}/echo`)

  const page = await jane.get(`${world.url}/.gatehouse/sign-out`)

  assert.equal(new URL(page.url).pathname, '/.gatehouse/signed-out')
  assert.equal(world.provider.sessions().length, 0)
})

test('an encrypted authorization response signs in', async (t) => {
  const client = { authorization_encrypted_response_alg: 'RSA-OAEP-256' }
  const journey = await startClient(t, encrypting(client, { providerSettings: 'response_mode: jwt' }))
  const back = new URL(await journey.jane.until(`${journey.world.url}/echo`, '/.gatehouse/callback'))
  assert.equal(decodeProtectedHeader(back.searchParams.get('response') ?? '').alg, 'RSA-OAEP-256')

  assert.equal((await journey.jane.get(back.href)).status, 200)
})

test('a sign-in at a provider that does not encrypt is refused, and the log names the setting', async (t) => {
  const settings = 'id_token_encrypted_response_alg: RSA-OAEP-256'
  const { world, jane, log } = await startClient(t, { ...encrypting({}), providerSettings: settings })

  const page = await jane.get(`${world.url}/echo`)

  assert.equal(page.status, 502)
  assert.match(log(), /ID Token refused: it is not encrypted, although provider.id_token_encrypted_response_alg is set/)
})

test('with a key from a file, the provider needs no address of the gateway', async (t) => {
  const { privateJwk, publicJwk } = clientKeyPair('RS256', 'static')
  const { kty, n, e } = publicJwk
  const folder = folderWith(t, { 'key.json': JSON.stringify({ ...privateJwk, alg: undefined, use: undefined }) })
  const jwks = { keys: [{ kty, n, e, kid: 'static', use: 'enc' }] }
  const providerSettings = `decryption_key: { file: ${join(folder, 'key.json')} }`
  const journey = await startClient(t, encrypting(idTokens, { registered: { jwks }, providerSettings }))

  await assertWholeJourney(journey)

  assert.deepEqual((await jwksOf(journey.world)).keys, [{ ...jwks.keys[0], alg: 'RSA-OAEP-256' }])
})

test('what has to be registered names the JWKS and the algorithms', async (t) => {
  const { world } = await startClient(t, encrypting({ id_token_encrypted_response_alg: 'ECDH-ES' }))
  const [{ file } = assert.fail()] = world.replicas
  const loaded = loadConfig(file, secrets)
  const config = loaded.ok ? loaded.config : assert.fail()

  const text = registrationsText(config)

  assert.match(text, /JWKS URI {19}http:\S+\/\.gatehouse\/client-jwks\.json\n/)
  assert.match(text, /id_token_encrypted_response_alg +ECDH-ES\n.*id_token_encrypted_response_enc +A128CBC-HS256\n/)
  assert.deepEqual(registrationOf(config.providers[0], config).id_token_encrypted_response_alg, 'ECDH-ES')
})

test('the JWKS has public members only, and the key of private_key_jwt too', async (t) => {
  const { pem } = clientKeyPair('ES256')
  const folder = folderWith(t, { 'key.pem': pem })
  const credentials = `client_key: { file: ${join(folder, 'key.pem')}, kid: signs }`
  const registered = { token_endpoint_auth_method: 'private_key_jwt', client_secret: undefined }
  const providerSettings = 'token_endpoint_auth_method: private_key_jwt'
  const journey = await startClient(t, encrypting(idTokens, { credentials, registered, providerSettings }))

  // The provider finds both keys at the one `jwks_uri` of the client.
  await assertWholeJourney(journey)

  const { keys } = await jwksOf(journey.world)
  assert.deepEqual(
    keys.map(({ use, alg, kid = '' }) => [use, alg, kid.length]),
    [
      ['sig', 'ES256', 5],
      ['enc', 'RSA-OAEP-256', 43],
    ],
  )
  for (const member of keys.flatMap((key) => Object.keys(key)))
    assert.ok(['kty', 'n', 'e', 'crv', 'x', 'y', 'kid', 'alg', 'use'].includes(member), member)
})

test('each replica decrypts what was encrypted to the key of another, also to the key before', async (t) => {
  const pass = movableTime(t)
  const { world, log } = await startClient(t, encrypting(idTokens, { store: 'redis', replicas: 2 }))
  const [one, other] = world.replicas as [Replica, Replica]
  const [first] = (await jwksOf(one)).keys
  const headers = headersOf(world.provider)
  const signsIn = async () => {
    const jane = world.browser()
    assert.equal((await jane.get(`${world.url}/echo`)).status, 200, log())
    return headers.at(-1)?.kid
  }
  const endsAt = async (replica: Replica) => {
    const sid = world.provider.sessions().at(-1)?.sid ?? ''
    const logout_token = await world.provider.logoutToken({ sub: 'jane', sid })
    assert.equal((await world.postLogoutToken({ logout_token }, replica)).status, 200, log())
    return decodeProtectedHeader(logout_token).kid
  }

  assert.deepEqual((await jwksOf(other)).keys, [first], 'both publish one key')
  assert.equal(await signsIn(), first?.kid)
  assert.equal(await endsAt(other), first?.kid)

  // The next key is made up to an hour ahead, and not published yet.
  pass(rotateEveryMs - 30 * minute)
  assert.deepEqual((await jwksOf(other)).keys, [first])
  assert.deepEqual((await jwksOf(one)).keys, [first])
  pass(58 * minute)
  assert.equal(await signsIn(), first?.kid, 'the provider reads the JWKS, and keeps it for five minutes')
  pass(110_000)
  const late = world.browser()
  const callback = await late.until(`${world.url}/echo`, '/.gatehouse/callback')

  // The next key takes its place during this sign-in.
  pass(20_000)
  const [second, ...more] = (await jwksOf(one)).keys
  assert.deepEqual(more, [])
  assert.notEqual(second?.kid, first?.kid)
  assert.deepEqual((await jwksOf(other)).keys, [second])
  assert.equal((await late.get(callback)).status, 200, log())
  assert.equal(headers.at(-1)?.kid, first?.kid)
  assert.equal(await endsAt(other), first?.kid)

  pass(5 * minute)
  assert.equal(await signsIn(), second?.kid)
  assert.equal(await endsAt(other), second?.kid)
})
