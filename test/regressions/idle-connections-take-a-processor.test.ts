import assert from 'node:assert/strict'
import { Duplex } from 'node:stream'
import { test, type TestContext } from 'node:test'
import { MemoryBudget } from '../../src/limits/memory-budget.ts'

const mebibyte = 1024 * 1024
const budgetBytes = 1024 * mebibyte
/** What adding up one connection takes, in ms. */
const eachMs = 0.0006

/** A budget with open connections, and a clock that only moves when they are added up. */
function connected(t: TestContext, count: number) {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const world = { now: 0, added: 0, heldBytes: 0, processBytes: 100 * mebibyte, closed: 0 }
  const budget = new MemoryBudget(budgetBytes, {
    rejectedClients: { note: () => {} },
    now: () => world.now,
    processBytes: () => world.processBytes,
  })
  const heldBytes = () => {
    world.added += 1
    world.now += eachMs
    return world.heldBytes
  }
  for (let n = 0; n < count; n += 1) {
    const socket = Object.assign(new Duplex(), { bytesWritten: 0 })
    budget.watch(socket, 0, { heldBytes, close: () => void (world.closed += 1) })
  }
  const pass = (seconds: number) => {
    const until = world.now + seconds * 1000
    while (world.now < until) {
      world.now += 100
      t.mock.timers.tick(100)
    }
  }
  return { world, pass }
}

test('Idle connections, however many there are, take a fiftieth of the time at most', (t) => {
  for (const count of [1_000, 100_000]) {
    const { world, pass } = connected(t, count)
    pass(60)
    const share = (world.added * eachMs) / world.now
    assert.ok(share > 0 && share < 0.022, `${count} connections take ${share} of the time`)
    t.mock.timers.reset()
  }
})

test('A process that grows adds up at once what its many connections hold', (t) => {
  const { world, pass } = connected(t, 100_000)
  pass(0.1)
  const { added } = world
  pass(0.1)
  assert.equal(world.added, added)

  world.heldBytes = budgetBytes / 50_000
  world.processBytes += budgetBytes / 4
  pass(0.1)
  assert.ok(world.closed > 0)
})
