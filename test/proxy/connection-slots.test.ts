import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { ConnectionSlots, type SlotLimits } from '../../src/proxy/connection-slots.ts'

function setUp(t: TestContext, limits: Partial<SlotLimits> = {}) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const slots = new ConnectionSlots({ maxConnections: 8, maxStreams: 16, maxStreamsPerClient: 16, ...limits }, 100)
  const started: string[] = []
  const enter = (client: string) => slots.acquire(client, { onSlot: () => void started.push(client) })
  const load = () => [slots.waiting, slots.requests, slots.streams]
  return { started, enter, load, pass: (ms: number) => t.mock.timers.tick(ms) }
}

test('An exchange of more than five seconds frees its slot for a waiting request', (t) => {
  const { started, enter, load, pass } = setUp(t, { maxConnections: 2 })
  for (let each = 0; each < 3; each += 1) enter('a')
  assert.deepEqual(load(), [1, 2, 0])

  pass(1_000)
  assert.deepEqual(load(), [1, 2, 0])
  for (let second = 0; second < 5; second += 1) pass(1_000)

  assert.deepEqual(load(), [0, 1, 2])
  assert.deepEqual(started, ['a', 'a', 'a'])
})

test('Event streams and tunnels free their slot at once', (t) => {
  const { enter, load } = setUp(t, { maxConnections: 1 })
  const stream = enter('a')
  enter('b')

  assert.equal(stream.keepAsStream(), true)
  assert.equal(stream.keepAsStream(), true)
  assert.deepEqual(load(), [0, 1, 1])

  stream.release()
  stream.release()
  assert.deepEqual(load(), [0, 1, 0])
})

test('The number of streams of a client is limited, and other clients are not affected', (t) => {
  const { enter } = setUp(t, { maxStreamsPerClient: 2 })
  const keeps = (client: string) => {
    const slot = enter(client)
    const kept = slot.keepAsStream()
    if (!kept) slot.release()
    return kept
  }

  assert.deepEqual([keeps('a'), keeps('a'), keeps('a'), keeps('b')], [true, true, false, true])
})

test('A client without a stream gets one even if many clients use streams', (t) => {
  const { enter } = setUp(t)
  const open = (client: string) => {
    let count = 0
    for (let slot = enter(client); slot.keepAsStream(); slot = enter(client)) count += 1
    return count
  }

  assert.deepEqual([open('a'), open('b')], [12, 2])
  const newcomer = enter('c')
  assert.equal(newcomer.keepAsStream(), true)
})

test('An exchange that cannot become a stream keeps its slot until it can', (t) => {
  const { enter, load, pass } = setUp(t, { maxStreamsPerClient: 1 })
  const first = enter('a')
  enter('a')
  for (let second = 0; second < 6; second += 1) pass(1_000)
  assert.deepEqual(load(), [0, 1, 1])

  first.release()
  pass(1_000)

  assert.deepEqual(load(), [0, 0, 1])
})

test('A request that is canceled while it waits is never started', (t) => {
  const { started, enter, load } = setUp(t, { maxConnections: 1 })
  const first = enter('a')
  const second = enter('b')

  second.release()
  first.release()

  assert.deepEqual(started, ['a'])
  assert.deepEqual(load(), [0, 0, 0])
})
