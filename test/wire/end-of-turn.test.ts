import assert from 'node:assert/strict'
import { test } from 'node:test'
import { atEndOfTurn } from '../../src/wire/timing.ts'

test('Functions are called after the current event and before the next one, in their order', async () => {
  const called: string[] = []
  const call = (name: string) => called.push(name)
  await new Promise<void>((resolve) => {
    setImmediate(() => {
      setImmediate(() => {
        call('the next event')
        resolve()
      })
      process.nextTick(call, 'a tick')
      atEndOfTurn(call, 'the first')
      atEndOfTurn(() => atEndOfTurn(call, 'one that another adds'), undefined)
      atEndOfTurn(call, 'the last')
      call('the event')
    })
  })

  assert.deepEqual(called, ['the event', 'a tick', 'the first', 'the last', 'one that another adds', 'the next event'])
})

test('A function that throws does not keep the others from being called', async (t) => {
  const called: string[] = []
  const reported: unknown[] = []
  const report = (error: unknown) => void reported.push(error)
  const listeners = process.listeners('unhandledRejection')
  process.removeAllListeners('unhandledRejection').on('unhandledRejection', report)
  t.after(() => {
    process.removeAllListeners('unhandledRejection')
    for (const listener of listeners) process.on('unhandledRejection', listener)
  })
  const error = new Error('for the test')

  atEndOfTurn((name) => called.push(name), 'before')
  atEndOfTurn(() => {
    throw error
  }, undefined)
  atEndOfTurn((name) => called.push(name), 'after')
  await new Promise(setImmediate)

  assert.deepEqual(called, ['before', 'after'])
  assert.deepEqual(reported, [error])
})
