import assert from 'node:assert/strict'
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { test, type TestContext } from 'node:test'
import { CompactEncrypt, type CompactJWEHeaderParameters } from 'jose'
import type { ProviderConfig } from '../../src/config/model/provider.ts'
import { GatewayError } from '../../src/core/errors.ts'
import { createProvider } from '../../src/provider/create-provider.ts'
import { Decryption, longestToken } from '../../src/provider/encrypted-token.ts'
import { bearer, jwt, part, paths, sendJson, silent, startSigningProvider } from '../support/signing-provider.ts'
import { authorizationRequest, callbackWithCode, systemClock, validNow } from './a-client.ts'

const own = generateKeyPairSync('rsa', { modulusLength: 2048 })
const other = generateKeyPairSync('rsa', { modulusLength: 2048 })

interface JweOptions {
  readonly header?: Readonly<Record<string, unknown>>
  readonly to?: KeyObject
}

/** A nested JWT, as a provider creates it. */
async function jwe(content: string, { header = {}, to = own.publicKey }: JweOptions = {}): Promise<string> {
  const whole = { alg: 'RSA-OAEP-256', enc: 'A128CBC-HS256', cty: 'JWT', kid: 'one', ...header }
  const present = Object.entries(whole).filter(([, value]) => value !== undefined)
  return new CompactEncrypt(new TextEncoder().encode(content))
    .setProtectedHeader(Object.fromEntries(present) as unknown as CompactJWEHeaderParameters)
    .encrypt(to, { crit: { foo: true } })
}

/** Replaces the header of a token without encrypting again. */
function withHeader(token: string, header: object): string {
  return [part(header), ...token.split('.').slice(1)].join('.')
}

const encrypted: Partial<ProviderConfig> = {
  id_token_encrypted_response_alg: 'RSA-OAEP-256',
  userinfo_encrypted_response_alg: 'RSA-OAEP-256',
  userinfo_signed_response_alg: 'RS256',
  authorization_encrypted_response_alg: 'RSA-OAEP-256',
}

async function start(t: TestContext, settings: Partial<ProviderConfig> = encrypted) {
  const provider = await startSigningProvider(t, settings)
  const asked: (string | undefined)[] = []
  const decryptionKeys = {
    ready: async () => {},
    find: async (_alg: string, kid: string | undefined) => {
      asked.push(kid)
      return kid === 'one' ? own.privateKey : undefined
    },
  }
  const client = createProvider(provider.config, { clock: systemClock, log: silent, decryptionKeys })
  t.after(() => client.close())
  const exchange = (id_token: string) => {
    provider.respond(paths.token, (_req, res) => sendJson(res, { ...bearer(), refresh_token: 'r', id_token }))
    return client.exchangeCode(callbackWithCode(), { ...authorizationRequest, begun_at: Date.now() })
  }
  return { provider, client, asked, exchange, idToken: () => provider.idToken(validNow()) }
}

type Started = Awaited<ReturnType<typeof start>>

test('an encrypted ID Token signs in, and the session keeps the signed one', async (t) => {
  const { exchange, idToken } = await start(t)
  const signed = idToken()

  const { tokens, idToken: identity } = await exchange(await jwe(signed))

  assert.equal(identity.sub, 'jane')
  // As a hint, the provider gets the signed token (OpenID Connect RP-Initiated Logout 1.0 §2).
  assert.equal(tokens.id_token, signed)
})

const forgeries: readonly (readonly [
  why: string,
  token: (started: Started) => Promise<string> | string,
  said: RegExp,
])[] = [
  ['it is not encrypted', ({ idToken }) => idToken(), /is not encrypted, although provider.id_token_encrypted/],
  [
    'another alg, although the key would fit',
    ({ idToken }) => jwe(idToken(), { header: { alg: 'RSA-OAEP' } }),
    /encrypted with RSA-OAEP and not with RSA-OAEP-256/,
  ],
  ['another enc', ({ idToken }) => jwe(idToken(), { header: { enc: 'A256GCM' } }), /A256GCM and not with A128CBC/],
  [
    'RSA1_5',
    async ({ idToken }) => withHeader(await jwe(idToken()), { alg: 'RSA1_5', enc: 'A128CBC-HS256', kid: 'one' }),
    /encrypted with RSA1_5/,
  ],
  [
    'dir, with the client secret as the key',
    async ({ idToken }) => withHeader(await jwe(idToken()), { alg: 'dir', enc: 'A128CBC-HS256' }),
    /encrypted with dir/,
  ],
  [
    'a password as the key',
    async ({ idToken }) =>
      withHeader(await jwe(idToken()), { alg: 'PBES2-HS256+A128KW', enc: 'A128CBC-HS256', p2c: 1e9, p2s: 'AA' }),
    /encrypted with PBES2/,
  ],
  [
    'compressed content',
    async ({ idToken }) =>
      withHeader(await jwe(idToken()), { alg: 'RSA-OAEP-256', enc: 'A128CBC-HS256', kid: 'one', zip: 'DEF' }),
    /is compressed/,
  ],
  [
    'an extension that must be understood',
    ({ idToken }) => jwe(idToken(), { header: { crit: ['foo'], foo: 1 } }),
    /extensions/,
  ],
  ['another kind of content', ({ idToken }) => jwe(idToken(), { header: { cty: 'json' } }), /its content is json/],
  ['an unknown kid', ({ idToken }) => jwe(idToken(), { header: { kid: 'two' } }), /the key two is unknown/],
  [
    'no kid, with several keys',
    ({ idToken }) => jwe(idToken(), { header: { kid: undefined } }),
    /does not name its key/,
  ],
  ['a kid that is a number', async ({ idToken }) => jwe(idToken(), { header: { kid: 1 } }), /its kid is not a string/],
  ['the key of another client', ({ idToken }) => jwe(idToken(), { to: other.publicKey }), /cannot be decrypted/],
  [
    'content that was changed',
    async ({ idToken }) => (await jwe(idToken())).replace(/\.[^.]{4}([^.]*\.[^.]*)$/, '.AAAA$1'),
    /cannot be decrypted/,
  ],
  [
    'a header that is no JSON',
    async ({ idToken }) => `e.${(await jwe(idToken())).split('.').slice(1).join('.')}`,
    /header/,
  ],
  ['a JWE in a JWE', async ({ idToken }) => jwe(await jwe(idToken())), /is not a signed JWT/],
  ['unsigned claims', () => jwe(JSON.stringify({ sub: 'jane' })), /is not a signed JWT/],
  [
    'a nested token with alg none',
    ({ idToken }) => jwe(`${part({ alg: 'none' })}.${idToken().split('.')[1] ?? ''}.`),
    /sign the tokens of this client with RS256/,
  ],
  ['more characters than are read', () => `${'a'.repeat(longestToken)}.a.a.a.a`, /longer than/],
]

