// Slow: 5 s, a gateway starts without each of the parts
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { httpUpstream, RawClient } from '../proxy/support.ts'
import { Browser } from '../support/browser.ts'
import { childrenOf, type Command, isAlive, root, startCommand } from '../support/command.ts'
import { prepareGateway, type SurroundingsOptions } from '../support/gateway-process.ts'
import { statusesIn } from '../support/raw-exchange.ts'
import { startRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

// docs/decisions/0016-private-parts-have-a-fallback.md lists the parts.

const preload = join(root, 'test', 'support', 'without-private-parts.mjs')
const rules = '[{ path: /static/*, access: public }]'

interface Started {
  readonly gateway: Command
  readonly url: string
  /** Paths that the application has received. */
  readonly seen: string[]
  client(): RawClient
}

async function startWithout(
  t: TestContext,
  parts: readonly string[],
  options: SurroundingsOptions = {},
): Promise<Started> {
  const seen: string[] = []
  const { port, server } = await httpUpstream(t, async (req, res) => {
    seen.push(req.url ?? '')
    let length = 0
    for await (const chunk of req) length += (chunk as Buffer).length
    if (req.url !== '/static/held') res.end(`[${req.url} ${length} ${String(req.headers['x-remote-user'])}]`)
  })
  server.on('upgrade', (_req, socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello')
    socket.on('error', () => {}).pipe(socket)
  })
  const { url, file, env, upstream } = await prepareGateway(t, { ...options, rules })
  writeFileSync(file, readFileSync(file, 'utf8').replace(upstream.url, `http://127.0.0.1:${port}`))
  const gateway = startCommand(t, ['run', '--config', file], {
    env: { ...env, WITHOUT: parts.join(','), NODE_OPTIONS: `--import=${preload}` },
  })
  await gateway.said('gatehouse is ready')
  return { gateway, url, seen, client: () => new RawClient(t, Number(new URL(url).port)) }
}

/** Which parts the gateway has missed up to now. */
function missed({ gateway }: Started): readonly string[] {
  return [...new Set([...gateway.err().matchAll(/^without (\w+)$/gm)].map(([, part]) => String(part)))].sort()
}

const get = (path: string, ...fields: readonly string[]) =>
  [`GET ${path} HTTP/1.1`, 'Host: h', ...fields, '', ''].join('\r\n')
const offer = [
  'Connection: Upgrade, HTTP2-Settings',
  'Upgrade: h2c',
  'HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAA',
]
const webSocket = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhl']

test('Without private parts of Node.js, the gateway serves', async (t) => {
  const world = await startWithout(t, ['httpAllowHalfOpen', 'destroySoon', 'kBuffer'])
  const { gateway, url, seen, client } = world

  await t.test('A person signs in, and the application receives the identity', async () => {
    const jane = new Browser('jane')
    assert.equal((await jane.get(`${url}/orders`)).body, '[/orders 0 jane]')
  })

  await t.test('Requests of one connection get their responses in order', async () => {
    const text = await client()
      .send(get('/static/1') + get('/static/2') + get('/static/3', 'Connection: close'))
      .untilClosed()
    assert.deepEqual(
      [...text.matchAll(/\[(\S+) /g)].map(([, path]) => path),
      ['/static/1', '/static/2', '/static/3'],
    )
  })

  await t.test('A client that half-closes its connection counts as gone, and its connection is closed', async () => {
    const half = client().send(get('/static/held', 'TE: trailers'))
    await until('the request has arrived', () => seen.includes('/static/held'))
    half.socket.end()
    assert.deepEqual(statusesIn(await half.untilClosed()), [])
    await until('it has its line', () => gateway.log().some(({ path }) => path === '/static/held'))
    assert.equal(gateway.log().find(({ path }) => path === '/static/held')?.['aborted'], true)
  })

  await t.test('Large uploads of a connection arrive', async () => {
    const upload = get('/static/large', 'Content-Length: 1000000').replace('GET', 'POST') + 'x'.repeat(1_000_000)
    const text = await client()
      .send(upload + upload + get('/static/next', 'Connection: close'))
      .untilClosed()
    assert.deepEqual(text.match(/\[\S+ \d+/g), ['[/static/large 1000000', '[/static/large 1000000', '[/static/next 0'])
  })

  await t.test('A refused request gets its response although its content is not read', async () => {
    const text = await client().send(get('/.gatehouse/session', 'Content-Length: 1000')).untilClosed()
    assert.match(text, /^HTTP\/1\.1 401 Unauthorized\r\n(?:.+\r\n)*?Connection: close\r\n/)
  })

  await t.test('A request that offers h2c is served', async () => {
    const text = await client()
      .send(get('/static/offer', ...offer))
      .until(/\[\/static\/offer 0/)
    assert.match(text, /^HTTP\/1\.1 200 OK\r\n/)
  })

  await t.test('A request with content that offers h2c is served', async () => {
    const request = get('/static/offer', ...offer, 'Content-Length: 5').replace('GET', 'POST')
    const text = await client().send(`${request}hello`).untilClosed()
    assert.deepEqual(statusesIn(text), [200])
    assert.ok(text.includes('[/static/offer 5'))
  })

  await t.test('A WebSocket is carried both ways', async () => {
    const socket = client().send(get('/static/ws', ...webSocket))
    await socket.until(/^HTTP\/1\.1 101 [^]*\r\n\r\nhello$/)
    // A masked text frame (RFC 6455 §5.7).
    socket.send('\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58')
    await socket.until(/\x7f\x9f\x4d\x51\x58$/)
    socket.socket.destroy()
  })

  await t.test('Of too many pipelined requests, the first are answered and one is refused', async () => {
    const text = await client().send(get('/static/x', 'TE: trailers').repeat(1_000)).untilClosed()
    assert.deepEqual(statusesIn(text), [...Array<number>(65).fill(200), 503])
  })

  assert.deepEqual(missed(world), ['destroySoon', 'httpAllowHalfOpen', 'kBuffer'])
})

test('Without messages of node:cluster, the workers share a port, and one that dies is replaced', async (t) => {
  const redis = await startRedis(t)
  const world = await startWithout(t, ['newconn'], {
    store: `{ redis: { url: "${redis.url}" } }`,
    settings: 'workers: 2',
  })
  const { gateway, url, client } = world
  const [first = 0, second = 0] = childrenOf(gateway.pid)

  const jane = new Browser('jane')
  for (let count = 0; count < 4; count += 1)
    assert.match((await jane.get(`${url}/orders`)).body, /^\[\/orders 0 jane\]$/)

  process.kill(first, 'SIGKILL')
  await until('another worker runs', () => childrenOf(gateway.pid).some((pid) => pid !== first && pid !== second))
  await gateway.said('worker.died')
  for (let count = 0; count < 4; count += 1)
    assert.match(await client().send(get('/static/x', 'Connection: close')).untilClosed(), /^HTTP\/1\.1 200 OK\r\n/)

  assert.ok(isAlive(second))
  assert.deepEqual(missed(world), ['send'])
})

for (const [part, what] of [
  ['throws', 'A handle that rejects memory'],
  ['null', 'A read that calls back with null'],
  ['text', 'A read that calls back with a text'],
  ['listener', 'A server that serves connections in another way'],
] as const)
  test(`${what} is found before the first request, and no private part is used`, async (t) => {
    const world = await startWithout(t, [part])
    const { gateway, url, client } = world

    const line = await gateway.said('node.private_parts_off')
    assert.match(String(line['reason']), /^a trial on 127\.0\.0\.1 failed: /)
    await servesAll(url, client)
    assert.deepEqual(missed(world), [part === 'listener' ? 'listener' : 'reads'])
  })

test('Without a connection for the trial, a gateway with listen.h2c names the reason and does not start', async (t) => {
  const { file, env } = await prepareGateway(t)
  writeFileSync(file, readFileSync(file, 'utf8').replace(/^listen: (.*)$/m, 'listen: { address: $1, h2c: true }'))

  const gateway = startCommand(t, ['run', '--config', file], {
    env: { ...env, WITHOUT: 'loopback', NODE_OPTIONS: `--import=${preload}` },
  })

  assert.notEqual(await gateway.ended, 0)
  const reason = 'a trial on 127.0.0.1 failed: listen EADDRNOTAVAIL: address not available 127.0.0.1'
  assert.ok(gateway.err().includes(`listen.h2c needs private parts of Node.js: ${reason}`), gateway.err())
  const line = gateway.log().find(({ msg }) => msg === 'node.private_parts_off')
  assert.equal(line?.['reason'], reason)
  assert.match(String(line['hint']), /If the reason is a fault of the system, such as EMFILE, mend it/)
})

test('On a version of Node.js that was not tested, the gateway says so and uses no private part', async (t) => {
  const world = await startWithout(t, ['version', 'throws', 'listener'])
  const { gateway, url, client } = world

  const line = await gateway.said('node.private_parts_off')
  assert.match(String(line['reason']), /^this release was not tested with Node\.js 99\.0\.0, but with 22, 24, 26$/)
  await servesAll(url, client)
  // Nothing has asked for the other two.
  assert.deepEqual(missed(world), ['version'])
})

/** A person signs in, an upload arrives, and a WebSocket is carried both ways. */
async function servesAll(url: string, client: () => RawClient): Promise<void> {
  assert.equal((await new Browser('jane').get(`${url}/orders`)).body, '[/orders 0 jane]')

  const upload = get('/static/large', 'Content-Length: 1000000').replace('GET', 'POST') + 'x'.repeat(1_000_000)
  const text = await client()
    .send(upload + get('/static/next', 'Connection: close'))
    .untilClosed()
  assert.deepEqual(text.match(/\[\S+ \d+/g), ['[/static/large 1000000', '[/static/next 0'])

  const socket = client().send(get('/static/ws', ...webSocket))
  await socket.until(/^HTTP\/1\.1 101 [^]*\r\n\r\nhello$/)
  socket.socket.destroy()
}
