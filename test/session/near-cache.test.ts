import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SessionKey } from '../../src/core/names.ts'
import { NearCache } from '../../src/session/near-cache.ts'
import { packRecord } from '../../src/session/packed-record.ts'
import type { PackedSession, StoredSession } from '../../src/session/record.ts'

const mebibyte = 1024 * 1024

function stored(n: number, bytes: number): StoredSession {
  const record = {} as StoredSession['record']
  return { key: `session-${n}` as SessionKey, audience: 'a', version: 1, record, bytes }
}

test('sessions in memory take at most 128 MiB: the ones used longest ago are dropped', () => {
  const near = new NearCache()
  for (let n = 0; n < 200; n++) near.keep(stored(n, mebibyte), 0)

  const kept = near.keysOf(() => true)
  assert.equal(kept.length, 127)
  assert.deepEqual(near.get('session-72' as SessionKey), undefined)
  assert.equal(near.get('session-73' as SessionKey)?.stored.key, 'session-73')
})

test('the size of a session includes its entry, besides its record', () => {
  const near = new NearCache()
  const [entry, record] = [768, 8192 - 768]
  for (let n = 0; n < 20_000; n++) near.keep(stored(n, record), 0)

  assert.equal(near.keysOf(() => true).length, (128 * mebibyte) / (entry + record))
})

test('a session that was read from the store grows when it is used again, and when its tokens are', () => {
  const near = new NearCache()
  const large = Buffer.alloc(mebibyte)
  const others = Array.from({ length: 127 }, (_, n) => packed(n, large))
  const kept = () => others.filter(({ key }) => near.has(key)).length
  const tokens = { obtained_at: 1, access_token: 'a'.repeat(mebibyte), id_token: 'i' }
  const claims = { sub: 's', text: 'c'.repeat(mebibyte) }
  const times = { created_at: 1, absolute_expires_at: 2, userinfo_read_at: 1 }
  const { bytes } = packRecord({ iss: '', sub: 's', ...times, tokens, claims })
  const one = packed(1_000, bytes)
  near.keep(one, 0)
  for (const other of others) near.keep(other, 0)
  assert.equal(kept(), 127)

  const used = near.get(one.key) ?? assert.fail()
  assert.equal(used.stored.record.sub, 's')
  assert.equal(kept(), 123, 'claims count four times')
  assert.equal(used.stored.record.tokens.access_token.length, mebibyte)
  assert.equal(kept(), 122)

  near.drop(one.key)
  near.keep(one, 0)
  const dropped = near.get(one.key) ?? assert.fail()
  near.drop(one.key)
  for (const other of others) near.keep(other, 0)
  assert.equal(dropped.stored.record.tokens.id_token, 'i')
  assert.equal(kept(), 127, 'a session that has left memory does not count')
})

test('to find sessions in memory, no record is unpacked', () => {
  const near = new NearCache()
  // The same records would take half a second for each Logout Token that the store cannot take.
  near.keep(packed(1, Buffer.from('this is not a record')), 0)
  const record = { sub: 'other' } as StoredSession['record']
  near.keep({ ...stored(2, 1), record }, 0)

  assert.deepEqual(
    near.keysOf(({ audience, sub }) => audience === 'a' && sub === 's'),
    ['session-1'],
  )
  assert.deepEqual(
    near.keysOf(({ sub }) => sub === 'other'),
    ['session-2'],
  )
})

function packed(n: number, bytes: Buffer): PackedSession {
  return { key: `session-${n}` as SessionKey, audience: 'a', version: 1, sub: 's', packed: bytes }
}

test('a change overtakes the reads that have begun before it, and no later ones', () => {
  const near = new NearCache()
  const { key } = stored(1, 1)
  const before = near.reading(key)
  near.drop(key)
  const after = near.reading(key)
  assert.deepEqual([before.areOvertaken, after.areOvertaken], [true, false])

  near.settle(key, before)
  near.drop(key)
  assert.equal(after.areOvertaken, true)
})
