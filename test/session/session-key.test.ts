import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { newSessionId, sessionKey } from '../../src/session/record/record.ts'

test('a session id never gets the key of another one, however many are asked for in between', () => {
  const ids = Array.from({ length: 10_000 }, (_, n) => newSessionId('a', { sid: `sid ${n % 100}`, sub: 'jane' }))
  const expected = ids.map(
    (id) => `${id.slice(0, 24)}:${createHash('sha256').update(id).digest('base64url').slice(0, 32)}`,
  )
  for (const [n, id] of ids.entries()) {
    assert.equal(sessionKey(id), expected[n])
    // One that is still remembered, one of before, and one that is forgotten.
    for (const back of [1, 3_000, 9_000]) {
      const at = Math.max(n - back, 0)
      assert.equal(sessionKey(ids[at] as (typeof ids)[number]), expected[at])
    }
  }
})
