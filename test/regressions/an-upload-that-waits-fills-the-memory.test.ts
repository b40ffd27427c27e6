import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import type { FrontOptions } from '../../src/listener/plain/plain-connection.ts'
import type { PlainRequest } from '../../src/listener/plain/plain-request.ts'
import type { PlainResponse } from '../../src/listener/plain/plain-response.ts'
import type { GiveBack } from '../../src/wire/read-buffers.ts'
import { startFront } from '../listener/plain/front.ts'
import { RawClient } from '../proxy/support.ts'
import { until } from '../support/until.ts'

const mebibyte = 1024 * 1024
const head = (line: string, ...fields: readonly string[]) =>
  [`${line} HTTP/1.1`, 'Host: h', ...fields, '', ''].join('\r\n')

/** Starts a front with one client, whose connection is that of the server. */
async function startWithClient(t: TestContext, request: FrontOptions['request']) {
  const { server, port } = await startFront(t, request)
  const connected = once(server, 'connection') as Promise<[Socket]>
  const client = new RawClient(t, port)
  const [connection] = await connected
  return { client, connection, port }
}

test('A large upload behind another request is not read before its content is used', async (t) => {
  const underWay: (readonly [PlainRequest, PlainResponse])[] = []
  const { client, connection } = await startWithClient(t, (req, res) => void underWay.push([req, res]))
  // So much arrives at once that one read stops the connection, and leaves nothing in its stream.
  const parts = [
    head('GET /'),
    head('PUT /', `Content-Length: ${64 * mebibyte}`) + 'x'.repeat(10_000),
    'x'.repeat(60_000),
  ]
  for (const part of parts) {
    const before = connection.bytesRead
    client.send(part)
    await until('the part was read', () => connection.bytesRead === before + part.length)
  }

  underWay[0]?.[1].end('one')
  await until('the upload has begun', () => underWay.length === 2)
  const { socket } = client
  socket.write(Buffer.alloc(60 * mebibyte, 'x'))
  let before = -1
  let turns = 0
  await until('nothing more is read', () => {
    turns = connection.bytesRead === before ? turns + 1 : 0
    before = connection.bytesRead
    return turns > 20
  })

  assert.ok(before < mebibyte, `${before} bytes were read`)
  let length = 0
  underWay[1]?.[0].on('data', (part: Buffer, giveBack: () => void) => {
    length += part.length
    giveBack()
  })
  await until('the content arrives once it is used', () => length === 60 * mebibyte + 70_000)
})

test('Content that has not arrived with its head is not read before it is used', async (t) => {
  const begun: PlainRequest[] = []
  const { client, connection, port } = await startWithClient(t, (req) => void begun.push(req))
  const upload = head('PUT /', 'Content-Length: 1000')
  client.send(upload)
  await until('the upload has begun', () => begun.length === 1)
  client.send('x'.repeat(1000))
  // Another connection is served meanwhile.
  const other = new RawClient(t, port).send(head('GET /'))
  await until('another request has begun', () => begun.length === 2)
  other.socket.destroy()

  assert.equal(connection.bytesRead, upload.length)
  let length = 0
  begun[0]?.on('data', (part: Buffer) => (length += part.length))
  await until('the content arrives once it is used', () => length === 1000)
})

test('The buffers of an upload count until the upstream has taken their content', async (t) => {
  const begun: PlainRequest[] = []
  const lent: GiveBack[] = []
  const { client } = await startWithClient(t, (req) => {
    begun.push(req)
    req.on('data', (_: Buffer, giveBack: GiveBack) => {
      lent.push(giveBack)
      if (lent.length >= 20) req.pause()
    })
  })
  client.send(head('PUT /', `Content-Length: ${64 * mebibyte}`))
  client.socket.write(Buffer.alloc(60 * mebibyte, 'x'))
  await until('much of the content waits at the upstream', () => lent.length >= 20)

  const [req] = begun as [PlainRequest]
  assert.ok(req.heldBytes > mebibyte, `${req.heldBytes} bytes`)
  for (const [at, giveBack] of lent.entries()) giveBack(at % 2 === 0 ? null : new Error('the write failed'))
  assert.ok(req.heldBytes < mebibyte, `${req.heldBytes} bytes`)
})
