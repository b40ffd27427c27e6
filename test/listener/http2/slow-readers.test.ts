// Slow: 6 s, hundreds of clients read a byte at a time
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { flags, frame, RawHttp2, requestFields, types, uint32 } from '../../support/http2-frames.ts'
import { request as send, startHttp2World } from '../../support/http2.ts'
import { until } from '../../support/until.ts'

const budgetBytes = 8 * 1024 * 1024
const part = Buffer.alloc(64 * 1024, 'x')
const connections = 300
/** SETTINGS_INITIAL_WINDOW_SIZE is 0 or 1. */
const windowOf = (bytes: 0 | 1) => Buffer.from([0, 4, 0, 0, 0, bytes])

/** A request whose response has no end. */
const request = (stream: number) =>
  frame(types.headers, flags.endHeaders | flags.endStream, stream, requestFields('/public/endless'))

const statusOf = (url: string) =>
  fetch(url).then(
    ({ status }) => status,
    () => undefined,
  )

/** Clients that open no window, or one of a byte after each byte. */
function openReaders(t: TestContext, port: number, window: 0 | 1): RawHttp2[] {
  return Array.from({ length: connections }, () => {
    const client = new RawHttp2(t, port, windowOf(window))
    if (window === 1)
      client.socket.on('data', () => {
        const data = client.frames.splice(0).filter(({ type }) => type === types.data)
        for (const { stream } of data) client.send(frame(types.windowUpdate, 0, stream, uint32(1)))
      })
    return client.send(...Array.from({ length: 4 }, (_, at) => request(at * 2 + 1)))
  })
}

for (const [what, window] of [
  ['open no window', 0],
  ['read a byte at a time', 1],
] as const)
  test(`${connections} HTTP/2 connections that ${what} do not fill the memory, and others are served`, async (t) => {
    const world = await startHttp2World(
      t,
      (req, res) => {
        if (req.url !== '/public/endless') return res.end('here')
        const write = () => {
          while (!res.destroyed && res.write(part));
        }
        res.on('drain', write)
        return write()
      },
      {
        ...{ h2c: true, budgetBytes },
        settings: 'limits: { per_client: { connections: 10000 }, connections: 20000 }',
        upstreamSettings: 'max_connections: 5000\n    rules: [{ path: /public/*, access: public }]',
      },
    )
    const [replica] = world.replicas
    const jane = world.browser()
    await jane.get(`${world.url}/echo`)
    // The gateway may close new connections while it closes many.
    const [connection, headers] = [world.connect(), { ':path': '/echo', cookie: jane.cookieHeader }]
    const visit = async () => (await send(connection, headers)).status
    assert.equal(await visit(), 200)

    const readers = openReaders(t, Number(new URL(world.url).port), window)
    const statuses = new Set<number>()
    await until('connections are closed', async () => {
      statuses.add(await visit())
      return readers.some(({ socket }) => socket.closed)
    })
    await until('strangers are served, and the budget is kept', async () => {
      statuses.add(await visit())
      const held = Number(replica?.metrics.read('gatehouse_buffered_bytes')?.cells[0]?.values[0])
      return held <= budgetBytes && (await statusOf(`${world.url}/public/x`)) === 200
    })

    assert.deepEqual([...statuses], [200])
    assert.ok(replica?.log.some(({ fields }) => fields['limit'] === 'memory'))
    for (const { socket } of readers) socket.destroy()
  })
