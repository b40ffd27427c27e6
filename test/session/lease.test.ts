import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SessionKey } from '../../src/core/names.ts'
import { underLease, retryUntil } from '../../src/session/live/lease.ts'
import { memoryStore } from '../support/memory-store.ts'
import { until } from '../support/until.ts'

const key = `${'t'.repeat(24)}:hash` as SessionKey

function storeWithClock() {
  let at = 0
  const store = memoryStore({ maxSessions: 10, clock: { now: () => at } })
  return { store, pass: (ms: number) => void (at += ms) }
}

/** Work whose end the test decides on. */
function held(): { readonly work: () => Promise<string>; finish(): void } {
  let finish = () => {}
  const done = new Promise<string>((resolve) => (finish = () => resolve('done')))
  return { work: () => done, finish: () => finish() }
}

test('while one process holds the lease, no other runs the work', async () => {
  const { store } = storeWithClock()
  const { work, finish } = held()
  const first = underLease(key, store, work)

  assert.equal(await underLease(key, store, () => assert.fail('begun twice')), undefined)

  finish()
  assert.deepEqual(await first, { result: 'done' })
})

test('the lease is kept for as long as the work takes, however long the provider takes', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const { store, pass } = storeWithClock()
  const { work, finish } = held()
  const first = underLease(key, store, work)
  // The lease has to be there before the first renewal is due.
  await new Promise((resolve) => setImmediate(resolve))

  for (let second = 0; second < 60; second += 1) {
    pass(1000)
    t.mock.timers.tick(1000)
    assert.equal(await underLease(key, store, () => assert.fail(`begun again after ${second} s`)), undefined)
  }

  finish()
  await first
})

test('the lease is released after the work, also when the work failed', async () => {
  const { store } = storeWithClock()

  await assert.rejects(
    underLease(key, store, () => Promise.reject(new Error('no'))),
    /no/,
  )

  assert.deepEqual(await underLease(key, store, async () => 'next'), { result: 'next' })
})

test('a process that dies leaves a session locked for a few seconds only', async (t) => {
  // Nothing is renewed any more.
  t.mock.timers.enable({ apis: ['setInterval'] })
  const { store, pass } = storeWithClock()
  void underLease(key, store, () => new Promise(() => {}))
  await new Promise((resolve) => setImmediate(resolve))

  pass(1_000)
  assert.equal(await underLease(key, store, async () => 'too early'), undefined)
  pass(9_000)

  assert.deepEqual(await underLease(key, store, async () => 'next'), { result: 'next' })
})

for (const [what, renew, isLost] of [
  ['is renewed', async () => true, false],
  ['belongs to another process', async () => false, true],
] as const)
  test(`while a lease ${what}, its work ${isLost ? 'is told to stop' : 'goes on'}`, async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    const store = { acquireLease: async () => true, renewLease: renew, releaseLease: async () => {} }
    const { work, finish } = held()
    let signal: AbortSignal | undefined
    const result = underLease(key, store, (lost) => {
      signal = lost
      return work()
    })
    await until('the work has begun', () => signal !== undefined)

    for (let second = 0; second < 3; second += 1) {
      t.mock.timers.tick(1_250)
      await new Promise((resolve) => setImmediate(resolve))
    }

    assert.equal(signal?.aborted, isLost)
    finish()
    await result
  })

test('a lease that cannot be released does not change the result', async () => {
  const isHeld = async () => true
  const failing = { acquireLease: isHeld, renewLease: isHeld, releaseLease: () => Promise.reject(new Error('away')) }

  assert.deepEqual(await underLease(key, failing, async () => 'done'), { result: 'done' })
})

test('an attempt without a result is repeated until the time limit', async (t) => {
  // Its pauses keep no process alive; in a gateway the sockets do.
  const alive = setInterval(() => {}, 1000)
  t.after(() => clearInterval(alive))
  let attempts = 0

  assert.equal(await retryUntil(async () => void (attempts += 1), 50), undefined)

  assert.ok(attempts >= 2 && attempts <= 5, `${attempts} attempts`)
})
