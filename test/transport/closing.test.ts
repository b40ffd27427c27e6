import assert from 'node:assert/strict'
import diagnostics from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { Http1Transport } from '../../src/transport/http1/http1-transport.ts'
import type { RequestContent, ResponseHandler, UpstreamRequest } from '../../src/transport/transport.ts'
import type { ContentReader } from '../../src/wire/read-buffers.ts'
import { rawUpstream } from '../proxy/support.ts'
import { until } from '../support/until.ts'

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const get: UpstreamRequest = {
  method: 'GET',
  path: '/',
  headers: ['Host', 'h'],
  identity: [],
  body: undefined,
  upgrade: undefined,
}

function startTransport(t: TestContext, port: number, maxConnections: number): Http1Transport {
  // Longer than the test waits, so that no timer closes a connection.
  const timeouts = { connectTimeoutMs: 10_000, keepAliveMs: 600_000, lifetimeMs: 600_000 }
  const transport = new Http1Transport({ host: '127.0.0.1', port, tls: undefined, maxConnections, ...timeouts })
  t.after(() => transport.destroy())
  return transport
}

/** Resolves with `end`, or with the reason of the failure. */
function send(transport: Http1Transport, request: UpstreamRequest = get): Promise<string> {
  return new Promise((resolve) => {
    const handler: ResponseHandler = {
      onSend: () => true,
      onResponse() {},
      onShortPart() {},
      onContent() {},
      onEnd: () => resolve('end'),
      onSwitch() {},
      onError: ({ message }) => resolve(message),
      onDone() {},
    }
    transport.dispatch(request, handler)
  })
}

test('A connection on which a part of the request still waits is not used again', async (t) => {
  let respond = (): void => {}
  const port = await rawUpstream(t, (socket) => {
    socket.pause()
    respond = () => void socket.write(ok)
  })
  let upstreamSocket: Socket | undefined
  const noteSocket = (message: unknown) => void ({ socket: upstreamSocket } = message as { socket: Socket })
  diagnostics.subscribe('net.client.socket', noteSocket)
  t.after(() => diagnostics.unsubscribe('net.client.socket', noteSocket))
  const transport = startTransport(t, port, 1)

  let reader: ContentReader | undefined
  const body: RequestContent = {
    ...{ isIncomplete: false, begin: (begun: ContentReader) => (reader = begun) },
    ...{ pause() {}, resume() {}, destroy() {} },
  }
  const sent = send(transport, { ...get, method: 'POST', body })
  await until('the request has begun', () => upstreamSocket?.connecting === false)
  // The kernel takes no more, and the last part stays in the gateway.
  while (upstreamSocket?.writableLength === 0) {
    reader?.onPart(Buffer.alloc(8 * 1024), () => {})
    await new Promise(setImmediate)
  }
  reader?.onEnd()
  respond()

  assert.equal(await sent, 'end')
  assert.equal(upstreamSocket?.destroyed, true)
})

test('A connection that becomes idle while the transport closes is closed', async (t) => {
  const waiting: Socket[] = []
  const port = await rawUpstream(t, (socket) => void waiting.push(socket))
  const transport = startTransport(t, port, 2)
  const responses = [send(transport), send(transport), send(transport)]
  await until('two requests have arrived', () => waiting.length === 2)
  let isClosed = false
  void transport.close().then(() => (isClosed = true))

  // Both connections become idle, and only one is needed for the third request.
  for (const socket of waiting.splice(0)) socket.write(ok)
  await until('the third request has arrived', () => waiting.length === 1)
  waiting[0]?.write(ok)

  assert.deepEqual(await Promise.all(responses), ['end', 'end', 'end'])
  await until('the transport is closed', () => isClosed)
})

test('A transport is not closed before a request that is sent again has ended', async (t) => {
  const arrived: Socket[] = []
  const port = await rawUpstream(t, (socket) => void arrived.push(socket))
  const transport = startTransport(t, port, 1)
  const first = send(transport)
  await until('the first request has arrived', () => arrived.length === 1)
  arrived[0]?.write(ok)
  assert.equal(await first, 'end')

  const second = send(transport)
  await until('the second request has arrived', () => arrived.length === 2)
  let isClosed = false
  const closed = transport.close().then(() => (isClosed = true))
  arrived[1]?.destroy()
  await until('the second request has arrived again', () => arrived.length === 3)
  assert.equal(isClosed, false)
  arrived[2]?.write(ok)

  assert.equal(await second, 'end')
  await closed
})
