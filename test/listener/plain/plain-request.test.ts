import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { PlainRequest, type RequestConnection } from '../../../src/listener/plain/plain-request.ts'
import type { ReusedReads } from '../../../src/wire/read-buffers.ts'

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

test('Content that has arrived before its reader is emitted once, and its memory is given back once', async () => {
  const { req, arrive, counts } = lentRequest()
  arrive('one ')
  arrive('whole')
  assert.deepEqual(counts(), [1, 1])

  const parts: string[] = []
  req.on('data', (part: Buffer, giveBack: () => void) => {
    parts.push(String(part))
    giveBack()
  })
  await once(req, 'end')
  assert.deepEqual(parts, ['one ', 'whole'])
  assert.deepEqual(counts(), [0, 0])
})
