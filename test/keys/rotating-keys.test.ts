import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { IdentityAlgorithm } from '../../src/config/model/upstream.ts'
import { GatewayError } from '../../src/core/errors.ts'
import { Keyring } from '../../src/core/seal.ts'
import { retainedMs, signingKeyPurpose } from '../../src/identity/signed/signing-key.ts'
import { publishedAheadMs } from '../../src/keys/rotating-key.ts'
import { RotatingKeys, type RotatingKeysParts } from '../../src/keys/rotating-keys.ts'
import type { SealedDocument } from '../../src/session/store/store.ts'
import { memoryStore } from '../support/memory-store.ts'

const day = 86_400_000
const rotateEveryMs = 7 * day
const address = 'https://orders.example.com/.gatehouse/'
/** The documents with the keys. */
const names = ['a', address].map((scope) => `gatehouse signing keys for ${scope}`)

/** A store, a clock, and processes that share both. */
function together(t: TestContext) {
  let now = Date.UTC(2026, 0, 1)
  const clock = { now: () => now }
  const store = memoryStore({ maxSessions: 10, clock })
  t.after(() => store.close())
  const logged: string[] = []
  const note = (message: string) => void logged.push(message)
  const log = { debug() {}, info: note, warn: note, error: note, announce: note }
  let isAway = false
  let reads = 0
  const process = (more: Partial<RotatingKeysParts<IdentityAlgorithm>> = {}) => {
    const far = {
      readDocument: async (name: string) => {
        reads += 1
        return isAway ? unavailable() : store.readDocument(name)
      },
      writeDocument: async (name: string, document: SealedDocument, ttl: number) =>
        isAway ? unavailable() : store.writeDocument(name, document, ttl),
    }
    const algorithms = new Set<IdentityAlgorithm>(['ES256'])
    const keyring = keyringOf(1)
    const config = { rotateEveryMs }
    return new RotatingKeys({
      purpose: signingKeyPurpose,
      store: far,
      keyring,
      audience: 'a',
      address,
      config,
      algorithms,
      clock,
      log,
      ...more,
    })
  }
  return {
    process,
    store,
    logged,
    reads: () => reads,
    pass: (ms: number) => void (now += ms),
    away: (value: boolean) => void (isAway = value),
  }
}

function unavailable(): never {
  throw new GatewayError('ERR_STORE_UNAVAILABLE', 'away')
}

function keyringOf(...fills: readonly number[]): Keyring {
  return new Keyring(fills.map((fill) => Buffer.alloc(32, fill)))
}

const ids = async (keys: RotatingKeys<IdentityAlgorithm>) =>
  (await keys.published()).map((key) => (key as { readonly kid: string }).kid).toSorted()

test('Of many processes that start together, one creates the key', async (t) => {
  const { process, logged } = together(t)
  const all = Array.from({ length: 10 }, () => process())

  await Promise.all(all.map((keys) => keys.synchronize()))

  assert.equal(new Set(all.map((keys) => keys.inUse('ES256')?.kid)).size, 1)
  assert.deepEqual(logged, ['signing_key.created'])
})

test('A key is published by every process before any process signs with it', async (t) => {
  const { process, pass, logged } = together(t)
  const [one, other] = [process(), process()]
  await one.synchronize()
  await other.synchronize()
  const first = one.inUse('ES256')?.kid

  pass(rotateEveryMs - publishedAheadMs)
  await other.synchronize()
  assert.equal((await ids(one)).length, 2, 'a verifier that asks the other process learns the new key')
  assert.deepEqual(await ids(one), await ids(other))
  assert.equal(one.inUse('ES256')?.kid, first)

  pass(publishedAheadMs)
  assert.notEqual(one.inUse('ES256')?.kid, first)
  assert.equal(one.inUse('ES256')?.kid, other.inUse('ES256')?.kid)
  assert.deepEqual(logged, ['signing_key.created', 'signing_key.rotated'])

  pass(retainedMs - 1)
  assert.ok((await ids(one)).includes(first ?? ''))
  pass(10_000)
  assert.ok(!(await ids(one)).includes(first ?? ''))
})

