import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { ReadBuffer } from '../../../src/wire/read-buffers.ts'
import { httpUpstream, RawClient } from '../../proxy/support.ts'
import { issueCertificates } from '../../support/certificates.ts'
import { statusesIn } from '../../support/raw-exchange.ts'
import { searchFor } from '../../support/searches.ts'
import { until } from '../../support/until.ts'
import { startWorld, type WorldOptions } from '../../support/world.ts'

// Uploads are read into memory that is used again: see src/wire/read-buffers.ts.

const mebibyte = 1024 * 1024
const block = randomBytes(mebibyte)
const upstreamSettings = 'rules: [{ path: /*, access: public }]'
const head = (line: string, ...fields: readonly string[]) =>
  [`${line} HTTP/1.1`, 'Host: h', ...fields, '', ''].join('\r\n')

/**
 * A gateway in front of an application that responds with the length and the hash of the content.
 */
async function start(t: TestContext, options: WorldOptions = {}) {
  const stalled: IncomingMessage[] = []
  const { port, server } = await httpUpstream(t, async (req, res) => {
    if (req.url === '/stalled') {
      stalled.push(req)
      await once(req, 'go')
    }
    if (req.url === '/early') return void res.writeHead(413).end('too large')
    const hash = createHash('sha256')
    let length = 0
    try {
      for await (const part of req) {
        hash.update(part as Buffer)
        length += (part as Buffer).length
        for (let turns = Math.random() < 0.2 ? 30 : 0; turns > 0; turns -= 1)
          await new Promise((resolve) => setImmediate(resolve))
      }
      res.end(`[${req.method} ${length} ${hash.digest('hex')}]`)
    } catch {
      // The client has gone.
    }
  })
  server.on('upgrade', (_req, socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
    socket.on('error', () => {})
    server.once('go', () => socket.pipe(socket))
  })
  const upstream = new URL(`http://127.0.0.1:${port}`)
  const world = await startWorld(t, { upstream, upstreamSettings, ...options })
  return { stalled, server, port: Number(new URL(world.url).port) }
}

/** Content that differs between seeds at each position, in pieces. */
function* contentOf(seed: number, length: number): Generator<Buffer> {
  let at = (seed * 7919) % block.length
  for (let left = length; left > 0;) {
    const most = Math.min(left, block.length - at)
    const size = Math.min(
      most,
      Math.random() < 0.5 ? Math.ceil(Math.random() * 3000) : Math.ceil(Math.random() * 300_000),
    )
    yield block.subarray(at, at + size)
    at = (at + size) % block.length
    left -= size
  }
}

function hashOf(seed: number, length: number): string {
  const hash = createHash('sha256')
  for (const piece of contentOf(seed, length)) hash.update(piece)
  return hash.digest('hex')
}

