import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, Socket } from 'node:net'
import { test } from 'node:test'
import { receiveForm, type ReceivedForm, type ReceiveParts } from '../../src/kept-forms/receive.ts'

test('A form whose client leaves while the store begins is dropped at once', { timeout: 15_000 }, async (t) => {
  let drops = 0
  const writer = { append: async () => undefined, complete: async () => 'full', drop: async () => void (drops += 1) }
  const socket = new Socket().on('error', () => {})
  const server = createServer()
  const outcome = new Promise((resolve) =>
    server.on('request', (req, res) => {
      const begin = async () => {
        socket.destroy()
        await once(res, 'close')
        return writer
      }
      const kept = { isOn: true, maxSizeBytes: 1_000, count() {}, begin }
      const parts = { kept, personCookie: { read: () => 'person' }, log: {}, idleTimeoutMs: 0, bytesPerSecond: 0 }
      const facts = { secFetchSite: 'same-origin', forwarded: { host: 'a' } }
      const form = { req, res, facts, upstream: { externalUrl: new URL('http://a') } }
      receiveForm(form as unknown as ReceivedForm, parts as unknown as ReceiveParts).catch(resolve)
    }),
  )
  t.after(() => server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  socket.connect((server.address() as AddressInfo).port, '127.0.0.1')
  socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\nabc')

  assert.match(String(await outcome), /the client has closed the connection/)
  assert.equal(drops, 1)
})