for (const [what, changes] of [
  ['client_id', { audience: 'b' }],
  ['external_url', { address: 'https://shop.example.com/.gatehouse/' }],
] as const)
  test(`Another ${what} keeps the keys, and they rotate on`, async (t) => {
    const { process, pass } = together(t)
    const before = process()
    await before.synchronize()
    const kid = before.inUse('ES256')?.kid

    const after = process(changes)
    await after.synchronize()
    assert.equal(after.inUse('ES256')?.kid, kid)
    pass(rotateEveryMs)
    await after.synchronize()
    await before.synchronize()

    assert.equal((await ids(after)).length, 2)
    assert.deepEqual(await ids(before), await ids(after), 'also in a process that has not changed yet')
  })

test('Keys that an earlier version has stored, for the client only, stay in use', async (t) => {
  const { process, store } = together(t)
  const earlier = process()
  await earlier.synchronize()
  await store.writeDocument(names[1] ?? '', { sealed: Buffer.alloc(0), version: 1 }, 0)

  const next = process()
  await next.synchronize()

  assert.deepEqual(await ids(next), await ids(earlier))
  assert.deepEqual(await ids(process({ audience: 'b' })), await ids(earlier))
})

test('The stored keys are sealed for one client and one address', async (t) => {
  const { process, store } = together(t)
  const keys = process()
  await keys.synchronize()
  const document = await store.readDocument(names[0] ?? '')
  assert.ok(document !== undefined)
  const { d } = keys.inUse('ES256')?.privateKey.export({ format: 'jwk' }) ?? {}
  assert.ok(d !== undefined)
  assert.ok(!Buffer.from(document.sealed).toString('latin1').includes(d))

  const others = process({ audience: 'b', address: 'https://b.example.com/' })
  await others.synchronize()
  assert.notEqual(others.inUse('ES256')?.kid, keys.inUse('ES256')?.kid)
  // Bytes that are moved to the place of another client do not open.
  await store.writeDocument('gatehouse signing keys for c', { ...document, version: 0 }, day)
  const moved = process({ audience: 'c', address: 'https://c.example.com/' })
  await moved.synchronize()
  assert.notEqual(moved.inUse('ES256')?.kid, keys.inUse('ES256')?.kid)
})

test('No private part is ever published', async (t) => {
  const { process } = together(t)
  const keys = process({ algorithms: new Set<IdentityAlgorithm>(['ES256', 'EdDSA']) })

  const published = await keys.published()

  assert.equal(published.length, 2)
  for (const jwk of published)
    for (const member of Object.keys(jwk))
      assert.ok(['kty', 'crv', 'x', 'y', 'kid', 'alg', 'use'].includes(member), member)
})

test('Without the store, a process continues with its keys, and starts with none', async (t) => {
  const { process, away, pass } = together(t)
  const running = process()
  await running.synchronize()
  const kid = running.inUse('ES256')?.kid

  away(true)
  pass(3 * rotateEveryMs)
  await assert.rejects(() => running.synchronize(), { code: 'ERR_STORE_UNAVAILABLE' })
  assert.equal(running.inUse('ES256')?.kid, kid)
  assert.deepEqual(await ids(running), [kid])
  const started = process()
  await assert.rejects(() => started.published(), { code: 'ERR_STORE_UNAVAILABLE' })
  assert.equal(started.isReady, false)
  assert.equal(started.inUse('ES256'), undefined)

  away(false)
  await started.synchronize()
  assert.equal(started.isReady, true)
})

