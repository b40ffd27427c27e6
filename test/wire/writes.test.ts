import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import fc from 'fast-check'
import { chunk, writeLent, writeWrapped } from '../../src/wire/writes.ts'
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

async function read(client: Socket, length: number): Promise<string> {
  let text = ''
  client.on('data', (bytes) => (text += bytes.toString('latin1'))).resume()
  await until('the client has read everything', () => text.length >= length)
  return text
}

test('Bytes leave together with the text around them, each character of which is a byte', async (t) => {
  const { socket, client } = await connected(t)

  writeWrapped(socket, chunk('head \xff\r\n\r\n', Buffer.from('twelve bytes'), '0\r\n\r\n'))

  const expected = 'head \xff\r\n\r\nc\r\ntwelve bytes\r\n0\r\n\r\n'
  assert.equal(await read(client, expected.length), expected)
})

test('Bytes that the operating system does not take at once are kept when their memory is used again', async (t) => {
  const { socket, client } = await connected(t)
  const memory = Buffer.alloc(16 * 1024)
  const sent: string[] = []
  for (let at = 0; socket.writableLength === 0 || at < 2; at++) {
    memory.fill(`${at}:`)
    sent.push(`${memory.toString('latin1')}|`)
    writeWrapped(socket, { before: '', bytes: memory, after: '|' })
  }
  memory.fill('used again')

  const expected = sent.join('')
  assert.equal(await read(client, expected.length), expected)
})

const kinds = ['wrapped', 'lent', 'text', 'read', 'stop'] as const
const step = fc.record({
  kind: fc.constantFrom(...kinds),
  length: fc.oneof(fc.nat({ max: 300 }), fc.nat({ max: 70_000 })),
})

test('Texts and bytes arrive in their order, and each is reported once, in its order', async (t) => {
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
    const writes: number[] = []
    const reported: number[] = []
    for (const [at, { kind, length }] of steps.entries()) {
      if (kind === 'read') client.resume()
      else if (kind === 'stop') client.pause()
      else {
        const text = `${at}:`.repeat(length).slice(0, length)
        const wrapped = {
          before: text.slice(0, 7),
          bytes: Buffer.from(text.slice(7, -7)),
          after: text.slice(7).slice(-7),
        }
        const written = () => reported.push(at)
        writes.push(at)
        sent.update(text)
        sentBytes += length
        if (kind === 'text') socket.write(text, 'latin1', written)
        else if (kind === 'lent') writeLent(socket, wrapped, written)
        else {
          writeWrapped(socket, wrapped, written)
          wrapped.bytes.fill('used again')
        }
      }
      if (length % 3 === 0) await new Promise(setImmediate)
    }
    client.resume()
    await until('all was read and reported', () => receivedBytes >= sentBytes && reported.length >= writes.length)

    assert.equal(received.digest('hex'), sent.digest('hex'))
    assert.deepEqual(reported, writes)
    client.destroy()
    socket.destroy()
  })
  await fc.assert(property, { numRuns: searchFor(300, 30) })
})
