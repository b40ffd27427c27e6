import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ReadBuffer } from '../../src/wire/read-buffers.ts'

/** Takes all buffers that are available without new memory. */
const takeMany = (isLarge: boolean) => Array.from({ length: 40 }, () => ReadBuffer.take(isLarge))

test('A reader never gets memory of which a part is lent', () => {
  for (const isLarge of [false, true]) {
    const buffer = ReadBuffer.take(isLarge)
    const [first, second] = [buffer.lend(), buffer.lend()]
    buffer.giveBack()
    first()

    assert.ok(!takeMany(isLarge).includes(buffer))
    second()
    assert.equal(ReadBuffer.take(isLarge), buffer)
  }
})

test('A buffer that is returned twice is not lent twice', () => {
  const buffer = ReadBuffer.take(false)
  const giveBack = buffer.lend()
  buffer.giveBack()
  giveBack()
  giveBack()

  assert.equal(takeMany(false).filter((taken) => taken === buffer).length, 1)
})

test('A buffer whose parts have been returned stays with its reader', () => {
  const buffer = ReadBuffer.take(false)
  const giveBack = buffer.lend()

  assert.equal(buffer.isLent, true)
  giveBack()
  assert.equal(buffer.isLent, false)
  assert.ok(!takeMany(false).includes(buffer))
})
