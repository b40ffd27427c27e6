import assert from 'node:assert/strict'
import diagnostics from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { Http1Transport } from '../../src/transport/http1/http1-transport.ts'
import type { ExchangeControl } from '../../src/transport/transport.ts'
import { rawUpstream } from '../proxy/support.ts'
import { until } from '../support/until.ts'

const chunk = `5000\r\n${'x'.repeat(0x5000)}\r\n`
const chunks = 600
/** Several reads, but only a small part of the response. */
const allowedBytes = 1024 * 1024

// The response is read by our client as far as it is plain, and then by undici.
for (const [what, extension] of [
  ['A plain response', ''],
  ['An unusual response', ';a=b'],
] as const)
  test(`${what} is not read faster than the client takes it, when the client pauses at each part`, async (t) => {
    const port = await rawUpstream(t, (socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1${extension}\r\nx\r\n`)
      socket.write(chunk.repeat(chunks) + '0\r\n\r\n')
    })
    let upstreamSocket: Socket | undefined
    const noteSocket = (message: unknown) => {
      const { socket } = message as { socket: Socket }
      upstreamSocket ??= socket
    }
    diagnostics.subscribe('net.client.socket', noteSocket)
    t.after(() => diagnostics.unsubscribe('net.client.socket', noteSocket))
    const target = { host: '127.0.0.1', port, tls: undefined, maxConnections: 1 }
    const transport = new Http1Transport({ ...target, connectTimeoutMs: 10_000, keepAliveMs: 0, lifetimeMs: 60_000 })
    t.after(() => transport.destroy())

    let control: ExchangeControl | undefined
    let takenBytes = 0
    let mostAhead = 0
    let end: string | undefined
    const take = (bytes: number) => {
      takenBytes += bytes
      mostAhead = Math.max(mostAhead, (upstreamSocket?.bytesRead ?? 0) - takenBytes)
      control?.pause()
      setTimeout(() => control?.resume())
    }
    transport.dispatch(
      { method: 'GET', path: '/', headers: ['Host', 'h'], identity: [], body: undefined, upgrade: undefined },
      {
        onSend: (given) => {
          control = given
          return true
        },
        onResponse() {},
        onShortPart: ({ length }) => take(length),
        onContent: ({ length }, giveBack) => {
          giveBack()
          take(length)
        },
        onEnd: () => void (end = 'whole'),
        onSwitch() {},
        onError: ({ message }) => void (end = message),
        onDone() {},
      },
    )
    await until('the response has ended', () => end !== undefined)

    assert.equal(end, 'whole')
    assert.equal(takenBytes, chunks * 0x5000 + 1)
    assert.ok(mostAhead < allowedBytes, `${mostAhead} bytes were read ahead`)
  })
