import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keysOf, movableClock } from '../provider/expectations.ts'
import { jwt, paths, rsaKey, startSigningProvider } from '../support/signing-provider.ts'
import { shortLived, startSignedIn } from '../tokens/signed-in.ts'

const hours = 60 * 60_000
const options = { algorithms: ['RS256'] }

test('a rotation is seen after the clock was set back', async (t) => {
  const [two, stranger] = [rsaKey('two'), rsaKey('stranger')]
  const provider = await startSigningProvider(t)
  const clock = movableClock()
  const keys = keysOf(t, provider, clock)
  await keys.verify(jwt({}, provider.key), options)
  for (let kid = 0; kid < 10; kid += 1) await assert.rejects(keys.verify(jwt({}, stranger, { kid: `${kid}` }), options))
  provider.publish(two.jwk)

  clock.move(-3 * hours)
  await assert.rejects(keys.verify(jwt({}, stranger), options))
  clock.move(10_000)

  await keys.verify(jwt({}, two), options)
})

test('keys that could not be had are asked for again after the clock was set back', async (t) => {
  const provider = await startSigningProvider(t)
  const clock = movableClock()
  const keys = keysOf(t, provider, clock)
  provider.answer(paths.jwks, (_req, res) => res.writeHead(500).end())
  await assert.rejects(keys.verify(jwt({}, provider.key), options))
  provider.answer(paths.jwks)

  clock.move(-3 * hours)

  await keys.verify(jwt({}, provider.key), options)
})

test('a refresh that failed is tried again after the clock was set back', async (t) => {
  const { world, ask } = await startSignedIn(t)
  world.provider.fault('/oauth/token', (_req, res) => res.writeHead(500).end())
  world.moveClock(10 * 60_000)
  assert.equal((await ask()).status, 503)
  world.provider.bend('/oauth/token', shortLived)

  world.moveClock(-5 * 60_000)

  assert.equal((await ask()).status, 200)
})