/** Sends a request with this content as fast as the gateway reads it. */
async function upload(socket: Socket, path: string, seed: number, length: number, isChunked = false): Promise<void> {
  const framing = isChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${length}`
  socket.write(head(`PUT ${path}`, framing))
  for (const piece of contentOf(seed, length)) {
    if (isChunked) socket.write(`${piece.length.toString(16)}\r\n`)
    const hasRoom = socket.write(piece)
    if (isChunked) socket.write('\r\n')
    if (!hasRoom) await once(socket, 'drain')
  }
  if (isChunked) socket.write('0\r\n\r\n')
}

/** Resolves with the next text in brackets. */
async function responseOn(socket: Socket): Promise<string> {
  let text = ''
  for (;;) {
    const [part] = (await once(socket, 'data')) as [Buffer]
    text += part.toString('latin1')
    const found = /\[([^\]]*)\]/.exec(text)
    if (found) return found[1] as string
  }
}

async function uploadsArrive(connections: readonly Socket[], isChunked: (at: number) => boolean): Promise<void> {
  const length = searchFor(64, 6) * mebibyte
  await Promise.all(
    connections.map(async (socket, at) => {
      for (const seed of [at, at + 100]) {
        const responded = responseOn(socket)
        await upload(socket, '/', seed, length / 2, isChunked(at))
        assert.equal(await responded, `PUT ${length / 2} ${hashOf(seed, length / 2)}`)
      }
      socket.destroy()
    }),
  )
}

test('Uploads at once, plain and chunked, in segments of any size, arrive unchanged', async (t) => {
  const { port } = await start(t)
  const connections = Array.from({ length: 6 }, () => connect(port, '127.0.0.1'))
  await uploadsArrive(connections, (at) => at % 3 === 2)
})

test('Uploads at once over TLS arrive unchanged', async (t) => {
  const { server } = issueCertificates()
  const { port } = await start(t, {
    listen: (address) => `{ address: "${address}", tls: { cert_file: ${server.cert}, key_file: ${server.key} } }`,
  })
  const connections = [0, 1, 2].map(() => connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false }))
  await uploadsArrive(connections, (at) => at === 2)
})

/** Overwrites the free memory, as the content of other requests would. */
function overwriteWhatIsFree(): void {
  const taken = [true, false].flatMap((isLarge) => Array.from({ length: 40 }, () => ReadBuffer.take(isLarge)))
  for (const buffer of taken) {
    buffer.memory.fill('!')
    buffer.giveBack()
  }
}

/** Resolves when the gateway reads nothing more of a client that still has much to send. */
async function untilStalled(socket: Socket): Promise<number> {
  let before = -1
  let turns = 0
  await until('the gateway reads no more', () => {
    const taken = socket.bytesWritten - socket.writableLength
    turns = taken === before && socket.writableLength > 0 ? turns + 1 : 0
    before = taken
    return turns > 20
  })
  return before
}

test('Requests of a connection after a large upload, and of others meanwhile', async (t) => {
  const { port, stalled, server } = await start(t, { settings: 'limits: { body_idle_timeout: 1s }' })
  const connection = () => {
    const socket = connect(port, '127.0.0.1')
    t.after(() => socket.destroy())
    return socket
  }

  await t.test('An upload that an application does not read is not overwritten, and takes little memory', async () => {
    const length = 48 * mebibyte
    const slow = connection()
    const sent = upload(slow, '/stalled', 1, length)
    const arrived = responseOn(slow)
    await until('the request has arrived', () => stalled.length === 1)
    const taken = await untilStalled(slow)
    const other = connection()
    const responded = responseOn(other)
    await upload(other, '/', 2, 2 * mebibyte)
    assert.equal(await responded, `PUT ${2 * mebibyte} ${hashOf(2, 2 * mebibyte)}`)
    overwriteWhatIsFree()

    stalled[0]?.emit('go')
    await sent

    assert.equal(await arrived, `PUT ${length} ${hashOf(1, length)}`)
    assert.ok(taken < 24 * mebibyte, `${taken} bytes were taken from the client`)
  })

  await t.test('Requests of all kinds follow a large upload on its connection', async () => {
    const socket = connection()
    for (const [sent, expected] of [
      [head('GET /1'), /^HTTP\/1\.1 200 OK[^]*\[GET 0 \w+\]$/],
      [head('GET /.gatehouse/session'), /"status":401[^]*\}\s*$/],
      [`${head('POST /2', 'Content-Length: 5')}hello`, /\[POST 5 2cf24dba\w+\]$/],
      [head('POST /.gatehouse/backchannel-logout', 'Content-Length: 300000') + 'x'.repeat(300_000), / 4\d\d /],
    ] as const) {
      const other = sent.includes('300000') ? connection() : socket
      const responded = responseOn(other)
      await upload(other, '/', 3, mebibyte)
      assert.equal(await responded, `PUT ${mebibyte} ${hashOf(3, mebibyte)}`)
      let text = ''
      const note = (part: Buffer) => void (text += part.toString('latin1'))
      other.on('data', note).write(sent)
      await until(`the response to ${sent.slice(0, 30)}`, () => expected.test(text))
      other.off('data', note)
      if (other !== socket) continue
      text = ''
      other.on('data', note)
      await upload(other, '/', 4, 300_000)
      other.write(head('HEAD /3'))
      await until('both responses', () => statusesIn(text).length === 2 && text.endsWith('\r\n\r\n'))
      other.off('data', note)
      assert.match(text, new RegExp(`\\[PUT 300000 ${hashOf(4, 300_000)}\\]`))
    }
  })

  await t.test('A pipelined request that arrives in parts behind a large upload is served', async () => {
    const socket = connection()
    let text = ''
    socket.on('data', (part: Buffer) => (text += part.toString('latin1')))
    await upload(socket, '/', 5, mebibyte)
    socket.write('GET /a HTTP/1.1\r\nHost: h\r\n\r\nGET /b HT')
    await until('two responses', () => statusesIn(text).length === 2)
    overwriteWhatIsFree()
    const other = connection()
    const responded = responseOn(other)
    await upload(other, '/', 6, mebibyte)
    await responded
    socket.write('TP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n')
    await once(socket, 'close')
    assert.deepEqual(statusesIn(text), [200, 200, 200])
  })

  await t.test('A WebSocket follows a large upload on its connection', async () => {
    const socket = connection()
    const responded = responseOn(socket)
    await upload(socket, '/', 7, mebibyte)
    await responded
    let text = ''
    socket.on('data', (part: Buffer) => (text += part.toString('latin1')))
    const fields = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhl']
    socket.write(head('GET /ws', ...fields))
    await until('the connection switches', () => / 101 [^]*\r\n\r\n$/.test(text))
    let length = 0
    const hash = createHash('sha256')
    socket.removeAllListeners('data').on('data', (part: Buffer) => {
      hash.update(part)
      length += part.length
    })
    // Masked frames (RFC 6455 §5.2) whose content is not masked, because the mask is 0.
    const frame = Buffer.concat([Buffer.from('82fe1388'.padEnd(16, '0'), 'hex'), Buffer.alloc(5000, 'x')])
    // More than the operating system and the gateway buffer.
    const all = Buffer.concat(Array.from({ length: 7_000 }, () => frame))
    socket.write(all)
    await untilStalled(socket)
    // Its content arrives in the memory that all connections read into.
    const other = connection()
    const uploaded = responseOn(other)
    await upload(other, '/', 9, 3 * mebibyte)
    await uploaded
    server.emit('go')
    await until('all messages have come back', () => length === all.length)
    assert.equal(hash.digest('hex'), createHash('sha256').update(all).digest('hex'))
  })

  await t.test('A client that pauses in a large upload gets 408', async () => {
    const client = new RawClient(t, port).send(head('PUT /', 'Content-Length: 3000000') + 'x'.repeat(500_000))
    assert.deepEqual(statusesIn(await client.untilClosed()), [408])
  })

  await t.test('An early response to a large upload arrives', async () => {
    const client = new RawClient(t, port).send(head('PUT /early', 'Content-Length: 3000000') + 'x'.repeat(500_000))
    const text = await client.until(/too large/)
    assert.match(text, /^HTTP\/1\.1 413 [^]*\r\nConnection: close\r\n/)
    client.send('x'.repeat(2_500_000))
    await client.untilClosed()
  })

  await t.test('A client that half-closes its connection after a large upload gets the response', async () => {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    t.after(() => socket.destroy())
    for (const seed of [10, 11]) {
      const responded = responseOn(socket)
      await upload(socket, '/', seed, 2 * mebibyte)
      if (seed === 11) socket.end()
      assert.equal(await responded, `PUT ${2 * mebibyte} ${hashOf(seed, 2 * mebibyte)}`)
    }
    await once(socket, 'end')
  })

  await t.test('A client that half-closes its connection in a large upload is closed', async () => {
    const client = new RawClient(t, port).send(head('PUT /', 'Content-Length: 3000000') + 'x'.repeat(2_000_000))
    client.socket.end()
    assert.equal(await client.untilClosed(), '')
  })

  await t.test('An upload that its client breaks off leaves the gateway as it was', async () => {
    const client = new RawClient(t, port).send(head('PUT /', 'Content-Length: 3000000') + 'x'.repeat(2_000_000))
    await until('a part was sent', () => client.socket.writableLength === 0)
    client.socket.destroy()
    const socket = connection()
    const responded = responseOn(socket)
    await upload(socket, '/', 8, mebibyte)
    assert.equal(await responded, `PUT ${mebibyte} ${hashOf(8, mebibyte)}`)
  })
})
