import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keysOf, movableClock } from '../provider/expectations.ts'
import { jwt, paths, startSigningProvider } from '../support/signing-provider.ts'

test('Tokens that arrive while the provider fails to deliver its keys do not cause one key request each', async (t) => {
  const provider = await startSigningProvider(t)
  provider.respond(paths.jwks, (_req, res) => res.writeHead(500).end())
  const clock = movableClock()
  const keys = keysOf(t, provider, clock)
  const verify = () => keys.verify(jwt({}, provider.key), { algorithms: ['RS256'] })

  for (let token = 0; token < 20; token += 1) await assert.rejects(verify(), { code: 'ERR_PROVIDER_UNAVAILABLE' })
  assert.equal(provider.hits(paths.jwks), 1)

  clock.move(1_000)
  await assert.rejects(verify(), { code: 'ERR_PROVIDER_UNAVAILABLE' })
  assert.equal(provider.hits(paths.jwks), 2)
})
