import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ReadBuffer } from '../../src/transport/http1/read-buffers.ts'

/** All that can be had now without new memory, which is had by nobody else then. */
const takeMany = (isLarge: boolean) => Array.from({ length: 40 }, () => ReadBuffer.take(isLarge))

test('nobody reads into memory that somebody has a part of', () => {
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

test('what is given back twice is not had by two', () => {
  const buffer = ReadBuffer.take(false)
  const giveBack = buffer.lend()
  buffer.giveBack()
  giveBack()
  giveBack()

  assert.equal(takeMany(false).filter((taken) => taken === buffer).length, 1)
})

test('while a part is lent its reader keeps it only when all parts have come back', () => {
  const buffer = ReadBuffer.take(false)
  const giveBack = buffer.lend()

  assert.equal(buffer.isLent, true)
  giveBack()
  assert.equal(buffer.isLent, false)
  assert.ok(!takeMany(false).includes(buffer))
})
