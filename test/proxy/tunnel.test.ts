import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { connect as connectTls, createServer as createTlsServer } from 'node:tls'
import fc from 'fast-check'
import { issueCertificates } from '../support/certificates.ts'
import { dataFrame, encode, type Frame, frames, split } from './frames.ts'
import { type Gateway, jane, startGateway, trusting } from './support.ts'

const mebibyte = 1024 * 1024

/** A tunnel through the gateway: the ends, and the gateway's socket of the client. */
interface Ends {
  readonly client: Socket
  readonly upstream: Socket
  readonly towardsClient: Socket
}

interface World {
  readonly gateway: Gateway
  /** Opens a tunnel. No data has been read from either end. */
  open(): Promise<Ends>
}

interface WorldOptions {
  readonly tls?: boolean
  readonly protocol?: string
}

/**
 * A gateway between raw sockets, which may stay open for writing after the end of the other side.
 */
async function world(t: TestContext, { tls = false, protocol = 'websocket' }: WorldOptions = {}): Promise<World> {
  const { key, cert, ca } = tls ? textsOf(issueCertificates().server) : { key: '', cert: '', ca: undefined }
  const waiting = new Map<string, (socket: Socket) => void>()
  const arrive = (socket: Socket) => {
    socket.on('error', () => {})
    socket.once('data', (head: Buffer) => {
      socket.pause()
      socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n\r\n`)
      waiting.get(/^GET \/(\d+) /.exec(String(head))?.[1] ?? '')?.(socket)
    })
    t.after(() => socket.destroy())
  }
  const options = { allowHalfOpen: true, key, cert }
  const server: Server = tls ? createTlsServer(options, arrive) : createServer(options, arrive)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo
  const most = { maxConnections: 1000, maxStreams: 1000, maxStreamsPerClient: 1000 }
  const url = new URL(`${tls ? 'https' : 'http'}://127.0.0.1:${port}`)
  const gateway = await startGateway(t, port, {
    upstream: { url, tls: trusting(ca), upgrade: [protocol], ...most },
    ...(tls ? { tls: { key, cert } } : {}),
  })
  const upgraded = new Map<string, Socket>()
  gateway.server.on('upgrade', (req, socket) => upgraded.set(req.url ?? '', socket as Socket))
  let opened = 0
  return {
    gateway,
    async open() {
      const name = String(++opened)
      const upstream = new Promise<Socket>((resolve) => waiting.set(name, resolve))
      const where = { host: '127.0.0.1', port: gateway.port, allowHalfOpen: true }
      const client = tls ? connectTls({ ...where, rejectUnauthorized: false }) : connect(where)
      client.on('error', () => {})
      t.after(() => client.destroy())
      client.write(`GET /${name} HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n\r\n`)
      assert.match(String((await once(client, 'data'))[0]), /^HTTP\/1\.1 101 [^]*\r\n\r\n$/)
      client.pause()
      return { client, upstream: await upstream, towardsClient: upgraded.get(`/${name}`) as Socket }
    },
  }
}

function textsOf({ key, cert, ca }: Record<'key' | 'cert' | 'ca', string>): Record<'key' | 'cert' | 'ca', string> {
  const text = (file: string) => readFileSync(file, 'utf8')
  return { key: text(key), cert: text(cert), ca: text(ca) }
}

/** Writes `size` bytes in parts of many lengths, as fast as they are read. Returns their digest. */
function pour(socket: Socket, size: number): string {
  const block = randomBytes(mebibyte)
  const hash = createHash('sha256')
  const lengths = [1, 40, 1024, 1025, 9_000, 16_385, 65_536, 150_000, 800_000]
  const parts: Buffer[] = []
  for (let sent = 0, each = 0; sent < size; each += 1) {
    const length = Math.min(lengths[each % lengths.length] as number, size - sent)
    const from = (each * 7919) % (block.length - length)
    const part = block.subarray(from, from + length)
    hash.update(part)
    parts.push(part)
    sent += length
  }
  const more = () => {
    for (let part = parts.shift(); part !== undefined; part = parts.shift())
      if (!socket.write(part)) return void socket.once('drain', more)
  }
  more()
  return hash.digest('hex')
}

/** Reads `size` bytes, with a pause after each part. Returns their digest. */
async function readSlowly(socket: Socket, size: number): Promise<string> {
  const hash = createHash('sha256')
  let received = 0
  socket.on('data', (part: Buffer) => {
    hash.update(part)
    received += part.length
    socket.pause()
    setImmediate(() => socket.resume())
  })
  socket.resume()
  while (received < size && !socket.closed) await nextTurn()
  assert.equal(received, size)
  return hash.digest('hex')
}

/** Everything that a socket receives until it is closed. */
function collect(socket: Socket): () => Buffer {
  const parts: Buffer[] = []
  socket.on('data', (part: Buffer) => parts.push(part)).resume()
  return () => Buffer.concat(parts)
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

async function allClosed(gateway: Gateway, sockets: readonly Socket[]): Promise<void> {
  while (gateway.live.size > 0 || sockets.some(({ closed }) => !closed)) await nextTurn()
}

for (const [over, tls, count, size] of [
  ['TCP', false, 4, 16 * mebibyte],
  ['TLS', true, 2, 8 * mebibyte],
] as const)
  test(`Over ${over}, both ends of each tunnel receive each byte, also when they read slowly`, async (t) => {
    const { open } = await world(t, { tls })
    const tunnels = await Promise.all(Array.from({ length: count }, open))
    const digests = tunnels.flatMap(({ client, upstream }) => [pour(upstream, size), pour(client, size)])
    // No end reads, so the gateway has stopped reading the other one.
    const isStalled = ({ towardsClient }: Ends) => towardsClient.writableNeedDrain && towardsClient.isPaused()
    while (!tunnels.every(isStalled)) await nextTurn()
    const held = tunnels.map(({ towardsClient }) => towardsClient.writableLength + towardsClient.readableLength)

    const received = await Promise.all(
      tunnels.flatMap(({ client, upstream }) => [readSlowly(client, size), readSlowly(upstream, size)]),
    )

    assert.deepEqual(received, digests)
    assert.ok(Math.max(...held) < mebibyte, `the gateway held ${held.join(', ')} bytes for the clients`)
  })

test('A side that ends its data still receives the data of the other side', async (t) => {
  const { gateway, open } = await world(t, { protocol: 'own-protocol' })
  const { client, upstream } = await open()
  const [fromUpstream, fromClient] = [collect(client), collect(upstream)]
  client.end('the question')
  await once(upstream, 'end')

  upstream.end('the whole response')

  await allClosed(gateway, [client, upstream])
  assert.equal(String(fromClient()), 'the question')
  assert.equal(String(fromUpstream()), 'the whole response')
})

test('When one side is gone, a side that sends but does not read is not read any more', async (t) => {
  const { open } = await world(t)
  const { client, upstream, towardsClient } = await open()
  pour(upstream, 16 * mebibyte)
  while (!towardsClient.writableNeedDrain) await nextTurn()
  upstream.resetAndDestroy()
  client.write('the gateway notices it when it writes')
  while (!towardsClient.writableEnded) await nextTurn()
  const before = towardsClient.bytesRead
  pour(client, 16 * mebibyte)
  for (let turn = 0; turn < 500; turn += 1) await nextTurn()

  // The time limit for a side that does not read counts from its last data.
  const read = towardsClient.bytesRead - before
  assert.ok(read < mebibyte, `${read} bytes were read`)
})

test('When both sides break off at once, the tunnel is over once', async (t) => {
  const { gateway, open } = await world(t)
  const ends = await Promise.all(Array.from({ length: 20 }, open))
  for (const { client, upstream } of ends) {
    client.write('x')
    upstream.write('x')
  }
  for (const [index, { client, upstream }] of ends.entries())
    for (const socket of index % 2 === 0 ? [client, upstream] : [upstream, client]) socket.resetAndDestroy()

  while (gateway.records.length < ends.length || gateway.live.size > 0) await nextTurn()
  await nextTurn()
  assert.equal(gateway.records.length, ends.length)
})

/** What one side sends, and how far it has come when the session ends. */
interface Sending {
  readonly sent: readonly Frame[]
  readonly places: readonly number[]
  /** The number of chunks before the end of the session, modulo all of them. */
  readonly before: number
  /** The rest follows after the end of the session. */
  readonly continues: boolean
}

const sending: fc.Arbitrary<Sending> = fc.record({
  sent: fc.tuple(frames, dataFrame).map(([some, last]) => [...some, last]),
  places: fc.array(fc.nat(), { maxLength: 12 }),
  before: fc.nat(),
  continues: fc.boolean(),
})

function chunksOf({ sent, places, before }: Sending, from: 'client' | 'server') {
  const encoded = sent.map((frame) => encode(frame, from))
  const bytes = Buffer.concat(encoded)
  let end = 0
  const ends = new Set([0, ...encoded.map(({ length }) => (end += length))])
  const chunks = split(bytes, places).filter(({ length }) => length > 0)
  const count = before % (chunks.length + 1)
  const [first, rest] = [chunks.slice(0, count), chunks.slice(count)]
  return { bytes, ends, first, rest, written: Buffer.concat(first).length }
}

test('However frames are split, a session that ends leaves whole frames and one Close frame', async (t) => {
  const seed = Number(process.env['FUZZ_SEED'] ?? Date.now() % 2 ** 31)
  t.diagnostic(`FUZZ_SEED=${seed}`)
  const { gateway, open } = await world(t)
  const plans = fc.sample(fc.tuple(sending, sending, fc.nat({ max: 3 })), { numRuns: 150, seed })
  const tunnels = await Promise.all(
    plans.map(async ([toClient, toUpstream, turns]) => {
      const { client, upstream } = await open()
      const down = { ...chunksOf(toClient, 'server'), received: collect(client), continues: toClient.continues }
      const up = { ...chunksOf(toUpstream, 'client'), received: collect(upstream) }
      return { client, upstream, down, up, turns }
    }),
  )
  t.mock.timers.enable({ apis: ['setTimeout'] })
  // At the end of the session, some chunks have arrived, and others are still on the way.
  await Promise.all(
    tunnels.map(async ({ client, upstream, down, up, turns }) => {
      for (let each = 0; each < Math.max(down.first.length, up.first.length); each += 1) {
        for (let turn = 0; turn < turns; turn += 1) await nextTurn()
        for (const chunk of down.first.slice(each, each + 1)) upstream.write(chunk)
        for (const chunk of up.first.slice(each, each + 1)) client.write(chunk)
      }
    }),
  )

  gateway.live.closeAll([jane])
  for (const { client, upstream, down, up } of tunnels) {
    for (const chunk of down.continues ? down.rest : []) upstream.write(chunk)
    for (const chunk of up.rest) client.write(chunk)
    // A peer that gets the end of the connection closes it.
    for (const socket of [client, upstream]) socket.once('end', () => socket.end())
  }
  const isWaiting = ({ down }: (typeof tunnels)[number]) => !down.continues && !down.ends.has(down.written)
  while (tunnels.some((each) => !isWaiting(each) && !each.client.closed)) await nextTurn()
  t.mock.timers.tick(100)
  await allClosed(
    gateway,
    tunnels.flatMap(({ client, upstream }) => [client, upstream]),
  )

  const close = Buffer.from('\x88\x0f\x03\xf0session ended', 'latin1')
  for (const [index, tunnel] of tunnels.entries()) {
    const { down, up } = tunnel
    const received = down.received()
    const passed = received.length - close.length
    if (!isWaiting(tunnel) || received.subarray(-close.length).equals(close)) {
      assert.ok(received.subarray(-close.length).equals(close), `tunnel ${index}: no Close frame`)
      assert.ok(down.ends.has(passed), `tunnel ${index}: a Close frame in a frame`)
      assert.ok(received.subarray(0, passed).equals(down.bytes.subarray(0, passed)), `tunnel ${index}: other bytes`)
    } else assert.ok(received.equals(down.bytes.subarray(0, received.length)), `tunnel ${index}: other bytes`)

    const sent = up.received()
    if (sent.equals(up.bytes.subarray(0, sent.length))) continue
    assert.deepEqual([...sent.subarray(-8, -6)], [0x88, 0x82], `tunnel ${index}: no Close frame`)
    assert.ok(up.ends.has(sent.length - 8), `tunnel ${index}: a Close frame in a frame of the client`)
    assert.ok(sent.subarray(0, -8).equals(up.bytes.subarray(0, sent.length - 8)), `tunnel ${index}: other bytes`)
  }
})
