import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keysOf } from '../provider/expectations.ts'
import { ecKey, jwt, rsaKey, startSigningProvider, type Json, type SigningKey } from '../support/signing-provider.ts'

const [first, second, third] = [rsaKey('one'), rsaKey('one'), rsaKey('one')] as const
const options = { algorithms: ['RS256'] }
const named = ({ jwk }: SigningKey, kid: string | undefined): Json =>
  JSON.parse(JSON.stringify({ ...jwk, kid })) as Json

for (const [what, kids, kidOfToken] of [
  ['share a kid', ['one', 'one', 'one'], 'one'],
  ['have no kid', [undefined, undefined, undefined], undefined],
  ['have no kid, and the token names one', [undefined, undefined, undefined], 'of-the-token'],
  ['have kids of their own, and the token names none', ['one', 'two', 'three'], undefined],
] as const)
  test(`Keys are tried one after the other when they ${what}`, async (t) => {
    const provider = await startSigningProvider(t)
    const keys = keysOf(t, provider)
    const all = [first, second, third]
    provider.publish(ecKey('one').jwk, ...all.map((key, n) => named(key, kids[n])))

    for (const key of all) await keys.verify(jwt({ sub: 'jane' }, key, { kid: kidOfToken }), options)

    const forged = jwt({ sub: 'jane' }, rsaKey('one'), { kid: kidOfToken })
    await assert.rejects(keys.verify(forged, options), { code: 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED' })
  })

test('A key with a kid is not tried for a token that names another kid', async (t) => {
  const provider = await startSigningProvider(t)
  const keys = keysOf(t, provider)
  provider.publish(named(first, 'one'), named(second, undefined))

  await assert.rejects(keys.verify(jwt({ sub: 'jane' }, first, { kid: 'two' }), options))
})

test('The number of keys that are tried for one token has a limit', async (t) => {
  const provider = await startSigningProvider(t)
  const keys = keysOf(t, provider)
  const others = Array.from({ length: 16 }, () => named(second, undefined))
  provider.publish(...others, named(first, undefined))

  await assert.rejects(keys.verify(jwt({ sub: 'jane' }, first, { kid: undefined }), options))
})
