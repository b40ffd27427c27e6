import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SingleFlight } from '../../src/core/single-flight.ts'

test('Calls during work share its result; a later call starts new work', async () => {
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

test('A failure is shared too, and is not cached', async () => {
  const flights = new SingleFlight<string, number>()
  const fail = () => Promise.reject(new Error('down'))

  const results = await Promise.allSettled([flights.run('a', fail), flights.run('a', fail)])

  assert.deepEqual(
    results.map(({ status }) => status),
    ['rejected', 'rejected'],
  )
  assert.equal(await flights.run('a', () => Promise.resolve(1)), 1)
})

test('Work that throws synchronously leaves no entry behind', async () => {
  const flights = new SingleFlight<string, number>()

  assert.throws(() =>
    flights.run('a', () => {
      throw new Error('early')
    }),
  )
  assert.equal(await flights.run('a', () => Promise.resolve(1)), 1)
})