test('Requests for the key set read the store seldom, also while it is unavailable', async (t) => {
  const { process, away, pass, reads } = together(t)
  const keys = process()
  await keys.published()
  const before = reads()

  await Promise.all(Array.from({ length: 50 }, () => keys.published()))
  assert.equal(reads() - before, 0)
  away(true)
  pass(5_000)
  await Promise.all(Array.from({ length: 50 }, () => keys.published()))
  await keys.published()
  assert.equal(reads() - before, 1)
})

test('A store that was emptied gets the keys of the running processes', async (t) => {
  const { process, store, pass } = together(t)
  const [one, other] = [process(), process()]
  await one.synchronize()
  await other.synchronize()
  const before = await ids(one)

  // The document expires before the next rotation when it was written with a shorter interval.
  for (const name of names) await store.writeDocument(name, { sealed: Buffer.from(''), version: 1 }, 1)
  pass(10_000)
  await other.synchronize()

  assert.deepEqual(await ids(other), before)
  const third = process()
  assert.deepEqual(await ids(third), before)
})

test('A store that was restored from an older copy gets the newer keys of the running processes', async (t) => {
  const { process, store, pass } = together(t)
  const running = process()
  await running.synchronize()
  const old = await Promise.all(names.map((name) => store.readDocument(name)))
  assert.ok(!old.includes(undefined))
  for (let week = 0; week < 3; week += 1) {
    pass(rotateEveryMs)
    await running.synchronize()
  }
  pass(publishedAheadMs)
  const current = running.inUse('ES256')?.kid
  assert.ok(current !== undefined)

  for (const [at, name] of names.entries()) {
    const { version } = (await store.readDocument(name)) ?? { version: 0 }
    await store.writeDocument(name, { sealed: old[at]?.sealed ?? Buffer.alloc(0), version }, day)
  }
  const started = process()
  await started.synchronize()
  await running.synchronize()
  await started.synchronize()

  assert.equal(running.inUse('ES256')?.kid, current)
  assert.equal(started.inUse('ES256')?.kid, current)
  assert.deepEqual(await ids(started), await ids(running))
})

test('After an older copy was restored and all processes were restarted, rotation continues', async (t) => {
  const { process, store, pass } = together(t)
  const first = process()
  await first.synchronize()
  const old = await Promise.all(names.map((name) => store.readDocument(name)))
  pass(100 * day)
  for (const [at, name] of names.entries())
    await store.writeDocument(name, { sealed: old[at]?.sealed ?? Buffer.alloc(0), version: 0 }, day)

  const started = process()
  const before = await ids(started)
  assert.equal(before.length, 2)
  const inUse = started.inUse('ES256')?.kid
  assert.ok(before.includes(inUse ?? ''))
  pass(publishedAheadMs)
  assert.ok(before.includes(started.inUse('ES256')?.kid ?? ''))
  assert.notEqual(started.inUse('ES256')?.kid, inUse)
})

test('Keys survive a rotation of session.keys, and keys that nobody can read are replaced', async (t) => {
  const { process, logged } = together(t)
  const before = process({ keyring: keyringOf(1) })
  await before.synchronize()
  const kid = before.inUse('ES256')?.kid

  // Both keys open; the new one seals. From then on the old one is not needed.
  const overlap = process({ keyring: keyringOf(2, 1) })
  await overlap.synchronize()
  const after = process({ keyring: keyringOf(2) })
  await after.synchronize()
  assert.equal(after.inUse('ES256')?.kid, kid)

  const stranger = process({ keyring: keyringOf(3) })
  await stranger.synchronize()
  assert.notEqual(stranger.inUse('ES256')?.kid, kid)
  assert.ok(logged.includes('signing_keys.unreadable'))
})

test('A reload continues with the keys of the previous generation', async (t) => {
  const { process, away } = together(t)
  const previous = process()
  await previous.synchronize()

  away(true)
  const next = process()
  next.takeOver(previous)

  assert.equal(next.isReady, true)
  assert.equal(next.inUse('ES256')?.kid, previous.inUse('ES256')?.kid)
})