for (const [why, token, said] of forgeries)
  test(`an ID Token is refused, with the same response to the person: ${why}`, async (t) => {
    const started = await start(t)

    const failure = await started.exchange(await token(started)).then(
      () => assert.fail('it was accepted'),
      (error: unknown) => error,
    )

    assert.ok(failure instanceof GatewayError)
    assert.equal(failure.code, 'ERR_SIGN_IN_RESPONSE')
    assert.match(failure.message, said)
  })

test('nothing is decrypted before alg, enc and the rest of the header are known to be right', async (t) => {
  const started = await start(t)

  for (const [, token, said] of forgeries.slice(0, 9))
    await assert.rejects(started.exchange(await token(started)), { message: said })

  assert.deepEqual(started.asked, [])
})

test('an encrypted token is refused where no encryption is configured, with the setting to set', async (t) => {
  const { exchange, idToken } = await start(t, {})

  await assert.rejects(exchange(await jwe(idToken())), {
    code: 'ERR_SIGN_IN_RESPONSE',
    message: /it is encrypted: .*provider\.id_token_encrypted_response_alg/,
  })
})

test('at a refresh, an ID Token that cannot be decrypted makes the tokens invalid', async (t) => {
  const { client, provider, idToken } = await start(t)
  const respond = (id_token: string) =>
    provider.respond(paths.token, (_req, res) => sendJson(res, { ...bearer(), id_token }))
  const tokens = { access_token: 'a', id_token: idToken(), refresh_token: 'r', obtained_at: Date.now() }

  const signed = idToken()
  respond(await jwe(signed))
  const refreshed = await client.refresh(tokens, 'jane')
  assert.equal(refreshed.kind === 'refreshed' && refreshed.tokens.id_token, signed)

  respond(await jwe(idToken(), { to: other.publicKey }))
  await assert.rejects(client.refresh(tokens, 'jane'), {
    name: 'GatewayError',
    message: /refreshed tokens are invalid/,
  })
})

test('UserInfo that is signed and encrypted is read; UserInfo that is only signed is refused', async (t) => {
  const { client, provider } = await start(t)
  const signed = jwt({ iss: provider.issuer, aud: 'orders', sub: 'jane', email: 'jane@example.com' }, provider.key)
  const respond = (body: string) =>
    provider.respond(paths.userinfo, (_req, res) => res.writeHead(200, { 'content-type': 'application/jwt' }).end(body))

  respond(await jwe(signed))
  const userinfo = await client.userinfo({ access_token: 'a' }, 'jane')
  assert.deepEqual(userinfo, { kind: 'claims', claims: { sub: 'jane', email: 'jane@example.com' } })

  respond(signed)
  await assert.rejects(client.userinfo({ access_token: 'a' }, 'jane'), {
    message: /UserInfo is refused: it is not enc/,
  })
})

test('a Logout Token is decrypted, and one that is encrypted to another key is refused', async (t) => {
  const { client, provider } = await start(t)
  const token = provider.logoutToken(validNow())

  assert.equal((await client.verifyLogoutToken(await jwe(token))).sid, 's-1')

  const refused = { code: 'ERR_LOGOUT_TOKEN_INVALID', message: /logout token refused: it cannot be decrypted/ }
  await assert.rejects(client.verifyLogoutToken(await jwe(token, { to: other.publicKey })), refused)
})

test('an encrypted authorization response is decrypted; two of them, and a plain one, are refused', async (t) => {
  const { client, provider } = await start(t, { ...encrypted, response_mode: 'jwt' })
  const signed = jwt({ iss: provider.issuer, aud: 'orders', code: 'c', state: 's', ...validNow() }, provider.key)
  const response = new URLSearchParams({ response: await jwe(signed) })

  assert.equal((await client.decryptResponse(response)).get('response'), signed)

  await assert.rejects(client.decryptResponse(new URLSearchParams({ response: signed })), {
    code: 'ERR_SIGN_IN_RESPONSE',
    message: /authorization response refused: it is not encrypted/,
  })
  const twice = new URLSearchParams([...response, ...response])
  const callback = new URL(`https://orders.example.com/?${(await client.decryptResponse(twice)).toString()}`)
  await assert.rejects(client.exchangeCode(callback, authorizationRequest), { message: /several JWTs/ })
})

for (const [settings, waits] of [
  [encrypted, true],
  [{}, false],
] as const)
  test(`a client ${waits ? 'with' : 'without'} encryption ${waits ? 'waits' : 'does not wait'} for its keys`, async () => {
    let asked = false
    const keys = { ready: async () => void (asked = true), find: async () => undefined }

    await new Decryption(settings, keys).ready()

    assert.equal(asked, waits)
  })
