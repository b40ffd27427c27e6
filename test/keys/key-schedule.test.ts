import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { IdentityAlgorithm } from '../../src/config/model/upstream.ts'
import { retainedMs } from '../../src/identity/signed/signing-key.ts'
import { dueFrom, keyInUse, mergedKeys, publishedAheadMs, type ScheduledKey } from '../../src/keys/rotating-key.ts'
import { searchFor } from '../support/searches.ts'

const hour = 3_600_000
const rotateEveryMs = 24 * hour
const start = 1_000 * hour

function key(kid: string, usedFrom: number, alg: IdentityAlgorithm = 'ES256'): ScheduledKey {
  return { kid, alg, usedFrom }
}

const ids = (keys: readonly ScheduledKey[]) => keys.map(({ kid }) => kid)

test('The first key signs at once, and the next one after it was published', () => {
  assert.equal(dueFrom([], 'ES256', { rotateEveryMs, now: start }), start)
  const first = key('first', start)
  const publishFrom = start + rotateEveryMs - publishedAheadMs
  assert.equal(dueFrom([first], 'ES256', { rotateEveryMs, now: publishFrom - 1 }), undefined)
  assert.equal(dueFrom([first], 'ES256', { rotateEveryMs, now: publishFrom }), start + rotateEveryMs)
  assert.equal(dueFrom([first], 'EdDSA', { rotateEveryMs, now: start }), start, 'each algorithm has its own keys')

  const second = key('second', start + rotateEveryMs)
  assert.equal(dueFrom([first, second], 'ES256', { rotateEveryMs, now: publishFrom }), undefined)
  assert.equal(keyInUse([second, first], 'ES256', start + rotateEveryMs - 1), first)
  assert.equal(keyInUse([second, first], 'ES256', start + rotateEveryMs), second)
  assert.equal(keyInUse([second, first], 'EdDSA', start), undefined)
})

test('After a long pause the old key signs until the new one was published', () => {
  const old = key('old', start)
  const now = start + 30 * rotateEveryMs

  const from = dueFrom([old], 'ES256', { rotateEveryMs, now })

  assert.equal(from, now + publishedAheadMs)
  assert.equal(keyInUse([old, key('new', from)], 'ES256', now), old)
})

test('A key stays published until its last token has expired', () => {
  const keys = [key('first', start), key('second', start + rotateEveryMs)]
  const longestLifetime = hour
  assert.ok(retainedMs > longestLifetime)

  assert.deepEqual(ids(mergedKeys([keys], { now: start + rotateEveryMs + retainedMs - 1, retainedMs })), [
    'first',
    'second',
  ])
  assert.deepEqual(ids(mergedKeys([keys], { now: start + rotateEveryMs + retainedMs, retainedMs })), ['second'])
})

test('An older copy of the keys adds nothing and removes nothing', () => {
  const now = start + 10 * rotateEveryMs
  const older = [key('first', start), key('second', start + rotateEveryMs)]
  const known = [key('tenth', now - hour)]

  assert.deepEqual(ids(mergedKeys([older, known], { now: now + retainedMs, retainedMs })), ['tenth'])
  assert.equal(keyInUse(mergedKeys([older, known], { now, retainedMs }), 'ES256', now)?.kid, 'tenth')
})

test('A clock that is wrong for a while leaves no key for a far future, and no time without a key', () => {
  const wrong = key('wrong', start + 1_000 * rotateEveryMs)
  assert.deepEqual(ids(mergedKeys([[wrong, key('right', start)]], { now: start, retainedMs })), ['right'])
  // The clock was set back to a time before the first key.
  assert.equal(keyInUse([key('first', start)], 'ES256', start - hour)?.kid, 'first')
})

test('Processes that synchronize in any order agree, and each key is published before it signs', () => {
  // Each step: which process synchronizes, and how much time passes before.
  const steps = fc.array(fc.tuple(fc.nat({ max: 2 }), fc.integer({ min: 0, max: 3 * hour })), { maxLength: 60 })
  fc.assert(
    fc.property(steps, (all) => {
      let [now, stored, count] = [start, [] as readonly ScheduledKey[], 0]
      const known: (readonly ScheduledKey[])[] = [[], [], []]
      const publishedAt = new Map<string, number>()
      for (const [process, passed] of all) {
        now += passed
        const merged = mergedKeys([stored, known[process] ?? []], { now, retainedMs })
        const from = dueFrom(merged, 'ES256', { rotateEveryMs, now })
        const next = mergedKeys([merged, from === undefined ? [] : [key(`k${(count += 1)}`, from)]], {
          now,
          retainedMs,
        })
        for (const { kid } of next) if (!publishedAt.has(kid)) publishedAt.set(kid, now)
        stored = known[process] = next
        const inUse = keyInUse(next, 'ES256', now)
        assert.ok(inUse !== undefined && next.includes(inUse))
        const isFirst = inUse.kid === 'k1'
        assert.ok(isFirst || now - (publishedAt.get(inUse.kid) ?? now) >= publishedAheadMs)
      }
      const views = known
        .filter((keys) => keys.length > 0)
        .map((keys) => mergedKeys([stored, keys], { now, retainedMs }))
      for (const view of views) assert.deepEqual(ids(view), ids(mergedKeys([stored], { now, retainedMs })))
    }),
    { numRuns: searchFor(300) },
  )
})
