import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Roster } from '../../src/limits/fair-queue.ts'

const counting = () =>
  new Roster<number, { count: number }>(
    () => ({ count: 0 }),
    ({ count }) => count > 0,
  )

test('A needed entry stays while others come and go', () => {
  const roster = counting()
  const kept = roster.of(-1)
  kept.count = 1

  for (let key = 0; key < 10_000; key += 1) {
    const value = roster.of(key)
    value.count += 1
    value.count -= 1
  }

  assert.equal(roster.of(-1), kept)
  assert.deepEqual([...roster.needed()], [[-1, { count: 1 }]])
})

test('Unneeded entries do not accumulate', () => {
  const roster = counting()

  for (let key = 0; key < 10_000; key += 1) roster.of(key)

  let left = 0
  for (let key = 0; key < 10_000; key += 1) if (roster.get(key) !== undefined) left += 1
  assert.ok(left <= 64, `${left} are left`)
})

test('A new entry does not cause a scan of all needed entries', () => {
  let asked = 0
  const roster = new Roster<number, object>(
    () => ({}),
    () => (asked += 1) > 0,
  )

  for (let key = 0; key < 10_000; key += 1) roster.of(key)

  assert.ok(asked < 20_000, `${asked} times`)
})
