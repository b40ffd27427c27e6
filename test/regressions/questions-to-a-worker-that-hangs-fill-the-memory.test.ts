import assert from 'node:assert/strict'
import type { Worker } from 'node:cluster'
import { EventEmitter } from 'node:events'
import { test } from 'node:test'
import { WorkerAnswers } from '../../src/workers/messages.ts'

test('what a worker that hangs is asked is never kept without bound, and it is asked again when it goes on', async () => {
  const sent: { readonly number: number }[] = []
  const send = (question: { readonly number: number }) => void sent.push(question)
  const worker = Object.assign(new EventEmitter(), { isConnected: () => true, send })
  const answers = new WorkerAnswers(() => [])
  answers.attach(worker as unknown as Worker)

  for (let times = 0; times < 3; times += 1)
    await Promise.allSettled(Array.from({ length: 1_000 }, () => answers.ask('live')))

  assert.equal(sent.length, 1_000)
  for (const { number } of sent.splice(0)) worker.emit('message', { kind: 'answered', number, answer: undefined })
  const live = answers.ask('live')
  for (let turn = 0; turn < 2; turn += 1) {
    const number = sent.at(-1)?.number
    worker.emit('message', { kind: 'answered', number, answer: undefined })
    await new Promise(setImmediate)
  }
  await live
})
