import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { connect as connectTls, createServer as createTlsServer } from 'node:tls'
import fc from 'fast-check'
import { writeText, writeWrapped } from '../../src/wire/direct-writes.ts'
import { buildModule } from '../support/bundle.ts'
import { issueCertificates } from '../support/certificates.ts'
import { searchFor } from '../support/searches.ts'
import { until } from '../support/until.ts'

/** A socket of a server, and the client that is connected to it. The client does not read yet. */
async function connected(t: TestContext): Promise<{ readonly socket: Socket; readonly client: Socket }> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connect((server.address() as { port: number }).port, '127.0.0.1').on('error', () => {})
  const [socket] = (await once(server, 'connection')) as [Socket]
  t.after(() => {
    client.destroy()
    socket.destroy()
    server.close()
  })
  return { socket: socket.on('error', () => {}), client: client.pause() }
}

/** Counts the texts that pass through the stream of a socket. */
function countStreamWrites(socket: Socket): () => number {
  let count = 0
  const { write } = socket
  socket.write = ((...values: Parameters<Socket['write']>) => {
    count += 1
    return write.apply(socket, values)
  }) as Socket['write']
  return () => count
}

/** The first text that a process writes shows the classes of Node.js. */
async function writeFirstText(t: TestContext): Promise<void> {
  const { socket } = await connected(t)
  await new Promise((resolve) => writeText(socket, 'first', resolve))
}

/** Writes until the operating system takes no more. Returns the written texts. */
function fill(socket: Socket): string[] {
  const texts: string[] = []
  while (socket.writableLength === 0) {
    const text = `${texts.length}:`.padEnd(16 * 1024, String(texts.length))
    texts.push(text)
    writeText(socket, text)
  }
  return texts
}

async function read(client: Socket, length: number): Promise<string> {
  let text = ''
  client.on('data', (bytes) => (text += bytes.toString('latin1'))).resume()
  await until('the client has read everything', () => text.length >= length)
  return text
}

test('A short text is passed to the operating system without the stream of its socket', async (t) => {
  await writeFirstText(t)
  const { socket, client } = await connected(t)
  const streamWrites = countStreamWrites(socket)
  const written = await new Promise((resolve) => writeText(socket, 'a short text \xff', resolve))

  assert.equal(streamWrites(), 0)
  assert.equal(written, null)
  assert.equal(socket.bytesWritten, 14)
  assert.equal(await read(client, 14), 'a short text \xff')
})

test('Bytes leave together with the text around them, without the stream of their socket', async (t) => {
  await writeFirstText(t)
  const { socket, client } = await connected(t)
  const streamWrites = countStreamWrites(socket)
  const bytes = Buffer.from('bytes')
  const written = await new Promise((resolve) =>
    writeWrapped(socket, { before: 'head \xff, ', bytes, after: ', tail' }, resolve),
  )

  assert.equal(streamWrites(), 0)
  assert.equal(written, null)
  assert.equal(await read(client, 19), 'head \xff, bytes, tail')
})

test('Bytes that the operating system does not take at once are kept when their memory is used again', async (t) => {
  await writeFirstText(t)
  const { socket, client } = await connected(t)
  const memory = Buffer.alloc(16 * 1024)
  const sent: string[] = []
  for (let at = 0; socket.writableLength === 0; at++) {
    memory.fill(`${at}:`)
    sent.push(`${memory.toString('latin1')}|`)
    writeWrapped(socket, { before: '', bytes: memory, after: '|' })
  }
  memory.fill('not written yet')
  sent.push(memory.toString('latin1'))
  writeWrapped(socket, { before: '', bytes: memory, after: '' })
  memory.fill('used again')
  const other = await connected(t)
  for (let count = 0; count < 3; count++) writeWrapped(other.socket, { before: '', bytes: memory, after: '' })

  const expected = sent.join('')
  assert.equal(await read(client, expected.length), expected)
})

