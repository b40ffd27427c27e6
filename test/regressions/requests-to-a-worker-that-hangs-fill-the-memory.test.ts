import assert from 'node:assert/strict'
import type { Worker } from 'node:cluster'
import { EventEmitter } from 'node:events'
import { test } from 'node:test'
import { WorkerProcesses } from '../../src/workers/messages.ts'

test('The primary buffers a limited number of requests to a worker that hangs, and calls it again when it responds', async () => {
  const sent: { readonly number: number }[] = []
  const send = (request: { readonly number: number }) => void sent.push(request)
  const worker = Object.assign(new EventEmitter(), { isConnected: () => true, send })
  const respond = (number: number | undefined) =>
    worker.emit('message', { kind: 'response', number, result: undefined })
  const processes = new WorkerProcesses(() => [])
  processes.attach(worker as unknown as Worker)

  for (let round = 0; round < 3; round += 1)
    await Promise.allSettled(Array.from({ length: 1_000 }, () => processes.call('live')))

  assert.equal(sent.length, 1_000)
  for (const { number } of sent.splice(0)) respond(number)
  const live = processes.call('live')
  for (let round = 0; round < 2; round += 1) {
    respond(sent.at(-1)?.number)
    await new Promise(setImmediate)
  }
  await live
})
