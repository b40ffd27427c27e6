// Slow: 12 s, thousands of clients in little memory
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { httpUpstream, RawClient } from '../proxy/support.ts'
import { until } from '../support/until.ts'
import { startWorld } from '../support/world.ts'

const budgetBytes = 4 * 1024 * 1024
const part = Buffer.alloc(64 * 1024, 'x')

/** An application whose response at `/endless` has no end. */
function startApplication(t: TestContext) {
  return httpUpstream(t, (req, res) => {
    if (req.url !== '/endless') return void res.end('here')
    const write = () => {
      while (!res.destroyed && res.write(part));
    }
    res.on('drain', write)
    write()
  })
}

async function startGateway(t: TestContext) {
  const { port } = await startApplication(t)
  const world = await startWorld(t, {
    budgetBytes,
    upstream: new URL(`http://127.0.0.1:${port}`),
    upstreamSettings: `max_connections: 400
    rules: [{ path: /orders, access: signed_in }, { path: /*, access: public }]`,
  })
  const open = () => new RawClient(t, Number(new URL(world.url).port))
  /** Reads a response without end, and keeps only its length. */
  const read = () => {
    const client = open()
    const reader = { client, bytes: 0 }
    client.socket.removeAllListeners('data').on('data', (chunk: Buffer) => (reader.bytes += chunk.length))
    client.send('GET /endless HTTP/1.1\r\nHost: h\r\n\r\n')
    return reader
  }
  return { world, open, read, statusOf: async (path: string) => (await fetch(`${world.url}${path}`)).status }
}

test('When responses exceed the budget, only clients that do not read are closed', async (t) => {
  const { world, open, read, statusOf } = await startGateway(t)
  const [replica] = world.replicas
  const reader = read()
  const silent = Array.from({ length: 90 }, () => {
    const client = open()
    client.socket.pause()
    return client.send('GET /endless HTTP/1.1\r\nHost: h\r\n\r\n')
  })

  const limits = () => replica?.log.filter(({ fields }) => fields['limit'] === 'memory') ?? []
  await until('connections are closed', () => limits().length > 0)
  await until('requests are served again', async () => (await statusOf('/')) === 200)
  const seen = reader.bytes
  await until('the client that reads still gets its response', () => reader.bytes > seen + part.length * 100)
  assert.equal(reader.client.socket.destroyed, false)
  const gauge = replica?.metrics.collect().find(({ name }) => name === 'gatehouse_buffered_bytes')
  assert.ok((gauge?.cells[0]?.values[0] ?? Infinity) <= budgetBytes)
  for (const client of silent) client.socket.destroy()
})

test('While responses exceed the budget, strangers get 503, signed-in people are served and endpoints respond', async (t) => {
  const { world, read, statusOf } = await startGateway(t)
  const jane = world.browser()
  assert.equal((await jane.get(`${world.url}/orders`)).status, 200)

  const readers = Array.from({ length: 60 }, read)
  await until('requests of strangers are rejected', async () => (await statusOf('/')) === 503)

  assert.equal((await jane.fetch(`${world.url}/orders`)).status, 200)
  assert.equal(await statusOf('/.gatehouse/session'), 401)
  const refused = world.replicas[0]?.log.filter(({ message }) => message === 'request.refused') ?? []
  assert.deepEqual(new Set(refused.map(({ fields }) => fields['code'])), new Set(['ERR_OVERLOADED']))
  for (const { client } of readers) client.socket.destroy()
})
