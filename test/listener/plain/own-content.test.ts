import { createHash } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import fc from 'fast-check'
import { httpUpstream } from '../../proxy/support.ts'
import { issueCertificates } from '../../support/certificates.ts'
import { searchFor } from '../../support/searches.ts'
import { startWorld } from '../../support/world.ts'

// All connections are read into one buffer: see src/wire/read-buffers.ts.

const runs = Number(process.env['FRONT_RUNS'] ?? searchFor(100, 8))

const kinds = ['get', 'upload', 'held', 'chunked', 'expect', 'unusual', 'endpoint', 'token'] as const
const request = fc.record({
  kind: fc.constantFrom(...kinds),
  /** Of the content, or of a field of a request without content, in bytes. */
  length: fc.oneof(fc.nat({ max: 300 }), fc.nat({ max: 12_000 }), fc.nat({ max: 300_000 })),
})
const client = fc.record({
  requests: fc.array(request, { minLength: 1, maxLength: 5 }),
  /**
   * How many bytes it sends through a WebSocket, at once behind its last request; `0`: it opens
   * none.
   */
  tunneled: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 60_000 })),
  /** At most this many bytes are sent at once. */
  step: fc.constantFrom(1, 60, 1_460, 16_384, 70_000, Infinity),
  readsSlowly: fc.boolean(),
})
type Request = typeof request extends fc.Arbitrary<infer T> ? T : never
type Client = typeof client extends fc.Arbitrary<infer T> ? T : never

/** A request, and what its response has to contain. */
interface Sent {
  readonly bytes: Buffer
  readonly expected: string
}

const hashOf = (...parts: readonly (string | Buffer)[]) => {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest('hex')
}

/** Text that differs from that of all other requests at nearly each position. */
function contentOf(id: number, length: number): string {
  return `${id}:${hashOf(String(id))};`.repeat(Math.ceil(length / 66)).slice(0, length)
}

function requestOf({ kind, length }: Request, id: number): Sent {
  const target = `/${kind}/${id}`
  const head = (line: string, ...fields: readonly string[]) =>
    [`${line} HTTP/1.1`, 'Host: h', ...fields, '', ''].join('\r\n')
  // Node's server closes the connection after `Expect` without content.
  const own = contentOf(id, length + 1)
  if (kind === 'endpoint') return { bytes: Buffer.from(head('GET /.gatehouse/session')), expected: '"status":401' }
  if (kind === 'token') {
    const form = `logout_token=${own.slice(0, 9_000)}`
    const fields = ['Content-Type: application/x-www-form-urlencoded', `Content-Length: ${form.length}`]
    const bytes = Buffer.from(head('POST /.gatehouse/backchannel-logout', ...fields) + form)
    return { bytes, expected: '"error":' }
  }
  if (kind === 'get' || kind === 'unusual') {
    const field = own.slice(0, 9_000)
    const fields = [`X-Own: ${field}`, ...(kind === 'unusual' ? ['TE: trailers'] : [])]
    return { bytes: Buffer.from(head(`GET ${target}`, ...fields)), expected: `[${hashOf(target, field)}]` }
  }
  const expected = `[${hashOf(target, own)}]`
  if (kind === 'chunked') {
    const chunk = own === '' ? '' : `${own.length.toString(16)}\r\n${own}\r\n`
    return { bytes: Buffer.from(`${head(`PUT ${target}`, 'Transfer-Encoding: chunked')}${chunk}0\r\n\r\n`), expected }
  }
  const fields = [`Content-Length: ${own.length}`, ...(kind === 'expect' ? ['Expect: 100-continue'] : [])]
  return { bytes: Buffer.from(head(`PUT ${target}`, ...fields) + own), expected }
}

const upgrade = [
  'GET /tunnel HTTP/1.1',
  ...['Host: h', 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhl'],
  ...['', ''],
].join('\r\n')

/** A masked frame (RFC 6455 §5.2) whose content is not masked, because the mask is 0. */
function frameOf(content: string): Buffer {
  const head = Buffer.from('82fe000000000000', 'hex')
  head.writeUInt16BE(content.length, 2)
  return Buffer.concat([head, Buffer.from(content)])
}

/**
 * Whether another response has arrived than the expected one, or other bytes through the tunnel.
 */
function isWrong(received: string, expected: string): boolean {
  if (expected.startsWith('[')) return /\[[^\]]*\]/.test(received)
  if (expected.startsWith('"')) return false
  const head = received.indexOf('\r\n\r\n')
  return head !== -1 && received.length - head - 4 >= expected.length
}