test('A first text that is never written does not keep later ones from being passed on directly', async (t) => {
  const { writeText: write } = (await import(buildModule('src/wire/direct-writes.ts'))) as {
    readonly writeText: typeof writeText
  }
  const [closed, { socket, client }] = await Promise.all([connected(t), connected(t)])
  closed.socket.cork()
  write(closed.socket, 'never written')
  closed.socket.destroy()

  write(socket, 'shown by the stream, ')
  const streamWrites = countStreamWrites(socket)
  write(socket, 'passed on directly')
  assert.equal(streamWrites(), 0)
  assert.equal(await read(client, 39), 'shown by the stream, passed on directly')
})

test('The first write of a process shows how to pass on later ones, also when it has bytes', async (t) => {
  const { writeWrapped: write } = (await import(buildModule('src/wire/direct-writes.ts'))) as {
    readonly writeWrapped: typeof writeWrapped
  }
  const { socket, client } = await connected(t)
  const bytes = Buffer.from('bytes')

  write(socket, { before: 'by the stream: ', bytes, after: ', ' })
  const streamWrites = countStreamWrites(socket)
  write(socket, { before: 'directly: ', bytes, after: '' })
  assert.equal(streamWrites(), 0)
  assert.equal(await read(client, 37), 'by the stream: bytes, directly: bytes')
})

test('An empty text is written by the stream, because it would not count as waiting', async (t) => {
  await writeFirstText(t)
  const { socket } = await connected(t)
  const streamWrites = countStreamWrites(socket)
  const written = await new Promise((resolve) => writeText(socket, '', resolve))

  assert.equal(streamWrites(), 1)
  assert.ok(!(written instanceof Error))
})

test('A text counts as waiting until the client has taken it', async (t) => {
  await writeFirstText(t)
  const { socket, client } = await connected(t)
  const texts = fill(socket)
  assert.equal(socket.writableLength, 16 * 1024)

  let isWritten = false
  writeText(socket, 'the last text', () => (isWritten = true))
  assert.equal(socket.writableLength, 16 * 1024 + 13)
  const expected = `${texts.join('')}the last text`
  assert.equal(await read(client, expected.length), expected)
  await until('the callback was called', () => isWritten)
  assert.equal(socket.writableLength, 0)

  const streamWrites = countStreamWrites(socket)
  writeText(socket, 'and without the stream again')
  assert.equal(streamWrites(), 0)
})

test('Texts that wait arrive before the end of the connection', async (t) => {
  await writeFirstText(t)
  const { socket, client } = await connected(t)
  const texts = fill(socket)
  socket.destroySoon()
  const ended = once(client, 'end')

  assert.equal(await read(client, texts.join('').length), texts.join(''))
  await ended
})

test('A text for a client that has reset the connection is reported like any failed write', async (t) => {
  await writeFirstText(t)
  const { socket, client } = await connected(t)
  // The reset stays unread, so the write is the first to notice it.
  socket.pause()
  client.resetAndDestroy()
  await once(client, 'close')
  const failed = once(socket, 'error') as Promise<[NodeJS.ErrnoException]>
  const reported = new Promise((resolve) => {
    writeText(socket, 'a text', resolve)
    if (!socket.destroyed) writeText(socket, 'another text')
  })
  const [error] = await failed

  assert.match(String(error.code), /^E(?:PIPE|CONNRESET)$/)
  assert.equal(error.syscall, 'write')
  await reported
  assert.ok(socket.destroyed)
})

test('A connection that is closed reports each text that was not taken, once', async (t) => {
  await writeFirstText(t)
  const { socket } = await connected(t)
  let reports = 0
  while (socket.writableLength === 0) {
    reports -= 1
    writeText(socket, 'x'.repeat(16 * 1024), () => (reports += 1))
  }
  reports -= 1
  writeText(socket, 'another text', () => (reports += 1))
  socket.destroy()
  await once(socket, 'close')

  assert.equal(reports, 0)
  const after = await new Promise((resolve) => writeText(socket, 'too late', resolve))
  assert.ok(after instanceof Error)
})

