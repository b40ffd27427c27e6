import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { httpUpstream, RawClient } from '../../proxy/support.ts'
import { statusesIn } from '../../support/raw-exchange.ts'
import { until } from '../../support/until.ts'
import { startWorld } from '../../support/world.ts'
import { startFront } from './front.ts'

const head = (line: string, ...fields: readonly string[]) =>
  [`${line} HTTP/1.1`, 'Host: h', ...fields, '', ''].join('\r\n')
const get = (path: string, ...fields: readonly string[]) => head(`GET ${path}`, ...fields)

/** A gateway in front of an application that says which requests are under way. */
async function start(t: TestContext) {
  const asked: string[] = []
  const underWay = new Set<string>()
  const { port } = await httpUpstream(t, (req, res) => {
    const url = String(req.url)
    asked.push(url)
    underWay.add(url)
    res.once('close', () => underWay.delete(url))
    req.resume()
    if (url !== '/held') res.end(`[${url}]`)
  })
  const world = await startWorld(t, {
    upstream: new URL(`http://127.0.0.1:${port}`),
    upstreamSettings: 'rules: [{ path: /*, access: public }]',
    settings: 'limits: { headers_timeout: 1s }',
  })
  const gateway = Number(new URL(world.url).port)
  const access = () => world.replicas[0]?.access ?? []
  return { asked, underWay, access, client: () => new RawClient(t, gateway) }
}

test('A request is not carried out after its client got 408', async (t) => {
  const { client, access } = await start(t)
  const slow = client().send('GET /.gatehouse/session HTTP/1.1\r\n')
  await slow.until(/ 408 /)
  slow.send('Host: h\r\n\r\n')
  assert.deepEqual(statusesIn(await slow.untilClosed()), [408])
  await client().send(get('/after', 'Connection: close')).untilClosed()
  assert.deepEqual(
    access().map(({ path }) => path),
    ['/after'],
  )
})

test('A client that ends in the middle of a head gets 400', async (t) => {
  const { client } = await start(t)
  for (const sent of ['GET /last HTTP/1.1\r\nHo', `${get('/1')}GET /last HTTP/1.1\r\nHo`]) {
    const one = client()
    one.socket.end(sent)
    assert.equal(statusesIn(await one.untilClosed()).at(-1), 400)
  }
})

test('A request whose content never arrives reaches no application, also behind another request', async (t) => {
  const { client, asked } = await start(t)
  const one = client()
  one.socket.end(`${get('/1')}${head('POST /2', 'Content-Length: 10')}half`)
  assert.deepEqual(statusesIn(await one.untilClosed()), [200, 400])
  assert.deepEqual(asked, ['/1'])
})

test('The request of a client that is gone ends, also when it was passed on after the end of the data', async (t) => {
  const { client, underWay, access } = await start(t)
  const one = client()
  one.socket.end(get('/1') + get('/held', 'TE: trailers'))
  await until('the request has arrived', () => underWay.has('/held'))
  one.socket.destroy()
  await until('the request is broken off', () => underWay.size === 0)
  assert.equal(access().at(-1)?.['status'], 499)
})

test('A client gets the response to a form that is too large, and the connection is not reset before', async (t) => {
  const { client } = await start(t)
  const one = client()
  let error: Error | undefined
  one.socket.on('error', (cause) => (error = cause))
  one.send(
    head(
      'POST /.gatehouse/backchannel-logout',
      'Content-Type: application/x-www-form-urlencoded',
      'Content-Length: 100000',
    ),
  )
  await one.until(/ 413 [^]*\}\s*$/)
  for (let sent = 0; sent < 10; sent += 1)
    await new Promise((resolve) => one.socket.write('x'.repeat(10_000), () => setImmediate(resolve)))
  await one.untilClosed()
  assert.equal(error, undefined)
})

test('A response with an invalid field is not begun, and another one can be sent', async (t) => {
  const { port } = await startFront(t, (req, res) => {
    const value = 'a\r\nSet-Cookie: b'
    assert.throws(() => res.setHeader('X-A', value), TypeError)
    assert.throws(() => res.writeHead(200, ['X-A', value]), TypeError)
    res.setHeader('Content-Length', '0')
    res.writeHead(req.url === '/' ? 500 : 404)
    res.end()
  })
  const text = await new RawClient(t, port).send(get('/') + get('/2', 'Connection: close')).untilClosed()
  assert.deepEqual(statusesIn(text), [500, 404])
})
