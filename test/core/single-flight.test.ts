import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SingleFlight } from '../../src/core/single-flight.ts'

test('who asks while work is under way shares its result; who asks later starts anew', async () => {
  const flights = new SingleFlight<string, number>()
  let runs = 0
  const work = async () => {
    await Promise.resolve()
    return ++runs
  }

  const together = [flights.run('a', work), flights.run('a', work), flights.run('b', work)]

  assert.deepEqual(await Promise.all(together), [1, 1, 2])
  assert.equal(await flights.run('a', work), 3)
})

test('a failure is shared too, and not remembered', async () => {
  const flights = new SingleFlight<string, number>()
  const fail = () => Promise.reject(new Error('down'))

  const results = await Promise.allSettled([flights.run('a', fail), flights.run('a', fail)])

  assert.deepEqual(
    results.map(({ status }) => status),
    ['rejected', 'rejected'],
  )
  assert.equal(await flights.run('a', () => Promise.resolve(1)), 1)
})

test('work that throws before it begins leaves nothing behind', async () => {
  const flights = new SingleFlight<string, number>()

  assert.throws(() =>
    flights.run('a', () => {
      throw new Error('early')
    }),
  )
  assert.equal(await flights.run('a', () => Promise.resolve(1)), 1)
})
