import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ClientBudget, ClientCount } from '../../src/limits/client-budget.ts'

function movableClock() {
  let now = 1_700_000_000_000
  return { now: () => now, move: (ms: number) => void (now += ms) }
}

const sixAMinute = { count: 6, perMs: 60_000 }

test('A client may use its whole budget at once; then it is refilled evenly', () => {
  const clock = movableClock()
  const budget = new ClientBudget(sixAMinute, clock)
  const use = () => Array.from({ length: 20 }, () => budget.take('a')).filter((waitMs) => waitMs === 0).length

  assert.equal(use(), 6)
  assert.equal(budget.take('a'), 10_000)
  clock.move(9_999)
  assert.equal(budget.take('a'), 1)
  clock.move(1)
  assert.equal(use(), 1)
  clock.move(25_000)
  assert.equal(use(), 2)
  clock.move(60 * 60_000)
  assert.equal(use(), 6)
})

test('Rejected attempts and checks do not use the budget', () => {
  const clock = movableClock()
  const budget = new ClientBudget({ count: 1, perMs: 1000 }, clock)
  assert.equal(budget.waitMs('a'), 0)
  assert.equal(budget.take('a'), 0)

  for (let times = 0; times < 1000; times += 1) assert.equal(budget.take('a'), 1000)
  clock.move(1000)

  assert.equal(budget.waitMs('a'), 0)
  assert.equal(budget.take('a'), 0)
})

test('Clients have separate budgets', () => {
  const budget = new ClientBudget({ count: 1, perMs: 1000 }, movableClock())

  assert.deepEqual([budget.take('a'), budget.take('b'), budget.take('a')], [0, 0, 1000])
})

test('A clock that is set back does not make a client wait longer than an empty budget does', () => {
  const clock = movableClock()
  const budget = new ClientBudget(sixAMinute, clock)
  for (let times = 0; times < 6; times += 1) budget.take('a')

  clock.move(-24 * 60 * 60_000)

  assert.equal(budget.take('a'), 10_000)
  clock.move(9_000)
  assert.equal(budget.take('a'), 1_000)
  clock.move(1_000)
  assert.equal(budget.take('a'), 0)
})

test('Memory stays bounded with many clients, and active clients are remembered', () => {
  const budget = new ClientBudget(sixAMinute, movableClock())
  const refusals = Array.from({ length: 100_000 }, (_, number) => {
    budget.take(`client ${number}`)
    return number % 10_000 === 0 ? budget.take('busy') : 0
  })

  assert.equal(budget.size, 20_000)
  assert.ok(refusals.some((waitMs) => waitMs > 0))
})

test('Running work is counted for each client until it ends', () => {
  const count = new ClientCount(2)

  assert.deepEqual([count.begin('a'), count.begin('a'), count.begin('a'), count.begin('b')], [true, true, false, true])
  count.end('a')
  assert.deepEqual([count.begin('a'), count.begin('a')], [true, false])
})