test('A text is written by the stream before the connection is open, while it is corked, and after its end', async (t) => {
  await writeFirstText(t)
  const server = createServer((socket) => socket.pipe(socket)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const socket = connect((server.address() as { port: number }).port, '127.0.0.1')
  t.after(() => socket.destroy())
  const streamWrites = countStreamWrites(socket)

  writeText(socket, 'while it connects, ')
  assert.equal(streamWrites(), 1)
  await once(socket, 'connect')
  await until('the first text is written', () => socket.writableLength === 0)
  socket.cork()
  writeText(socket, 'while it is corked')
  assert.equal(streamWrites(), 2)
  socket.uncork()
  assert.equal(await read(socket, 37), 'while it connects, while it is corked')
  socket.end()
  const error = once(socket, 'error')
  writeText(socket, 'after its end')
  assert.equal(((await error) as [NodeJS.ErrnoException])[0].code, 'ERR_STREAM_WRITE_AFTER_END')
})

test('Over TLS, each text passes through the stream', async (t) => {
  await writeFirstText(t)
  const files = issueCertificates().server
  const [key, cert] = [readFileSync(files.key), readFileSync(files.cert)]
  const server = createTlsServer({ key, cert }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connectTls((server.address() as { port: number }).port, '127.0.0.1', { rejectUnauthorized: false })
  const [socket] = (await once(server, 'secureConnection')) as [Socket]
  t.after(() => {
    client.destroy()
    socket.destroy()
    server.close()
  })
  const streamWrites = countStreamWrites(socket)
  writeText(socket, 'a secret')

  assert.equal(streamWrites(), 1)
  assert.equal(await read(client, 8), 'a secret')
})

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('text' as const),
      length: fc.oneof(fc.nat({ max: 300 }), fc.nat({ max: 40_000 })),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('wrapped' as const),
      length: fc.oneof(fc.nat({ max: 300 }), fc.nat({ max: 40_000 })),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('bytes' as const), length: fc.nat({ max: 70_000 }) }) },
  fc.record({ kind: fc.constantFrom('read' as const, 'stop' as const, 'cork' as const), length: fc.nat({ max: 3 }) }),
)

test('Texts and bytes arrive in their order, and each is reported once, in the order of its kind', async (t) => {
  await writeFirstText(t)
  const property = fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
    const { socket, client } = await connected(t)
    const sent = createHash('sha256')
    const received = createHash('sha256')
    let [sentBytes, receivedBytes] = [0, 0]
    client.on('data', (bytes) => {
      received.update(bytes)
      receivedBytes += bytes.length
    })
    client.pause()
    const reported: number[] = []
    const streamWrites = countStreamWrites(socket)
    const byStream = new Set<number>()
    for (const [at, { kind, length }] of steps.entries()) {
      const text = `${at}:`.repeat(length).slice(0, length)
      if (kind === 'read') client.resume()
      else if (kind === 'stop') client.pause()
      else if (kind === 'cork') {
        socket.cork()
        process.nextTick(() => socket.uncork())
      } else {
        sent.update(text)
        sentBytes += length
        const written = () => reported.push(at)
        const before = streamWrites()
        if (kind === 'text') writeText(socket, text, written)
        else if (kind === 'wrapped') {
          const bytes = Buffer.from(text.slice(7, -7))
          writeWrapped(socket, { before: text.slice(0, 7), bytes, after: text.slice(7).slice(-7) }, written)
          bytes.fill('used again')
        } else socket.write(Buffer.from(text), written)
        if (streamWrites() > before) byStream.add(at)
      }
      if (length % 3 === 0) await new Promise(setImmediate)
    }
    client.resume()
    const writes = steps.flatMap(({ kind }, at) =>
      kind === 'text' || kind === 'wrapped' || kind === 'bytes' ? [at] : [],
    )
    await until('all was read and reported', () => receivedBytes >= sentBytes && reported.length >= writes.length)

    assert.equal(received.digest('hex'), sent.digest('hex'))
    // The stream of the socket reports its writes earlier or later than those that bypass it.
    const inParts = (all: readonly number[]) => [
      all.filter((at) => byStream.has(at)),
      all.filter((at) => !byStream.has(at)),
    ]
    assert.deepEqual(inParts(reported), inParts(writes))
    client.destroy()
    socket.destroy()
  })
  await fc.assert(property, { numRuns: searchFor(300, 30) })
})
