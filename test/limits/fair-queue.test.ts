import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { FairQueue } from '../../src/limits/fair-queue.ts'

function entered(queue: FairQueue<string>, client: string, times: number): number {
  let count = 0
  for (let at = 0; at < times; at += 1) if (queue.enter(client, `${client}${at}`)) count += 1
  return count
}

test('One client takes at most three quarters of the places, and an eighth stays free for clients without a place', () => {
  const queue = new FairQueue<string>(128, 4096)

  assert.equal(entered(queue, 'a', 500), 96)
  assert.equal(entered(queue, 'b', 500), 16)
  for (let newcomer = 0; newcomer < 16; newcomer += 1) assert.equal(entered(queue, `newcomer ${newcomer}`, 2), 1)
  assert.equal(entered(queue, 'too late', 1), 0)
})

test('One client may take all but the last of a few places, and all of three or less', () => {
  for (const [places, had] of [
    [1, 1],
    [2, 2],
    [3, 3],
    [4, 3],
    [16, 12],
  ] as const)
    assert.equal(entered(new FairQueue<string>(places, 100), 'a', 50), had)
})

test('Each waiting client has its own queue, and the queues take turns', () => {
  const queue = new FairQueue<string>(3, 100)
  entered(queue, 'a', 6)
  entered(queue, 'b', 2)

  const called = [queue.leave('a'), queue.leave('a'), queue.leave('a')].flat()

  assert.deepEqual(called, ['a3', 'b0', 'a4'])
})

test('A withdrawn item frees its seat and never gets a place', () => {
  const queue = new FairQueue<string>(1, 100)
  entered(queue, 'a', 4)

  queue.withdraw('a', 'a1')
  queue.withdraw('a', 'a1')

  assert.equal(queue.waiting, 2)
  assert.deepEqual(queue.leave('a'), ['a2'])
})

test('One client cannot take all seats', () => {
  const queue = new FairQueue<string>(4, 100)
  let waiting = 0
  while (!queue.isFullFor('a')) if (!queue.enter('a', 'x')) waiting += 1

  assert.equal(waiting, 75)
  assert.equal(queue.isFullFor('b'), false)
})

test('In any order of arrivals and departures, the number of places is kept and every item gets its place', () => {
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
