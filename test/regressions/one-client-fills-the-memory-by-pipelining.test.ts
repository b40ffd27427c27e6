import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { test, type TestContext } from 'node:test'
import { httpUpstream, RawClient } from '../proxy/support.ts'
import { statusesIn } from '../support/raw-exchange.ts'
import { until } from '../support/until.ts'
import { startWorld, type World } from '../support/world.ts'

const upstreamSettings = 'rules: [{ path: /*, access: public }]'
const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: h\r\n\r\n`

async function startGateway(
  t: TestContext,
  respond: (req: IncomingMessage, res: ServerResponse) => void,
  budgetBytes?: number,
): Promise<{ world: World; port: number }> {
  const { port } = await httpUpstream(t, respond)
  const world = await startWorld(t, {
    upstream: new URL(`http://127.0.0.1:${port}`),
    upstreamSettings,
    ...(budgetBytes === undefined ? {} : { budgetBytes }),
  })
  return { world, port: Number(new URL(world.url).port) }
}

test('Pipelined requests are carried out one after the other, and their responses keep the order', async (t) => {
  let underWay = 0
  let most = 0
  const { port } = await startGateway(t, (req, res) => {
    most = Math.max(most, (underWay += 1))
    res.once('close', () => (underWay -= 1))
    req.resume().once('end', () => setImmediate(() => res.end(`[${req.method} ${req.url}]`)))
  })
  const client = new RawClient(t, port)
  const post = 'POST /post HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello'
  const chunked = 'POST /chunked HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n'
  client.send(get('/1') + post + get('/2') + chunked + get('/3').repeat(20) + get('/last'))

  const text = await client.until(/\[GET \/last\]/)
  const order = [...text.matchAll(/\[(\w+ \/\w+)\]/g)].map(([, request]) => request)
  assert.deepEqual(order, [
    'GET /1',
    'POST /post',
    'GET /2',
    'POST /chunked',
    ...Array<string>(20).fill('GET /3'),
    'GET /last',
  ])
  assert.equal(most, 1)
})

test('A client that pipelines without reading has few requests carried out, and the others wait unread', async (t) => {
  const asked: string[] = []
  const { port } = await startGateway(t, (req, res) => {
    asked.push(req.url ?? '')
    res.end('x'.repeat(1_000_000))
  })
  const client = new RawClient(t, port)
  client.socket.pause()
  client.send(get('/').repeat(1_400))
  await until('the first request has arrived', () => asked.length > 0)
  // The gateway serves another connection meanwhile.
  for (let count = 0; count < 20; count += 1)
    assert.equal((await fetch(`http://127.0.0.1:${port}/other`).then((response) => response.text())).length, 1_000_000)
  // As many as have their responses in the buffers of the operating system.
  const carriedOut = asked.filter((path) => path === '/').length
  assert.ok(carriedOut < 20, `${carriedOut} requests were carried out`)
})

test('A client that pipelines unusual requests without reading has few carried out, and one is refused', async (t) => {
  const asked: string[] = []
  const { world, port } = await startGateway(t, (req, res) => {
    asked.push(req.url ?? '')
    res.end('x'.repeat(1_000_000))
  })
  const client = new RawClient(t, port)
  client.socket.pause()
  client.send(get('/').replace('Host: h', 'Host: h\r\nTE: trailers').repeat(1_000))
  await until('it has its line', () =>
    Boolean(world.replicas[0]?.log.some(({ fields }) => fields['limit'] === 'pipelined requests')),
  )
  // The gateway serves another connection meanwhile.
  for (let count = 0; count < 20; count += 1)
    assert.equal((await fetch(`http://127.0.0.1:${port}/other`).then((response) => response.text())).length, 1_000_000)
  const carriedOut = asked.filter((path) => path === '/').length
  assert.ok(carriedOut < 20, `${carriedOut} requests were carried out`)
  client.socket.resume()
  assert.deepEqual(statusesIn(await client.untilClosed()), [...Array<number>(65).fill(200), 503])
})

test('Waiting requests end with their connection, and reach no application', async (t) => {
  const asked: string[] = []
  let first: ServerResponse | undefined
  const { port } = await startGateway(t, (req, res) => {
    asked.push(req.url ?? '')
    first = res
  })
  const client = new RawClient(t, port).send(get('/1') + get('/2') + get('/3'))
  await until('the first request has arrived', () => first !== undefined)
  const gone = once(first as ServerResponse, 'close')
  client.socket.destroy()
  await gone
  const probe = new RawClient(t, port).send(get('/probe'))
  await until('another connection is served', () => asked.includes('/probe'))
  probe.socket.destroy()
  assert.deepEqual(asked, ['/1', '/probe'])
})

test('Only a few requests with large heads may wait', async (t) => {
  const { world, port } = await startGateway(t, () => {}, 16 * 1024 * 1024)
  const fields = Array.from({ length: 90 }, (_, index) => `X-${index}: ${'a'.repeat(300)}\r\n`).join('')
  const large = get('/').replace('\r\n\r\n', `\r\n${fields}\r\n`)
  // Together the requests exceed 16 MiB.
  for (let count = 0; count < 12; count += 1) {
    const client = connect(port, '127.0.0.1').on('error', () => {})
    client.write(large.repeat(60))
    t.after(() => client.destroy())
  }
  await until('the gateway has closed a connection', () =>
    Boolean(world.replicas[0]?.log.some(({ fields }) => fields['limit'] === 'memory')),
  )
})
