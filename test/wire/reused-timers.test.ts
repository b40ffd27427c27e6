import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ReusedTimer } from '../../src/wire/timing.ts'

/** Keeps the process running, which the timers do not. */
function keepRunning(): () => void {
  const timer = setInterval(() => {}, 1_000)
  return () => clearInterval(timer)
}

test('A timer that is used again gives its waiter the whole time, and tells no earlier one', async () => {
  const stop = keepRunning()
  const told: string[] = []
  const first = ReusedTimer.start(60, { onTimeout: () => told.push('the first') })
  // Half of the time of the first is over.
  await new Promise<void>((resolve) => ReusedTimer.start(30, { onTimeout: resolve }))
  first.stop()
  const startedAt = performance.now()
  await new Promise<void>((resolve) => {
    const second = ReusedTimer.start(60, { onTimeout: resolve })
    assert.equal(second, first)
  })

  // A timer of Node.js may be one millisecond early.
  assert.ok(performance.now() - startedAt >= 59)
  assert.deepEqual(told, [])
  stop()
})

test('A timer that has told its waiter can be used again', async () => {
  const stop = keepRunning()
  let over!: () => void
  const isOver = new Promise<void>((resolve) => (over = resolve))
  const first = ReusedTimer.start(25, { onTimeout: over })
  await isOver
  first.stop()
  await new Promise<void>((resolve) => assert.equal(ReusedTimer.start(25, { onTimeout: resolve }), first))
  stop()
})

test('A stopped timer does not tell its waiter', async () => {
  const stop = keepRunning()
  const told: string[] = []
  const stopped = ReusedTimer.start(15, { onTimeout: () => told.push('the waiter that has stopped it') })
  stopped.stop()
  await new Promise<void>((resolve) => ReusedTimer.start(40, { onTimeout: resolve }))

  assert.deepEqual(told, [])
  stop()
})

test('A timer that is refreshed starts again', async () => {
  const stop = keepRunning()
  const startedAt = performance.now()
  await new Promise<void>((resolve) => {
    const timer = ReusedTimer.start(60, { onTimeout: resolve })
    ReusedTimer.start(30, { onTimeout: () => timer.refresh() })
  })

  assert.ok(performance.now() - startedAt >= 88)
  stop()
})

test('More timers at once than are kept all run out', async () => {
  const stop = keepRunning()
  const all = 600
  for (let round = 0; round < 2; round++) {
    const timers: ReusedTimer[] = []
    await new Promise<void>((resolve) => {
      let told = 0
      const waiter = { onTimeout: () => (told += 1) === all && resolve() }
      for (let count = 0; count < all; count++) timers.push(ReusedTimer.start(20, waiter))
    })
    for (const timer of timers) timer.stop()
  }
  stop()
})
