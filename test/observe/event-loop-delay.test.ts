import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EventLoopDelay } from '../../src/observe/event-loop-delay.ts'
import { until } from '../support/until.ts'

test('A blocked event loop is measured, and each measurement is given once', async (t) => {
  const delay = new EventLoopDelay()
  t.after(() => delay.stop())
  const largest = () => Number(delay.take().at(-1)?.[1])
  const end = performance.now() + 150
  while (performance.now() < end);

  await until('the delay is measured', () => largest() > 0.1)
  assert.equal(largest(), 0)
})
