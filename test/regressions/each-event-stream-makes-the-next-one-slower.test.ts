import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Repeating } from '../../src/core/repeating.ts'
import { processorTime } from '../support/processor-time.ts'

// Each event stream has background work of its own. With quadratic time, this takes seconds.
test('Background work begins in constant time, however much of it there was before', () => {
  const busy = processorTime()
  for (let streams = 0; streams < 20_000; streams += 1)
    new Repeating('session_events', () => Promise.resolve(undefined))
  const took = busy()
  assert.ok(took < 1_000, `${took} ms`)
})
