import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { test } from 'node:test'
import fc from 'fast-check'
import type { ClientMessage, ClientReply } from '../../../src/http/client-messages.ts'
import { Front } from '../../../src/listener/plain/plain-connection.ts'

/** How many byte sequences are tried: a few thousand here, millions with `FRONT_RUNS`. */
const runs = Number(process.env['FRONT_RUNS'] ?? 3_000)

/** What a server has understood of the bytes on a connection. */
interface Understood {
  readonly requests: readonly string[]
  readonly responses: string
}

/** The end of a connection that a server has, without an operating system in between. */
class Connection extends Duplex {
  written = ''
  isClosed = false
  remoteAddress = '192.0.2.1'

  constructor() {
    super({ allowHalfOpen: true })
    this.on('error', () => {}).on('close', () => (this.isClosed = true))
  }

  override _read(): void {}

  override _write(chunk: Buffer | string, encoding: BufferEncoding, done: () => void): void {
    this.written +=
      typeof chunk === 'string' ? Buffer.from(chunk, encoding).toString('latin1') : chunk.toString('latin1')
    setImmediate(done)
  }

  setTimeout(): this {
    return this
  }

  setNoDelay(): this {
    return this
  }

  destroySoon(): void {
    this.end(() => this.destroy())
  }
}

const requests = new WeakMap<object, string[]>()

/** Reads the content of a request, and answers with its length. */
function answer(req: ClientMessage | IncomingMessage, res: ClientReply): void {
  const seen = requests.get((req.socket as Socket & { of?: object }).of ?? req.socket) ?? []
  const entry = [req.method, req.url, req.httpVersion, req.rawHeaders, { ...req.headers }]
  const at = seen.push(JSON.stringify(entry)) - 1
  let content = ''
  req.on('data', (part: Buffer) => (content += part.toString('latin1')))
  req.on('end', () => {
    seen[at] = JSON.stringify([...entry, content])
    res.setHeader('Content-Length', String(content.length))
    res.writeHead(200)
    if (req.method === 'HEAD') res.end()
    else res.end(content, 'latin1' as 'utf8')
  })
}

function nodeServer(): Server {
  const server = createServer({ requireHostHeader: false, keepAliveTimeout: 75_000 }, (req, res) => answer(req, res))
  server.maxHeadersCount = 0
  // What came before the error still gets its response.
  server.on('clientError', () => {})
  return server
}

const reference = nodeServer()
const tested = nodeServer()
let plain = 0
new Front(tested, false, {
  request: (req, res) => {
    plain += 1
    answer(req, res)
  },
  isDraining: () => false,
  maxHeadBytes: 16 * 1024,
  headersTimeoutMs: 60_000,
  keepAliveMs: 75_000,
  arrived: () => {},
  incomplete: () => {},
  handedOver: () => {},
})

