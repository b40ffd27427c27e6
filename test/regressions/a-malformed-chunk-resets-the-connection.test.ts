import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { statusesIn } from '../support/raw-exchange.ts'
import { startWorld } from '../support/world.ts'

const malformed = 'POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nZZ\r\n'

for (const [what, before] of [
  ['alone', ''],
  ['behind another request', 'GET /echo HTTP/1.1\r\nHost: h\r\n\r\n'],
] as const)
  test(`The connection stays open for a while after the 400 to a malformed chunk (${what})`, async (t) => {
    const world = await startWorld(t, { upstreamSettings: 'rules: [{ path: /*, access: public }]' })
    const port = Number(new URL(world.url).port)
    const accepted: Socket[] = []
    const accept = (message: unknown) => {
      const { socket } = message as { readonly socket: Socket }
      if (socket.localPort === port) accepted.push(socket)
    }
    subscribe('net.server.socket', accept)
    t.after(() => unsubscribe('net.server.socket', accept))
    const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    t.after(() => client.destroy())
    let received = ''
    client.on('data', (part: Buffer) => (received += part.toString('latin1')))

    client.write(before + malformed)
    await once(client, 'end')

    assert.deepEqual(statusesIn(received), [...(before === '' ? [] : [200]), 400])
    // If it were closed, bytes that the client still sends would cost it the responses.
    assert.deepEqual(
      accepted.map(({ destroyed }) => destroyed),
      [false],
    )
    client.end()
    await once(client, 'close')
  })
