import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { Agent, request, type IncomingMessage, type RequestOptions } from 'node:http'
import { request as requestOverTls } from 'node:https'
import type { Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import fc from 'fast-check'
import { ReadBuffer } from '../../src/wire/read-buffers.ts'
import { fetchWhole, rawUpstream, startGateway } from '../proxy/support.ts'
import { issueCertificates } from '../support/certificates.ts'
import { searchFor } from '../support/searches.ts'
import { until } from '../support/until.ts'

/** Responds as the path says, and counts connections. */
async function countingUpstream(t: TestContext, response: (socket: Socket, path: string) => void) {
  const sockets = new Set<Socket>()
  const port = await rawUpstream(t, (socket, head) => {
    sockets.add(socket)
    response(socket, head.split(' ', 2)[1] ?? '')
  })
  const openSockets = () => [...sockets].filter(({ destroyed }) => !destroyed)
  return { port, connections: () => sockets.size, openSockets }
}

const sized = (content: string) => `HTTP/1.1 200 OK\r\nContent-Length: ${content.length}\r\n\r\n${content}`

test('Consecutive requests share a connection', async (t) => {
  const upstream = await countingUpstream(t, (socket, path) => socket.write(sized(path)))
  const { origin } = await startGateway(t, upstream.port)

  for (const path of ['/1', '/2', '/3']) assert.equal((await fetchWhole(origin, { path })).body, path)

  assert.equal(upstream.connections(), 1)
})

test('Bytes after a response are not the response to the next request', async (t) => {
  const upstream = await countingUpstream(t, (socket, path) =>
    socket.write(sized(path) + (path === '/first' ? sized('poison') : '')),
  )
  const { origin } = await startGateway(t, upstream.port)

  assert.equal((await fetchWhole(origin, { path: '/first' })).body, '/first')
  assert.equal((await fetchWhole(origin, { path: '/second' })).body, '/second')
  assert.equal(upstream.connections(), 2)
})

test('Bytes on an idle connection are not the response to the next request', async (t) => {
  const upstream = await countingUpstream(t, (socket, path) => socket.write(sized(path)))
  const { origin } = await startGateway(t, upstream.port)
  await fetchWhole(origin, { path: '/first' })

  upstream.openSockets()[0]?.write(sized('poison'))

  await until('the connection is closed', () => upstream.openSockets().length === 0)
  assert.equal((await fetchWhole(origin, { path: '/second' })).body, '/second')
})

test('After a response to an incomplete request the connection is not reused', async (t) => {
  const upstream = await countingUpstream(t, (socket, path) => socket.write(sized(path)))
  const { origin } = await startGateway(t, upstream.port, { upstream: { maxConnections: 1 } })
  const upload = request(`${origin}/upload`, { method: 'POST', headers: { 'content-length': 10 }, agent: false })
  upload.on('error', () => {})
  upload.write('half')

  const [early] = (await once(upload, 'response')) as [IncomingMessage]
  assert.equal(String(await early.toArray()), '/upload')
  assert.equal((await fetchWhole(origin, { path: '/next' })).body, '/next')
  assert.equal(upstream.connections(), 2)
})

test('A connection that was paused by a slow client serves the next request', async (t) => {
  const large = 'x'.repeat(8 * 1024 * 1024)
  const upstream = await countingUpstream(t, (socket, path) => socket.write(sized(path === '/large' ? large : path)))
  const { origin, server } = await startGateway(t, upstream.port, { upstream: { maxConnections: 1 } })
  const agent = new Agent({ keepAlive: true })
  t.after(() => agent.destroy())
  const isPaused = new Promise<void>((resolve) =>
    server.once('request', (_, res) => void until('the client is behind', () => res.writableNeedDrain).then(resolve)),
  )
  const slow = request(`${origin}/large`, { agent }).end()
  const [response] = (await once(slow, 'response')) as [IncomingMessage]
  await isPaused

  let bytes = 0
  for await (const part of response) bytes += (part as Buffer).length

  assert.equal(bytes, large.length)
  for (const path of ['/2', '/3']) assert.equal((await fetchWhole(origin, { path })).body, path)
  assert.equal(upstream.connections(), 1)
})

test('A connection is not reused after the keep-alive timeout of the upstream', async (t) => {
  const upstream = await countingUpstream(t, (socket, path) =>
    socket.write(`HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1\r\nContent-Length: ${path.length}\r\n\r\n${path}`),
  )
  const { origin } = await startGateway(t, upstream.port)

  for (const path of ['/1', '/2']) assert.equal((await fetchWhole(origin, { path })).body, path)

  assert.equal(upstream.connections(), 2)
})

test('Requests wait when all connections are in use, and each gets its own response', async (t) => {
  const upstream = await countingUpstream(t, (socket, path) => setImmediate(() => socket.write(sized(path))))
  const { origin } = await startGateway(t, upstream.port, { upstream: { maxConnections: 3 } })
  const paths = Array.from({ length: 50 }, (_, index) => `/${index}`)

  const responses = await Promise.all(paths.map((path) => fetchWhole(origin, { path })))

  assert.deepEqual(
    responses.map(({ body }) => body),
    paths,
  )
  assert.ok(upstream.connections() <= 3)
})

test('Aborted requests free their places while they wait and during the response', async (t) => {
  const upstream = await countingUpstream(t, (socket, path) => {
    if (path === '/begun') socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbegun')
    else if (path !== '/never') socket.write(sized(path))
  })
  const { origin, server } = await startGateway(t, upstream.port, { upstream: { maxConnections: 4 } })
  let arrived = 0
  server.on('request', () => (arrived += 1)).on('upgrade', () => (arrived += 1))
  const webSocket = { connection: 'Upgrade', upgrade: 'websocket' }

  for (let round = 1; round <= 3; round += 1) {
    const given = Array.from({ length: 30 }, (_, at) => {
      const headers = at % 3 === 2 ? webSocket : {}
      const asked = request(`${origin}${at % 3 === 0 ? '/begun' : '/never'}`, { agent: false, headers })
      return asked.on('error', () => {}).end()
    })
    await until('all have arrived', () => arrived === round * 30)
    for (const asked of given) asked.destroy()
  }

  const paths = Array.from({ length: 12 }, (_, at) => `/${at}`)
  const responses = await Promise.all(paths.map((path) => fetchWhole(origin, { path })))
  assert.deepEqual(
    responses.map(({ body }) => body),
    paths,
  )
})

// Correct and faulty behaviours of an upstream. In any mix, no client gets a byte of the response
// to another client.
const behaviours: Readonly<Record<string, (socket: Socket, content: string) => void>> = {
  sized: (socket, content) => socket.write(sized(content)),
  chunked: (socket, content) => socket.write(chunked(content) + '0\r\n\r\n'),
  trailers: (socket, content) => socket.write(chunked(content) + '0\r\nX-T: t\r\n\r\n'),
  inPieces: (socket, content) => {
    const text = sized(content)
    const cut = content.length % text.length
    socket.write(text.slice(0, cut), () => setImmediate(() => socket.write(text.slice(cut))))
  },
  surplus: (socket, content) => socket.write(sized(content) + sized('poison')),
  closing: (socket, content) => socket.end(`HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n${content}`),
  older: (socket, content) => socket.end(`HTTP/1.0 200 OK\r\n\r\n${content}`),
  short: (socket, content) => socket.end(`HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n${content}`),
  reset: (socket) => socket.resetAndDestroy(),
  hinted: (socket, content) => socket.write(`HTTP/1.1 103 Early Hints\r\n\r\n${sized(content)}`),
  late: (socket, content) => setTimeout(() => socket.write(sized(content)), 5),
}

function chunked(content: string): string {
  return `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${content.length.toString(16)}\r\n${content}\r\n`
}

test('No client gets a byte of the response to another client, whatever upstream and clients do', async (t) => {
  const upstream = await countingUpstream(t, (socket, path) => {
    const [, behaviour = '', id = '', times = '1'] = path.split('/')
    behaviours[behaviour]?.(socket, `<${id}>`.repeat(Number(times)))
  })
  const { port } = await startGateway(t, upstream.port, { upstream: { maxConnections: 2, responseTimeoutMs: 2_000 } })
  let whole = 0
  const visit = fc.record({
    behaviour: fc.constantFrom(...Object.keys(behaviours)),
    times: fc.constantFrom(1, 1, 40, 20_000),
    method: fc.constantFrom('GET', 'GET', 'POST', 'HEAD'),
    /** The client closes its connection after this time in ms; -1: never. */
    leaves: fc.constantFrom(-1, -1, -1, 0, 1, 3),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(visit, { minLength: 2, maxLength: 12 }), async (visits) => {
      await Promise.all(
        visits.map(async ({ behaviour, times, method, leaves }, id) => {
          const sent = request({ port, method, path: `/${behaviour}/${id}/${times}`, agent: false })
          sent.on('error', () => {})
          sent.end(method === 'POST' ? 'content' : undefined)
          const leaving = leaves < 0 ? undefined : setTimeout(() => sent.destroy(), leaves)
          const response = await new Promise<IncomingMessage | undefined>((resolve) =>
            sent.once('response', resolve).once('close', () => resolve(undefined)),
          )
          let body = ''
          let isWhole = response !== undefined
          try {
            for await (const part of response ?? []) body += (part as Buffer).toString('latin1')
          } catch {
            isWhole = false
          }
          clearTimeout(leaving)
          if (response?.statusCode !== 200) return
          const expected = method === 'HEAD' ? '' : `<${id}>`.repeat(times)
          assert.ok(expected.startsWith(body), `${id} got ${body.slice(0, 100)}`)
          if (isWhole && behaviour !== 'short') assert.equal(body.length, expected.length)
          if (isWhole) whole += 1
        }),
      )
    }),
    { numRuns: searchFor(200) },
  )
  assert.ok(whole > searchFor(100), `${whole} complete responses`)
})

for (const scheme of ['http', 'https'])
  test(`No client gets a byte of another response from a shared read buffer, however slowly clients read, over ${scheme}`, async (t) => {
    const upstream = await countingUpstream(t, (socket, path) => {
      const [, kind, id = '', bytes] = path.split('/')
      const content = contentOf(id, Number(bytes))
      socket.write(kind === 'sized' ? sized(content) : `${chunked(content)}0\r\n\r\n`)
    })
    const tls = scheme === 'http' ? {} : { tls: certificates() }
    const { origin, server } = await startGateway(t, upstream.port, { upstream: { maxConnections: 4 }, ...tls })
    let whole = 0
    const visit = fc.record({
      kind: fc.constantFrom('sized', 'chunked'),
      bytes: fc.constantFrom(9_000, 50_000, 300_000, 2_000_000),
      /** The client closes its connection after this number of bytes. */
      leavesAt: fc.constantFrom(Infinity, Infinity, Infinity, 0, 200_000),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(visit, { minLength: 2, maxLength: 10 }), async (visits) => {
        const ask = async (kind: string, id: string, bytes: number) => {
          const options = { agent: false, rejectUnauthorized: false } as RequestOptions
          const sent = (scheme === 'http' ? request : requestOverTls)(`${origin}/${kind}/${id}/${bytes}`, options).end()
          return (await once(sent, 'response')) as [IncomingMessage]
        }
        const read = async (response: IncomingMessage, expected: string, leavesAt = Infinity) => {
          let got = 0
          for await (const part of response) {
            const text = (part as Buffer).toString('latin1')
            assert.ok(expected.startsWith(text, got), `got ${text.slice(0, 100)}`)
            got += text.length
            if (got >= leavesAt) return
          }
          assert.equal(got, expected.length)
          whole += 1
        }
        // More than the kernel buffers: a part waits in the gateway while other clients are served.
        const isBehind = new Promise<void>((resolve) =>
          server.once('request', (_, { socket }) => {
            let before = -1
            const stands = () => before === (before = socket?.bytesWritten ?? 0) && socket?.writableNeedDrain === true
            void until('the client is behind', stands).then(resolve)
          }),
        )
        const [slow] = await ask('sized', 'slow', 12_000_000)
        await isBehind
        await Promise.all(
          visits.map(async ({ kind, bytes, leavesAt }, at) => {
            const [response] = await ask(kind, String(at), bytes)
            await read(response, contentOf(String(at), bytes), leavesAt)
          }),
        )
        overwriteWhatIsFree()
        await read(slow, contentOf('slow', 12_000_000))
      }),
      // Overwriting the free memory shows the fault in each run, so a few runs suffice.
      { numRuns: searchFor(20, 5) },
    )
    assert.ok(whole > searchFor(30, 7), `${whole} complete responses`)
  })

function contentOf(id: string, bytes: number): string {
  return `<${id}>`.repeat(Math.ceil(bytes / (id.length + 2)))
}

/** Overwrites the memory, as responses to other clients would. */
function overwriteWhatIsFree(): void {
  const taken = [true, false].flatMap((isLarge) => Array.from({ length: 40 }, () => ReadBuffer.take(isLarge)))
  for (const buffer of taken) {
    buffer.memory.fill('!')
    buffer.giveBack()
  }
}

function certificates() {
  const { cert, key } = issueCertificates().server
  return { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') }
}
