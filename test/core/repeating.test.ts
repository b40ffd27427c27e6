import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { mock, test } from 'node:test'
import { BackOff, Repeating } from '../../src/core/repeating.ts'

/** Lets promises that are settled call their handlers. */
const settle = () => new Promise<void>((resolve) => setImmediate(resolve))

test('A run begins after the pause that the last one returned, or earlier when it is woken', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.after(() => mock.timers.reset())
  let runs = 0
  const repeating = new Repeating('test', async () => {
    runs += 1
    return 1_000
  })

  repeating.wakeIn(500)
  mock.timers.tick(499)
  assert.equal(runs, 0)
  mock.timers.tick(1)
  assert.equal(runs, 1)
  await settle()
  mock.timers.tick(999)
  assert.equal(runs, 1)
  repeating.wake()
  assert.equal(runs, 2)
  await settle()
  mock.timers.tick(999)
  assert.equal(runs, 2, 'a wake replaces the planned run')
  mock.timers.tick(1)
  assert.equal(runs, 3)
  await repeating.stop()
})

test('Two runs never overlap: a wake during a run is one more run after it', async () => {
  const begun = new EventEmitter()
  const ends: (() => void)[] = []
  const repeating = new Repeating('test', async () => {
    begun.emit('run')
    await new Promise<void>((resolve) => ends.push(resolve))
    return undefined
  })

  repeating.wake()
  repeating.wake()
  repeating.wake()
  assert.equal(ends.length, 1)
  const second = once(begun, 'run')
  ends[0]?.()
  await second
  assert.equal(ends.length, 2)
  ends[1]?.()
  await settle()
  assert.equal(ends.length, 2)
  await repeating.stop()
})

test('stop waits for the run that is under way, and no run follows', async () => {
  let end = () => {}
  let runs = 0
  const repeating = new Repeating('test', async () => {
    runs += 1
    await new Promise<void>((resolve) => (end = resolve))
    return 0
  })
  repeating.wake()
  let isStopped = false
  const stopped = repeating.stop().then(() => (isStopped = true))
  repeating.wake()
  await settle()
  assert.equal(isStopped, false)

  end()
  await stopped
  repeating.wake()
  repeating.wakeIn(0)
  await settle()
  assert.equal(runs, 1)
})

test('Pauses after failures double up to the longest, and begin again after a success', (t) => {
  t.mock.method(Math, 'random', () => 0)
  const backOff = new BackOff(1_000, 3_000)

  assert.deepEqual([backOff.next(), backOff.next(), backOff.next(), backOff.next()], [1_000, 2_000, 3_000, 3_000])
  backOff.reset()
  assert.equal(backOff.next(), 1_000)
})
