import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shrink } from '../../chaos/shrink.ts'

const hundred = Array.from({ length: 100 }, (_, n) => n)

for (const needed of [[], [0], [99], [17, 18], [3, 50, 98], hundred.filter((n) => n % 9 === 0)])
  test(`what remains of a hundred faults is exactly what fails together: ${needed.join(', ') || 'nothing'}`, async () => {
    let runs = 0

    const left = await shrink(hundred, async (faults) => {
      runs += 1
      return Promise.resolve(needed.every((fault) => faults.includes(fault)))
    })

    assert.deepEqual(left, needed)
    assert.ok(runs < 300, `${runs} runs`)
  })

test('faults that do not fail stay as they are', async () => {
  assert.deepEqual(await shrink(hundred, async () => Promise.resolve(false)), hundred)
})

test('either of two faults is enough', async () => {
  const left = await shrink(hundred, async (faults) => Promise.resolve(faults.includes(20) || faults.includes(80)))

  assert.equal(left.length, 1)
})
