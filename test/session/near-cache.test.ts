import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SessionKey } from '../../src/core/names.ts'
import { NearCache } from '../../src/session/near-cache.ts'
import type { StoredSession } from '../../src/session/record.ts'

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
