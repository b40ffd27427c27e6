import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { ReadBuffer } from '../../src/wire/read-buffers.ts'
import { until } from '../support/until.ts'

/** Takes all buffers that are available without new memory. */
const takeMany = (isLarge: boolean) => Array.from({ length: 40 }, () => ReadBuffer.take(isLarge))

test('At most 8 MiB are in large buffers, also after writes that failed', () => {
  const isLarge = ({ memory }: ReadBuffer) => memory.length > 64 * 1024
  for (let times = 0; times < 3; times += 1) {
    const taken = takeMany(true)
    assert.ok(taken.filter(isLarge).reduce((sum, { memory }) => sum + memory.length, 0) <= 8 * 1024 * 1024)
    assert.ok(taken.some(isLarge), 'those that were given back can be taken again')
    for (const buffer of taken) {
      const giveBack = buffer.lend()
      buffer.giveBack()
      giveBack(new Error('the client has left'))
    }
  }
})

test('Large buffers that are never given back do not use up the others for ever', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const isLarge = ({ memory }: ReadBuffer) => memory.length > 64 * 1024
  takeMany(true)
  assert.ok(!isLarge(ReadBuffer.take(true)))

  await until('they were collected', () => {
    collect()
    const buffer = ReadBuffer.take(true)
    buffer.giveBack()
    return isLarge(buffer)
  })
})

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

test('Memory that the socket of a failed write may reference is never used again', () => {
  const buffer = ReadBuffer.take(false)
  const giveBack = buffer.lend()
  buffer.giveBack()
  giveBack(new Error('the write failed'))

  assert.ok(!takeMany(false).includes(buffer))
})
