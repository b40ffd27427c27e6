import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { RequestOrder } from '../../src/listener/request-order.ts'

for (const [what, isDestroyed, expected] of [
  ['that has closed', true, []],
  ['without requests', false, ['next']],
] as const)
  test(`What follows the responses of a connection ${what} happens ${expected.length} times`, () => {
    const socket = new PassThrough()
    if (isDestroyed) socket.destroy()
    const calls: string[] = []

    new RequestOrder(1).afterResponses(socket, () => calls.push('next'))

    assert.deepEqual(calls, expected)
  })
