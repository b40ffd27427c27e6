import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
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
/** Node.js has a public option for the requests that offer another protocol. */
const hasUpgradeOption = 'shouldUpgradeCallback' in createServer()
const rules = '[{ path: /static/*, access: public }]'

test('The private parts of Node.js were tested with this version', () => {
  const major = Number(process.versions.node.split('.')[0])
  assert.ok(major >= 22 && major <= 24, 'Run the tests with this version, then change the versions in the comments.')
})

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
  const world = await startWithout(t, ['httpAllowHalfOpen', 'destroySoon', 'upgrade', 'kBuffer', 'getAsyncId'])
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

  const expected = hasUpgradeOption ? 'is served' : 'is refused before Node.js 22.21'
  await t.test(`A request with content that offers h2c ${expected}`, async () => {
    const request = get('/static/offer', ...offer, 'Content-Length: 5').replace('GET', 'POST')
    const text = await client().send(`${request}hello`).untilClosed()
    assert.deepEqual(statusesIn(text), [hasUpgradeOption ? 200 : 400])
    assert.equal(text.includes('[/static/offer 5'), hasUpgradeOption)
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

  assert.deepEqual(missed(world), ['destroySoon', 'getAsyncId', 'httpAllowHalfOpen', 'kBuffer', 'upgrade'])
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

test('Without a way to respond on a released socket, upgrades are refused and all else is served', async (t) => {
  const world = await startWithout(t, ['assignSocket'])

  const text = await world
    .client()
    .send(get('/static/ws', ...webSocket))
    .untilClosed()
  assert.match(text, /^HTTP\/1\.1 500 Internal Server Error\r\n/)
  assert.equal((await fetch(`${world.url}/static/x`)).status, 200)

  assert.deepEqual(missed(world), ['assignSocket'])
  assert.deepEqual(world.gateway.log().filter(({ msg }) => msg === 'request.failed').length, 1)
})
