import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { PlainRequest, type RequestConnection } from '../../../src/listener/plain/plain-request.ts'
import type { ReusedReads } from '../../../src/listener/plain/reused-reads.ts'

/**
 * A request with content of 9 bytes. Each part of it is lent, and counted until it is given back.
 */
function lentRequest() {
  const lent = new Map<Buffer, number>()
  const connection = { holdContent: () => {} } as unknown as RequestConnection
  const head = { method: 'POST', url: '/', headers: {}, rawHeaders: [], text: '', isKeepAlive: true }
  const req = new PlainRequest(connection, { ...head, contentLength: 9 })
  const lend = (part: Buffer) => {
    lent.set(part, 1)
    return { part, giveBack: () => lent.set(part, (lent.get(part) ?? 0) - 1) }
  }
  const arrive = (text: string) => req.arrive(Buffer.from(text), { lend } as unknown as ReusedReads)
  return { req, arrive, counts: () => [...lent.values()] }
}

test('Content is taken when it has arrived completely, and its memory is given back once', async () => {
  const { req, arrive, counts } = lentRequest()
  arrive('one ')
  assert.equal(req.takeContent(), undefined)
  arrive('whole')
  assert.deepEqual(counts(), [1, 1])

  assert.equal(String(req.takeContent()), 'one whole')
  assert.deepEqual(counts(), [0, 0])
  const ended = once(req as unknown as NodeJS.EventEmitter, 'end')
  req.on('data', () => assert.fail('the content was emitted too'))
  await ended
  assert.deepEqual(counts(), [0, 0])
})

test('Content that has a reader is not taken', () => {
  const { req, arrive } = lentRequest()
  arrive('one whole')
  req.on('data', () => {})

  assert.equal(req.takeContent(), undefined)
})