async function understood(server: Server, parts: readonly Buffer[]): Promise<Understood> {
  const connection = new Connection()
  const seen: string[] = []
  requests.set(connection, seen)
  server.emit('connection', connection)
  for (const part of parts) {
    if (!connection.destroyed) connection.push(part)
    await turn()
  }
  // Until nothing more happens.
  for (let still = 0, before = ''; still < 8 && !connection.isClosed;) {
    await turn()
    const now = `${connection.written.length} ${seen.join()}`
    still = now === before ? still + 1 : 0
    before = now
  }
  connection.destroy()
  return { requests: seen, responses: connection.written.replaceAll(/^Date: .*\r\n/gm, '') }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

const line = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.constantFrom(
      'GET / HTTP/1.1',
      'POST /a?b=c%20d HTTP/1.1',
      'HEAD /x HTTP/1.1',
      'PUT /é HTTP/1.1',
      'DELETE /a HTTP/1.1',
      'PATCH /;p HTTP/1.1',
    ),
  },
  fc.constantFrom(
    'GET  / HTTP/1.1',
    'GET / HTTP/1.0',
    'get / HTTP/1.1',
    'GET /\tHTTP/1.1',
    'OPTIONS * HTTP/1.1',
    'GET http://h/ HTTP/1.1',
    'GET / HTTP/1.1 ',
    ' GET / HTTP/1.1',
    'GET /#f HTTP/1.1',
    'GET /"<>\\^`{|} HTTP/1.1',
    'GET / HTTP/2.0',
    'PRI * HTTP/2.0',
    'GET /\x7f HTTP/1.1',
    'QUERY / HTTP/1.1',
    '',
  ),
)
const name = fc.oneof(
  fc.constantFrom(
    'Host',
    'host',
    'Content-Length',
    'content-length',
    'Transfer-Encoding',
    'Connection',
    'Expect',
    'Upgrade',
    'TE',
    'Cookie',
    'Accept',
    'X-A',
    '__proto__',
    'constructor',
    'Set-Cookie',
    'User-Agent',
    'Referer',
    'X-Forwarded-For',
    'Keep-Alive',
    'Trailer',
    'Content-Type',
  ),
  fc.constantFrom('', ' X', 'X ', 'X\t', 'X Y', 'X(', 'é', 'X\0', 'Content_Length', 'X\r'),
)
const value = fc.oneof(
  fc.constantFrom(
    'h',
    'h:80',
    '0',
    '1',
    '5',
    '05',
    '+5',
    '5 ',
    ' 5',
    '5, 5',
    '-1',
    '0x5',
    '1e1',
    '99999999999999999',
    'chunked',
    'identity',
    'gzip, chunked',
    'close',
    'keep-alive',
    'Keep-Alive',
    'close, TE',
    'upgrade',
    'websocket',
    '100-continue',
    'a=b',
    '',
    ' ',
    '\t x \t',
    'é\xa0',
    'a\0b',
    'a\nb',
    'a\rb',
    'a\r\n b',
    'a\x7f',
    'trailers',
  ),
  fc.string({ maxLength: 12, unit: 'binary-ascii' }),
)
const colon = fc.oneof({ weight: 8, arbitrary: fc.constantFrom(': ', ':') }, fc.constantFrom(' :', ':\t', '', '::'))
const lineEnd = fc.oneof(
  { weight: 30, arbitrary: fc.constant('\r\n') },
  fc.constantFrom('\n', '\r', '\r\r\n', '\n\r', '\r\n\r\n'),
)
const field = fc.tuple(name, colon, value, lineEnd).map((parts) => parts.join(''))
const wellFormed = fc
  .record({
    line: fc.constantFrom('GET / HTTP/1.1', 'POST /a?b=c%20d HTTP/1.1', 'HEAD /x HTTP/1.1', 'DELETE /a HTTP/1.1'),
    fields: fc.array(
      fc.constantFrom(
        'Accept: */*',
        'X-A: b',
        'x-a: c',
        'Cookie: a=b',
        'Cookie: c=d',
        'Connection: keep-alive',
        'Connection: close',
        'User-Agent:  x y\t',
        'Accept:é\xa0',
        'X-Empty:',
      ),
      { maxLength: 5 },
    ),
    content: fc.option(fc.string({ maxLength: 9, unit: 'binary-ascii' })),
  })
  .map(
    ({ line, fields, content }) =>
      `${[line, 'Host: h', ...fields, ...(content === null ? [] : [`Content-Length: ${content.length}`])].join('\r\n')}\r\n\r\n${content ?? ''}`,
  )
const mutated = fc
  .tuple(
    line,
    lineEnd,
    fc.array(field, { maxLength: 6 }),
    fc.boolean(),
    lineEnd,
    fc.string({ maxLength: 12, unit: 'binary-ascii' }),
  )
  .map(
    ([first, end, fields, hasHost, last, content]) =>
      `${first}${end}${hasHost ? 'Host: h\r\n' : ''}${fields.join('')}${last}${content}`,
  )
const bytes = fc
  .array(fc.oneof({ weight: 3, arbitrary: wellFormed }, mutated), { minLength: 1, maxLength: 4 })
  .map((texts) => Buffer.from(texts.join(''), 'latin1'))
const cuts = fc.array(fc.nat(), { maxLength: 4 })

function cut(all: Buffer, places: readonly number[]): Buffer[] {
  const at = [0, ...new Set(places.map((place) => place % (all.length + 1)))].sort((a, b) => a - b)
  return at.map((from, index) => all.subarray(from, at[index + 1] ?? all.length)).filter((part) => part.length > 0)
}

test('Bytes in any segmentation are the same requests as for the parser of Node.js', async () => {
  await fc.assert(
    fc.asyncProperty(bytes, cuts, async (all, places) => {
      const parts = cut(all, places)
      const [expected, actual] = await Promise.all([understood(reference, parts), understood(tested, parts)])
      assert.deepEqual(actual, expected)
    }),
    { numRuns: runs },
  )
  assert.ok(plain > runs / 2, `only ${plain} requests were plain`)
})
