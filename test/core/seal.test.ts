import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { Keyring } from '../../src/core/seal.ts'

const [older, newer, other] = [randomBytes(32), randomBytes(32), randomBytes(32)]

test('Sealed data opens in its own context only', () => {
  const keys = new Keyring([newer])
  fc.assert(
    fc.property(fc.uint8Array(), fc.string(), fc.string(), (plain, context, elsewhere) => {
      const sealed = keys.seal(plain, context)
      assert.deepEqual(keys.open(sealed, context), Buffer.from(plain))
      if (elsewhere !== context && Buffer.from(elsewhere).compare(Buffer.from(context)) !== 0)
        assert.equal(keys.open(sealed, elsewhere), undefined)
    }),
  )
})

test('The same text is sealed differently each time', () => {
  const keys = new Keyring([newer])

  const sealed = Array.from({ length: 1000 }, () => keys.seal('refresh token', 'session').toString('hex'))

  assert.equal(new Set(sealed).size, 1000)
  assert.ok(!sealed.some((hex) => Buffer.from(hex, 'hex').includes('refresh')))
})

test('Sealed data with a changed, removed or added byte does not open', () => {
  const keys = new Keyring([newer])
  const sealed = keys.seal('refresh token', 'session')

  for (let index = 0; index < sealed.length; index++) {
    const tampered = Buffer.from(sealed)
    tampered[index] = (tampered[index] ?? 0) ^ 1
    assert.equal(keys.open(tampered, 'session'), undefined, `byte ${index}`)
    assert.equal(keys.open(sealed.subarray(0, index), 'session'), undefined, `${index} bytes`)
  }
  assert.equal(keys.open(Buffer.concat([sealed, Buffer.of(0)]), 'session'), undefined)
})

test('Keys rotate with an overlap: the first key seals, all keys open', () => {
  const before = new Keyring([older]).seal('a', 'c')
  const rotated = new Keyring([newer, older])

  assert.equal(rotated.open(before, 'c')?.toString(), 'a')
  const after = rotated.seal('b', 'c')
  assert.equal(new Keyring([newer]).open(after, 'c')?.toString(), 'b')
  assert.equal(new Keyring([older]).open(after, 'c'), undefined)
  assert.equal(new Keyring([other]).open(after, 'c'), undefined)
})

test('A part of a larger buffer opens like a separate buffer', () => {
  const keys = new Keyring([newer])
  const sealed = keys.seal('a', 'c')
  const larger = Buffer.concat([Buffer.from('before'), sealed, Buffer.from('after')])

  assert.equal(keys.open(larger.subarray(6, 6 + sealed.length), 'c')?.toString(), 'a')
})

test('A keyring requires at least one key of 32 bytes', () => {
  assert.throws(() => new Keyring([]), /at least one/)
  assert.throws(() => new Keyring([newer, randomBytes(31)]), /32 bytes, not 31/)
})
