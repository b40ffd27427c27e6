import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { WebSocket, WebSocketServer } from 'ws'
import { until } from '../support/until.ts'
import { type Gateway, httpUpstream, jane, RawClient, rawUpstream, startGateway } from './support.ts'

/** The code and the reason of a Close frame. */
const closing = (socket: WebSocket): Promise<string> =>
  new Promise((resolve) => socket.once('close', (code, reason) => resolve(`${code} ${reason}`.trim())))

/** A WebSocket through the gateway, with both of its ends. */
async function joined(t: TestContext, { perMessageDeflate = false, session = jane as typeof jane | undefined } = {}) {
  const { server, port } = await httpUpstream(t, (_, res) => res.end())
  const sockets = new WebSocketServer({ server, perMessageDeflate })
  t.after(() => sockets.close())
  const gateway = await startGateway(t, port, { pass: { session } })
  const arrival = once(sockets, 'connection')
  const client = new WebSocket(`ws://127.0.0.1:${gateway.port}/`, { perMessageDeflate })
  t.after(() => client.terminate())
  const [[upstream]] = await Promise.all([arrival, once(client, 'open')])
  return { gateway, client, upstream: upstream as WebSocket }
}

/** A raw upstream and a raw client after the switch of protocols. */
async function joinedRaw(t: TestContext, protocol = 'websocket') {
  let upstream: Socket | undefined
  const port = await rawUpstream(t, (socket) => {
    upstream = socket
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n\r\n`)
  })
  const gateway = await startGateway(t, port, { upstream: { upgrade: [protocol] } })
  const upgrade = once(gateway.server, 'upgrade')
  const client = new RawClient(t, gateway.port).send(
    `GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n\r\n`,
  )
  await client.until(/\r\n\r\n/)
  const received = () => client.received.slice(client.received.indexOf('\r\n\r\n') + 4)
  const [, towardsClient] = (await upgrade) as [unknown, Socket]
  return { gateway, client, towardsClient, upstream: upstream as Socket, received }
}

const policyViolation = '\x88\x0f\x03\xf0session ended'
const text = (content: string): string => `\x81${String.fromCharCode(content.length)}${content}`

for (const [what, end, code] of [
  ['its session ends', ({ live }: Gateway) => live.closeAll([jane]), '1008 session ended'],
  ['the gateway stops', ({ live }: Gateway) => live.closeEndless(), '1001 going away'],
] as const)
  test(`When ${what}, a WebSocket gets Close ${code}, and the upstream gets a Close frame`, async (t) => {
    for (const perMessageDeflate of [false, true]) {
      const { gateway, client, upstream } = await joined(t, { perMessageDeflate })
      upstream.send('x'.repeat(5_000))
      assert.equal(String((await once(client, 'message'))[0]).length, 5_000)
      client.send('y'.repeat(70_000))
      assert.equal(String((await once(upstream, 'message'))[0]).length, 70_000)
      const closed = Promise.all([closing(client), closing(upstream)])

      end(gateway)
      end(gateway)

      assert.deepEqual(await closed, [code, '1001'])
      await until('nothing is open any more', () => gateway.live.size === 0)
    }
  })

test('A WebSocket without a session also gets a Close frame when the gateway stops', async (t) => {
  const { gateway, client, upstream } = await joined(t, { session: undefined })
  const closed = Promise.all([closing(client), closing(upstream)])

  gateway.live.closeEndless()

  assert.deepEqual(await closed, ['1001 going away', '1001'])
})

test('When the session ends during a large frame, the Close frame follows that frame', async (t) => {
  const size = 1024 * 1024
  const { gateway, client, upstream, received } = await joinedRaw(t)
  client.socket.once('data', () => gateway.live.closeAll([jane]))

  upstream.write(Buffer.concat([Buffer.from([0x82, 127, 0, 0, 0, 0, 0, size >> 16, 0, 0]), Buffer.alloc(size, 'x')]))

  await client.untilClosed()
  assert.equal(received().length, 10 + size + policyViolation.length)
  assert.ok(received().endsWith(`xxx${policyViolation}`))
})

test('After the end of the session, only the rest of the current frame of the upstream arrives', async (t) => {
  const { gateway, client, upstream, received } = await joinedRaw(t)
  upstream.write('\x81\x05ab', 'latin1')
  await client.until(/ab$/)

  gateway.live.closeAll([jane])
  upstream.write('cde' + text('too late'), 'latin1')

  await client.untilClosed()
  assert.equal(received(), text('abcde') + policyViolation)
})

test('An incomplete frame is aborted without a Close frame inside it', async (t) => {
  const { gateway, client, upstream, received } = await joinedRaw(t)
  upstream.write('\x81\x05ab', 'latin1')
  await client.until(/ab$/)

  gateway.live.closeAll([jane])

  await client.untilClosed()
  assert.equal(received(), '\x81\x05ab')
})

test('After the end of the session, nothing of the client arrives, not even the rest of a frame', async (t) => {
  const { gateway, client, upstream } = await joinedRaw(t)
  const over = once(upstream, 'close')
  let received = ''
  const begun = new Promise<void>((resolve) => {
    upstream.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1')
      if (received.includes('abcd')) resolve()
    })
  })
  client.send('\x81\x85abcd\x00\x00')
  await begun

  gateway.live.closeAll([jane])
  client.send('\x00\x00\x00')

  await over
  assert.ok(received.endsWith('abcd\x00\x00'))
})

test('The upstream receives a masked Close frame', async (t) => {
  const { gateway, upstream } = await joinedRaw(t)
  const bytes: Buffer[] = []
  upstream.on('data', (chunk: Buffer) => bytes.push(chunk))
  const over = once(upstream, 'close')

  gateway.live.closeAll([jane])
  await over

  const frame = Buffer.concat(bytes).subarray(-8)
  assert.deepEqual([frame[0], frame[1]], [0x88, 0x82])
  const [key, payload] = [frame.subarray(2, 6), frame.subarray(6)]
  assert.equal((((payload[0] ?? 0) ^ (key[0] ?? 0)) << 8) | ((payload[1] ?? 0) ^ (key[1] ?? 0)), 1001)
})

test('No second Close frame follows the Close frame of the upstream', async (t) => {
  const { gateway, client, upstream, received } = await joinedRaw(t)
  upstream.write('\x88\x02\x03\xe8', 'latin1')
  await client.until(/\x88\x02\x03\xe8/)

  gateway.live.closeAll([jane])

  await client.untilClosed()
  assert.equal(received(), '\x88\x02\x03\xe8')
})

for (const [what, protocol, sent] of [
  ['what is no WebSocket', 'own-protocol', 'hello'],
  ['what only calls itself a WebSocket', 'websocket', 'hello'],
] as const)
  test(`${what} is closed without a Close frame`, async (t) => {
    const { gateway, client, upstream, received } = await joinedRaw(t, protocol)
    const over = once(upstream, 'close')
    upstream.on('data', () => {})
    upstream.write(sent)
    await client.until(/hello$/)

    gateway.live.closeAll([jane])

    await Promise.all([client.untilClosed(), over])
    assert.equal(received(), sent)
  })

test('The gateway does not wait for a client that neither reads nor disconnects', async (t) => {
  const { gateway, client, upstream } = await joinedRaw(t)
  const over = once(upstream, 'close')
  upstream.on('data', () => {})
  client.socket.pause()

  gateway.live.closeAll([jane])

  await over
  while (gateway.live.size > 0) await new Promise(setImmediate)
})

test('A slow client still gets the last message and the Close frame of an upstream that disconnects', async (t) => {
  const { client, towardsClient, upstream, received } = await joinedRaw(t)
  const message = `\x82\x7e\x20\x00${'x'.repeat(8 * 1024)}`
  const last = `${text('the last words')}\x88\x02\x03\xe8`
  client.socket.pause()
  // Writes until the kernel buffers are full, in parts that the tunnel continues to read.
  let sent = 0
  for (const begin = towardsClient.bytesWritten; towardsClient.writableLength === 0;) {
    upstream.write(message, 'latin1')
    sent += message.length
    while (towardsClient.bytesWritten - begin < sent) await new Promise(setImmediate)
  }
  assert.equal(towardsClient.writableNeedDrain, false)

  upstream.end(last, 'latin1')
  await once(upstream, 'close')
  client.socket.resume()
  await client.untilClosed()

  assert.equal(received().length, sent + last.length)
  assert.ok(received().endsWith(last))
})
