import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { FairQueue } from '../../src/limits/fair-queue.ts'

function entered(queue: FairQueue<string>, client: string, times: number): number {
  let count = 0
  for (let at = 0; at < times; at += 1) if (queue.enter(client, `${client}${at}`)) count += 1
  return count
}

test('one client has three quarters of the places at most, and an eighth is kept for clients that have none', () => {
  const queue = new FairQueue<string>(128, 4096)

  assert.equal(entered(queue, 'a', 500), 96)
  assert.equal(entered(queue, 'b', 500), 16)
  for (let newcomer = 0; newcomer < 16; newcomer += 1) assert.equal(entered(queue, `newcomer ${newcomer}`, 2), 1)
  assert.equal(entered(queue, 'too late', 1), 0)
})

test('of few places a client may have all but the last, and of three or less all', () => {
  for (const [places, had] of [
    [1, 1],
    [2, 2],
    [3, 3],
    [4, 3],
    [16, 12],
  ] as const)
    assert.equal(entered(new FairQueue<string>(places, 100), 'a', 50), had)
})

test('who waits has a line of its own, and the lines take turns', () => {
  const queue = new FairQueue<string>(3, 100)
  entered(queue, 'a', 6)
  entered(queue, 'b', 2)

  const called = [queue.leave('a'), queue.leave('a'), queue.leave('a')].flat()

  assert.deepEqual(called, ['a3', 'b0', 'a4'])
})

test('whoever does not wait any more leaves its seat, and is not called', () => {
  const queue = new FairQueue<string>(1, 100)
  entered(queue, 'a', 4)

  queue.withdraw('a', 'a1')
  queue.withdraw('a', 'a1')

  assert.equal(queue.waiting, 2)
  assert.deepEqual(queue.leave('a'), ['a2'])
})

test('one client cannot take all that there is to wait in', () => {
  const queue = new FairQueue<string>(4, 100)
  let waiting = 0
  while (!queue.isFullFor('a')) if (!queue.enter('a', 'x')) waiting += 1

  assert.equal(waiting, 75)
  assert.equal(queue.isFullFor('b'), false)
})

test('whatever comes and goes, there are never more than there are places, and at last everybody was served', () => {
  const step = fc.record({ client: fc.constantFrom('a', 'b', 'c', 'd'), leaves: fc.nat(3) })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 9 }), fc.array(step, { maxLength: 200 }), (places, steps) => {
      const queue = new FairQueue<string>(places, 1000)
      const served: string[] = []
      const serve = (clients: readonly string[]) => void served.push(...clients)
      const leave = () => {
        const client = served.shift()
        if (client !== undefined) serve(queue.leave(client))
      }
      let came = 0
      let went = 0
      for (const { client, leaves } of steps) {
        came += 1
        if (queue.enter(client, client)) serve([client])
        assert.ok(served.length <= places)
        for (let at = 0; at < leaves && served.length > 0; at += 1, went += 1) leave()
      }
      for (; served.length > 0; went += 1) leave()
      assert.equal(went, came)
    }),
    { numRuns: 500 },
  )
})
