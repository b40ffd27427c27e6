import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keysOf } from '../provider/expectations.ts'
import { jwt, rsaKey, startSigningProvider } from '../support/signing-provider.ts'

for (const [what, kid] of [
  ['is missing', undefined],
  ['stays the same', 'one'],
] as const)
  test(`A key that replaces another one is noticed at its first token: its kid ${what}`, async (t) => {
    const [first, second] = [rsaKey('one'), rsaKey('one')]
    const provider = await startSigningProvider(t)
    const keys = keysOf(t, provider)
    provider.publish({ ...first.jwk, kid })
    await keys.verify(jwt({}, first, { kid }), { algorithms: ['RS256'] })
    provider.publish({ ...second.jwk, kid })

    await keys.verify(jwt({}, second, { kid }), { algorithms: ['RS256'] })

    await assert.rejects(keys.verify(jwt({}, first, { kid }), { algorithms: ['RS256'] }))
  })
