import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JWTVerifyOptions } from 'jose'
import {
  ecKey,
  jwt,
  paths,
  rsaKey,
  sendJson,
  startSigningProvider,
  type SigningKey,
} from '../support/signing-provider.ts'
import { keysOf, movableClock } from './expectations.ts'

const options: JWTVerifyOptions = { algorithms: ['RS256'] }
const two = rsaKey('two')
const stranger = rsaKey('stranger')
const signedBy = (key: SigningKey, kid?: string) => jwt({ sub: 'jane' }, key, kid === undefined ? {} : { kid })

test('the keys are fetched once, not for each token', async (t) => {
  const provider = await startSigningProvider(t)
  const keys = keysOf(t, provider)

  await Promise.all(Array.from({ length: 50 }, () => keys.verify(signedBy(provider.key), options)))
  await keys.verify(signedBy(provider.key), options)

  assert.equal(provider.hits(paths.jwks), 1)
})

test('a rotation is noticed at the first token, also right after the start', async (t) => {
  const provider = await startSigningProvider(t)
  const keys = keysOf(t, provider)
  await keys.verify(signedBy(provider.key), options)
  provider.publish(two.jwk)

  await keys.verify(signedBy(two), options)

  assert.equal(provider.hits(paths.jwks), 2)
})

test('many tokens at once after a rotation are accepted with one fetch', async (t) => {
  const provider = await startSigningProvider(t)
  const keys = keysOf(t, provider)
  await keys.verify(signedBy(provider.key), options)
  provider.publish(two.jwk)

  await Promise.all(Array.from({ length: 50 }, () => keys.verify(signedBy(two), options)))

  assert.equal(provider.hits(paths.jwks), 2)
})

test('a flood of invented key IDs causes a few fetches at once, then one in ten seconds', async (t) => {
  const provider = await startSigningProvider(t)
  const clock = movableClock()
  const keys = keysOf(t, provider, clock)
  await keys.verify(signedBy(provider.key), options)
  const flood = async () => {
    const before = provider.hits(paths.jwks)
    for (let kid = 0; kid < 40; kid += 1)
      await assert.rejects(keys.verify(signedBy(stranger, `made-up-${kid}`), options))
    return provider.hits(paths.jwks) - before
  }

  assert.equal(await flood(), 4)
  clock.move(9_000)
  assert.equal(await flood(), 0)
  clock.move(2_000)
  assert.equal(await flood(), 1)
  clock.move(10 * 60_000)
  assert.equal(await flood(), 4)
})

test('a flood of forged signatures is limited to the same few fetches', async (t) => {
  const provider = await startSigningProvider(t)
  const keys = keysOf(t, provider)
  await keys.verify(signedBy(provider.key), options)

  for (let token = 0; token < 40; token += 1) await assert.rejects(keys.verify(signedBy(stranger, 'one'), options))

  assert.equal(provider.hits(paths.jwks), 1 + 4)
})

test('tokens of another algorithm and malformed tokens cause no fetch', async (t) => {
  const provider = await startSigningProvider(t)
  const keys = keysOf(t, provider)
  await keys.verify(signedBy(provider.key), options)

  await assert.rejects(keys.verify(jwt({}, ecKey('elliptic')), options))
  await assert.rejects(keys.verify('garbage', options))

  assert.equal(provider.hits(paths.jwks), 1)
})

test('while the keys cannot be fetched, the last ones stay in use', async (t) => {
  const provider = await startSigningProvider(t)
  const clock = movableClock()
  const keys = keysOf(t, provider, clock)
  await keys.verify(signedBy(provider.key), options)
  provider.respond(paths.jwks, (_req, res) => res.writeHead(500).end())
  clock.move(24 * 60 * 60_000)

  // Not invalid: a logout token that is refused for good is not sent again.
  await assert.rejects(keys.verify(signedBy(two), options), { code: 'ERR_PROVIDER_UNAVAILABLE' })

  await keys.verify(signedBy(provider.key), options)
})

test('while the keys cannot be fetched, tokens with unknown keys get a temporary error', async (t) => {
  const provider = await startSigningProvider(t)
  const keys = keysOf(t, provider)
  await keys.verify(signedBy(provider.key), options)
  provider.respond(paths.jwks, (_req, res) => res.writeHead(500).end())

  for (let token = 0; token < 10; token += 1)
    await assert.rejects(keys.verify(signedBy(two), options), { code: 'ERR_PROVIDER_UNAVAILABLE', status: 503 })

  assert.equal(provider.hits(paths.jwks), 1 + 4, 'most of them were answered without a question')
})

test('keys are renewed after an hour, so that a withdrawn key is not accepted for ever', async (t) => {
  const provider = await startSigningProvider(t)
  const clock = movableClock()
  const keys = keysOf(t, provider, clock)
  await keys.verify(signedBy(provider.key), options)
  provider.publish(two.jwk)
  const renewed = new Promise<void>((resolve) =>
    provider.respond(paths.jwks, (_req, res) => {
      res.on('close', resolve)
      sendJson(res, { keys: [two.jwk] })
    }),
  )

  clock.move(60 * 60_000 + 1)
  await keys.verify(signedBy(provider.key), options)
  await renewed
  await keys.verify(signedBy(two), options)

  await assert.rejects(keys.verify(signedBy(provider.key), options))
})

test('unsupported keys do not affect the others', async (t) => {
  const provider = await startSigningProvider(t)
  const unusable = [
    { kty: 'XYZ', kid: 'one' },
    { kty: 'OKP', crv: 'Ed9999', x: 'AA', kid: 'ed' },
    { kty: 'EC', crv: 'secp256k1', x: 'AA', y: 'AA', kid: 'k1', use: 'sig' },
    { kty: 'oct', k: 'AAAA', kid: 'secret' },
    { kty: 'RSA', kid: 'broken', n: '', e: '' },
    { kid: 'no type' },
    'text',
    null,
    7,
    [],
  ]
  provider.publish(...unusable, provider.key.jwk)

  const { payload } = await keysOf(t, provider).verify(signedBy(provider.key), options)

  assert.equal(payload.sub, 'jane')
})

for (const [what, response] of [
  ['nothing', ''],
  ['a page', '<html></html>'],
  ['a list', '[]'],
  ['no keys', '{}'],
  ['keys that are text', '{"keys":"one"}'],
] as const)
  test(`a key set that is ${what} is the provider's fault, and mended by the next one`, async (t) => {
    const provider = await startSigningProvider(t)
    const clock = movableClock()
    const keys = keysOf(t, provider, clock)
    provider.respond(paths.jwks, (_req, res) => res.end(response))

    await assert.rejects(keys.verify(signedBy(provider.key), options), { code: 'ERR_PROVIDER_UNAVAILABLE' })

    provider.respond(paths.jwks)
    clock.move(1_000)
    await keys.verify(signedBy(provider.key), options)
  })
