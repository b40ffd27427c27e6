import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Keyring } from '../../src/core/seal.ts'
import { DecryptionKeys, retainedMs, rotateEveryMs } from '../../src/keys/decryption-keys.ts'
import { publishedAheadMs } from '../../src/keys/rotating-key.ts'
import { memoryStore } from '../support/memory-store.ts'
import { silent, startSigningProvider } from '../support/signing-provider.ts'

const alg = 'ECDH-ES'

test('a key decrypts in every process for seven days after it left the JWKS, and no longer', async (t) => {
  let now = Date.UTC(2026, 0, 1)
  const clock = { now: () => now }
  const store = memoryStore({ maxSessions: 10, clock })
  t.after(() => store.close())
  const { config } = await startSigningProvider(t, { id_token_encrypted_response_alg: alg })
  const keyring = new Keyring([Buffer.alloc(32, 1)])
  const parts = { store, keyring, audience: 'a', address: 'https://orders.example.com/', clock, log: silent }
  const process = () => new DecryptionKeys(config, parts)
  const [one, other] = [process(), process()]
  const published = async () => (await one.published()).map((key) => (key as { readonly kid: string }).kid)
  const [first = ''] = await published()

  now += rotateEveryMs - publishedAheadMs
  assert.deepEqual(await published(), [first])
  now += publishedAheadMs
  const [second, ...more] = await published()
  assert.deepEqual(more, [])
  assert.notEqual(second, first)

  now += retainedMs - 1
  await one.published()
  assert.ok((await one.find(alg, first)) !== undefined)
  assert.ok((await other.find(alg, first)) !== undefined, 'a process that never knew the key reads it from the store')
  assert.equal(await one.find('RSA-OAEP', first), undefined, 'the key is for one algorithm')
  assert.equal(await one.find(alg, undefined), undefined, 'the token has to name its key')

  now += 6_000
  await one.published()
  assert.equal(await one.find(alg, first), undefined)
})
