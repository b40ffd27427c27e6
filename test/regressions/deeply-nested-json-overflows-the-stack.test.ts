import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startHostileWorld } from '../corpus/hostile-world.ts'
import { authorizationRequest, callbackWithCode, clientOf, systemClock, validNow } from '../provider/a-client.ts'
import { bearer, jwt, paths, sendJson, startSigningProvider } from '../support/signing-provider.ts'

const nested = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`
const list = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`

for (const [what, claim] of [
  ['an object', nested(100_000)],
  ['a list', list(400_000)],
  ['an object, just too deep', nested(64)],
] as const)
  test(`UserInfo with a deeply nested claim is rejected, and the log gives the reason: ${what}`, async (t) => {
    const world = await startHostileWorld(t, {
      bends: { userinfo: { status: 200, body: `{"sub":"alice","deep":${claim}}` } },
    })

    const { status } = await world.signIn(world.browser())

    assert.equal(status, 502)
  })

for (const [path, why] of [
  [paths.discovery, 'ERR_PROVIDER_UNAVAILABLE'],
  [paths.jwks, 'ERR_PROVIDER_UNAVAILABLE'],
  [paths.token, 'ERR_SIGN_IN_RESPONSE'],
  [paths.userinfo, 'ERR_SIGN_IN_RESPONSE'],
] as const)
  test(`A deeply nested response at ${path} is rejected`, async (t) => {
    const provider = await startSigningProvider(t)
    provider.respond(paths.token, (_req, res) => sendJson(res, { ...bearer(), id_token: provider.idToken(validNow()) }))
    provider.respond(path, (_req, res) => {
      const response = {
        ...provider.metadata,
        ...bearer(),
        id_token: provider.idToken(validNow()),
        keys: [provider.key.jwk],
      }
      const text = JSON.stringify({ sub: 'jane', ...response }).replace('{', `{"deep":${nested(50_000)},`)
      res.writeHead(200, { 'content-type': 'application/json' }).end(text)
    })
    const client = clientOf(t, provider, systemClock)

    const signIn = client
      .exchangeCode(callbackWithCode(), authorizationRequest)
      .then(({ tokens }) => client.userinfo(tokens, 'jane'))

    await assert.rejects(signIn, { code: why })
  })

test('A deeply nested ID Token is rejected', async (t) => {
  const provider = await startSigningProvider(t)
  const claims = { iss: provider.issuer, aud: 'orders', sub: 'jane', nonce: 'n-1', ...validNow() }
  const text = JSON.stringify(claims).replace('{', `{"deep":${nested(20_000)},`)
  provider.respond(paths.token, (_req, res) => sendJson(res, { ...bearer(), id_token: jwt(text, provider.key) }))

  await assert.rejects(clientOf(t, provider, systemClock).exchangeCode(callbackWithCode(), authorizationRequest), {
    code: 'ERR_SIGN_IN_RESPONSE',
    message: /nested deeper than 64 levels/,
  })
})

test('Claims with usual nesting are accepted', async (t) => {
  const world = await startHostileWorld(t, {
    bends: { userinfo: { set: { fields: JSON.parse(nested(60)) as unknown } } },
  })
  const alice = world.browser()

  await world.signIn(alice)

  assert.equal(await world.isSignedIn(alice), true)
})