async function turns(count: number): Promise<void> {
  for (let at = 0; at < count; at += 1) await new Promise((resolve) => setImmediate(resolve))
}

/** Sends the bytes in parts, and does not wait until the gateway takes them. */
async function send(socket: Socket, bytes: Buffer, step: number): Promise<void> {
  let at = 0
  while (at < bytes.length && !socket.destroyed) {
    // Single bytes at first. All of them would take too long.
    const size = at >= 400 && step < 1_000 ? 5_000 : step
    socket.write(bytes.subarray(at, at + size))
    at += size
    await turns(1)
  }
}

test('Clients at once, plain and over TLS, get responses to their own bytes', async (t) => {
  const { port, server } = await httpUpstream(t, async (req, res) => {
    if (req.url?.startsWith('/held')) await turns(20)
    const parts: Buffer[] = []
    for await (const part of req) {
      parts.push(part as Buffer)
      if (parts.length % 4 === 0) await turns(5)
    }
    const field = req.headers['x-own']
    const isGet = req.method === 'GET'
    res.end(`[${hashOf(String(req.url), ...(isGet ? [String(field ?? '')] : parts))}]`)
  })
  server.on('upgrade', (_req, socket: Socket, head: Buffer) => {
    socket.on('error', () => {})
    void turns(20).then(() => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
      socket.write(head)
      socket.pipe(socket)
    })
  })
  const { server: files } = issueCertificates()
  let listen = ''
  const world = await startWorld(t, {
    upstream: new URL(`http://127.0.0.1:${port}`),
    upstreamSettings: 'rules: [{ path: /*, access: public }]',
    settings: 'limits: { per_client: { refused_logout_tokens: 100000/s } }',
    listen: (address) => `{ address: "${address}"${listen} }`,
  })
  listen = `, tls: { cert_file: ${files.cert}, key_file: ${files.key} }`
  const overTls = await world.startReplica()
  const plainPort = Number(new URL(world.url).port)
  const tlsPort = overTls.gateway.address.port
  let ids = 0

  const run = async ({ requests, tunneled, step, readsSlowly }: Client, isTls: boolean) => {
    const sent = requests.map((each) => requestOf(each, (ids += 1)))
    const tunnel = tunneled === 0 ? [] : [Buffer.from(upgrade), frameOf(contentOf((ids += 1), tunneled))]
    const expected = [...sent.map((each) => each.expected), ...tunnel.slice(1).map((frame) => frame.toString('latin1'))]
    const address = { port: isTls ? tlsPort : plainPort, host: '127.0.0.1' }
    const socket = isTls ? connectTls({ ...address, rejectUnauthorized: false }) : connect(address)
    let text = ''
    let at = 0
    const over = new Promise<void>((resolve, reject) => {
      socket
        .on('error', () => {})
        .once('close', () => {
          if (expected.length === 0) return resolve()
          const about = JSON.stringify({ requests, tunneled, step, readsSlowly, isTls, missing: expected.length })
          reject(new Error(`${about}: ${JSON.stringify(text.slice(at, at + 800))}`))
        })
      socket.on('data', (part: Buffer) => {
        text += part.toString('latin1')
        for (let next = expected[0]; next !== undefined; next = expected[0]) {
          const found = text.indexOf(next, at)
          if (found === -1) break
          at = found + next.length
          expected.shift()
        }
        if (expected.length === 0 || isWrong(text.slice(at), expected[0] as string)) return void socket.destroy()
        if (!readsSlowly) return
        socket.pause()
        setTimeout(() => socket.resume(), 1)
      })
    })
    await Promise.all([over, send(socket, Buffer.concat([...sent.map(({ bytes }) => bytes), ...tunnel]), step)])
  }

  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(client, fc.boolean()), { minLength: 5, maxLength: 12 }), async (clients) => {
      const outcomes = await Promise.allSettled(clients.map(([each, isTls]) => run(each, isTls)))
      const failed = outcomes.find(({ status }) => status === 'rejected')
      if (failed?.status === 'rejected') throw failed.reason
    }),
    { numRuns: runs, endOnFailure: true },
  )
})
