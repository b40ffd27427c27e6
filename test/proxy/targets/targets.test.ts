import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import {
  createServer as createHttpServer,
  type IncomingMessage,
  request as startRequest,
  type ServerResponse,
} from 'node:http'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type { TargetConfig, UpstreamConfig } from '../../../src/config/model/upstream.ts'
import type { SessionKey } from '../../../src/core/names.ts'
import { Metrics } from '../../../src/observe/metrics.ts'
import { TargetPool } from '../../../src/proxy/targets/target.ts'
import { Upstreams } from '../../../src/proxy/upstream.ts'
import type { ResponseHandler } from '../../../src/transport/transport.ts'
import { freePort } from '../../support/free-port.ts'
import { silent } from '../../support/signing-provider.ts'
import { until } from '../../support/until.ts'
import { fetchWhole, httpUpstream, rawUpstream, startGateway, upstreamConfig } from '../support.ts'

const target = (port: number, settings: Partial<TargetConfig> = {}): TargetConfig => ({
  ...{ url: new URL(`http://127.0.0.1:${port}`), socketPath: undefined, weight: 1, backup: false },
  ...settings,
})
const eject = { failures: 2, statuses: [503], forMs: 60_000, atMostMs: 60_000 }

/** A target that responds with its name. */
async function namedTarget(t: TestContext, name: string, status = 200): Promise<number> {
  const { port } = await httpUpstream(t, (_: IncomingMessage, res: ServerResponse) => res.writeHead(status).end(name))
  return port
}

async function gatewayTo(t: TestContext, targets: readonly TargetConfig[], settings: Partial<UpstreamConfig> = {}) {
  const url = targets[0]?.url ?? new URL('http://127.0.0.1:1')
  const gateway = await startGateway(t, 1, { upstream: { url, targets, eject, ...settings } })
  const bodies = async (times: number, init?: RequestInit) => {
    const found: string[] = []
    for (let at = 0; at < times; at++) found.push(await (await fetch(gateway.origin, init)).text())
    return found
  }
  const logs = (message: string) => gateway.logged.filter((line) => line.message === message)
  return { ...gateway, bodies, logs }
}

test('Requests are spread over the targets, and the access log names the target of each', async (t) => {
  const [one, two] = [await namedTarget(t, 'one'), await namedTarget(t, 'two')]
  const { bodies, records } = await gatewayTo(t, [target(one), target(two)])

  assert.deepEqual(await bodies(4), ['one', 'two', 'one', 'two'])
  assert.deepEqual(
    records.map((record) => record.target),
    [one, two, one, two].map((port) => `http://127.0.0.1:${port}`),
  )
})

test('A request whose target refuses the connection goes to another target, with its content', async (t) => {
  const echo = await httpUpstream(t, (req, res) => void req.pipe(res))
  const { bodies, logs, records } = await gatewayTo(t, [target(await freePort()), target(echo.port)])

  assert.deepEqual(await bodies(2, { method: 'POST', body: 'an order' }), ['an order', 'an order'])
  assert.equal(logs('upstream.retried').length, 1)
  assert.match(String(logs('upstream.retried')[0]?.fields['reason']), /ECONNREFUSED/)
  assert.ok(records.every(({ status }) => status === 200))
})

/** A target that closes each connection when it has read the head of a request. */
async function breakingTarget(t: TestContext, read: string[]): Promise<number> {
  return rawUpstream(t, (socket: Socket, head: string) => {
    read.push(head.slice(0, head.indexOf(' ')))
    socket.destroy()
  })
}

for (const method of ['GET', 'PUT', 'DELETE'])
  test(`A ${method} without content whose connection breaks before the response goes to another target`, async (t) => {
    const read: string[] = []
    const ports = [await breakingTarget(t, read), await namedTarget(t, 'two')]
    const { bodies } = await gatewayTo(
      t,
      ports.map((port) => target(port)),
    )

    assert.deepEqual(await bodies(2, { method }), ['two', 'two'])
    assert.deepEqual(read, [method])
  })

for (const init of [{ method: 'POST' }, { method: 'PATCH' }, { method: 'PUT', body: 'an order' }])
  test(`A ${init.method}${'body' in init ? ' with content' : ''} that was sent is never sent to another target`, async (t) => {
    const read: string[] = []
    const second: string[] = []
    const other = await httpUpstream(t, (req, res) => {
      second.push(req.method ?? '')
      res.end()
    })
    const { origin, logs } = await gatewayTo(t, [target(await breakingTarget(t, read)), target(other.port)])

    assert.equal((await fetch(origin, init)).status, 502)
    assert.deepEqual(read, [init.method])
    assert.deepEqual(second, [])
    assert.equal(logs('upstream.retried').length, 0)
  })

test('A response that breaks off after its first byte is not requested from another target', async (t) => {
  const first = await rawUpstream(t, (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Le'))
  const { origin, logs } = await gatewayTo(t, [target(first), target(await namedTarget(t, 'two'))])

  assert.equal((await fetch(origin)).status, 502)
  assert.equal(logs('upstream.retried').length, 0)
})

test('A request is sent to a second target only, not to a third', async (t) => {
  const read: string[] = []
  const ports = [await breakingTarget(t, read), await breakingTarget(t, read), await namedTarget(t, 'three')]
  const { origin } = await gatewayTo(
    t,
    ports.map((port) => target(port)),
  )

  assert.equal((await fetch(origin)).status, 502)
  assert.deepEqual(read, ['GET', 'GET'])
})

test('Without a retry budget, no request goes to another target', async (t) => {
  const targets = [target(await freePort()), target(await namedTarget(t, 'two'))]
  const { origin, logged } = await gatewayTo(t, targets, { retryBudget: 0 })

  assert.equal((await fetch(origin)).status, 502)
  assert.equal((await fetch(origin)).status, 200)
  const [failed] = logged.filter(({ message }) => message === 'upstream.failed')
  assert.match(String(failed?.fields['hint']), /upstreams\.orders\.targets/)
})

test('An outage is not doubled by retries: they are a share of the requests', async (t) => {
  const read: string[] = []
  const ports = [await breakingTarget(t, read), await breakingTarget(t, read)]
  const { bodies } = await gatewayTo(
    t,
    ports.map((port) => target(port)),
    { retryBudget: 10, eject: undefined },
  )
  await bodies(100)

  // 20 at once, and one for each ten requests.
  assert.ok(read.length >= 120 && read.length <= 131, String(read.length))
})

test('A target that fails is ejected, and the log says why', async (t) => {
  const closed = await freePort()
  const { bodies, logs } = await gatewayTo(t, [target(closed), target(await namedTarget(t, 'two'))])
  await bodies(10)

  assert.equal(logs('upstream.retried').length, eject.failures)
  const [ejected, ...others] = logs('upstream.target_ejected')
  assert.deepEqual(others, [])
  assert.equal(ejected?.fields['target'], `http://127.0.0.1:${closed}`)
  assert.match(String(ejected?.fields['reason']), /ECONNREFUSED/)
  assert.equal(ejected?.fields['for_ms'], 60_000)
})

test('Configured statuses count as failures, and the client gets these responses', async (t) => {
  const ports = [await namedTarget(t, 'busy', 503), await namedTarget(t, 'two')]
  const { bodies, logs } = await gatewayTo(
    t,
    ports.map((port) => target(port)),
  )

  assert.deepEqual(await bodies(6), ['busy', 'two', 'busy', 'two', 'two', 'two'])
  assert.equal(logs('upstream.target_ejected')[0]?.fields['reason'], 'status 503')
})

test('A target that accepts and never responds is ejected after its time-outs', async (t) => {
  const silent = await rawUpstream(t, () => {})
  const { bodies, logs, records } = await gatewayTo(t, [target(silent), target(await namedTarget(t, 'two'))], {
    responseTimeoutMs: 100,
  })
  await bodies(8)

  assert.deepEqual(
    records.map(({ status }) => status),
    [504, 200, 504, 200, 200, 200, 200, 200],
  )
  assert.equal(logs('upstream.target_ejected').length, 1)
})

test('A client that leaves does not make a target fail', async (t) => {
  const arrived: (() => void)[] = []
  const silent = await rawUpstream(t, () => arrived.shift()?.())
  const { port, logs, records } = await gatewayTo(t, [target(silent), target(silent, { backup: true })])
  for (let times = 1; times <= 4; times++) {
    const reached = new Promise<void>((resolve) => arrived.push(resolve))
    const client = startRequest({ port, host: '127.0.0.1' }).on('error', () => {})
    client.end()
    await reached
    client.destroy()
    await until('the gateway has noticed', () => records.length === times)
  }

  assert.equal(logs('upstream.target_ejected').length, 0)
  assert.ok(records.every(({ status }) => status === 499))
})

test('When all targets refuse connections, the client gets 502 and the targets are tried again', async (t) => {
  const ports = [await freePort(), await freePort()]
  const { origin, logs, metrics } = await gatewayTo(
    t,
    ports.map((port) => target(port)),
  )
  for (let times = 0; times < 6; times++) assert.equal((await fetch(origin)).status, 502)
  // When both are ejected, there is no other target to try.
  const retries = metrics.read('gatehouse_target_retries_total')?.cells[0]?.values
  assert.deepEqual([logs('upstream.retried').length, retries], [2, [2]])

  const server = createHttpServer((_, res) => res.end('back')).listen(ports[0], '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const found = await Promise.all([fetch(origin), fetch(origin)])

  assert.ok(found.some(({ status }) => status === 200))
})

test('The requests of a session go to one target', async (t) => {
  const ports = [await namedTarget(t, 'one'), await namedTarget(t, 'two'), await namedTarget(t, 'three')]
  const found = new Set<string>()
  for (const session of ['tag:a', 'tag:b', 'tag:c', 'tag:d', 'tag:e', 'tag:f']) {
    const gateway = await startGateway(t, 1, {
      upstream: { targets: ports.map((port) => target(port)), balance: 'sticky' },
      pass: { session: session as SessionKey },
    })
    const bodies = new Set<string>()
    for (let times = 0; times < 3; times++) bodies.add((await fetchWhole(gateway.origin)).body)
    assert.equal(bodies.size, 1)
    for (const body of bodies) found.add(body)
  }

  assert.ok(found.size > 1)
})

test('A target may be a socket in the file system', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const socketPath = join(folder, 'app.sock')
  const server = createHttpServer((req, res) => res.end(`${req.headers.host} ${req.url}`)).listen(socketPath)
  await once(server, 'listening')
  t.after(() => server.close())
  const { origin, records } = await gatewayTo(t, [target(1, { socketPath, url: new URL('http://localhost') })])

  assert.equal((await fetchWhole(`${origin}/a?b`)).body, 'orders.example.com /a?b')
  assert.equal(records[0]?.status, 200)
})

test('Too many connections are not opened to a target', async (t) => {
  let most = 0
  let open = 0
  const server = createServer((socket) => {
    open += 1
    most = Math.max(most, open)
    socket.on('close', () => (open -= 1)).on('error', () => {})
    socket.on('data', () => setImmediate(() => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const { port } = server.address() as { port: number }
  const { origin } = await gatewayTo(t, [target(port), target(port, { backup: true })], { connectionsPerTarget: 2 })

  const found = await Promise.all(Array.from({ length: 12 }, () => fetch(origin)))

  assert.ok(found.every(({ status }) => status === 200))
  assert.equal(most, 2)
})

test('A reload keeps the connections and the health of targets that stay', async (t) => {
  const closed = await freePort()
  let connections = 0
  const { port, server } = await httpUpstream(t, (_, res) => res.end('ok'))
  server.on('connection', () => (connections += 1))
  const [pool, log] = [new TargetPool(), silent]
  const config = upstreamConfig({ targets: [target(closed), target(port)], eject: { ...eject, failures: 1 } })
  const generation = (settings: UpstreamConfig) =>
    new Upstreams([settings], { isTracing: false, reservedPrefix: '/.gatehouse/', pool, log, metrics: new Metrics() })
  const get = (upstreams: Upstreams, settings: UpstreamConfig) =>
    new Promise<string>((resolve) => {
      const retried: string[] = []
      const handler: ResponseHandler = {
        ...{ onSend: () => true, onResponse: () => {}, onShortPart: () => {}, onDone: () => {}, onSwitch: () => {} },
        onContent: (_, giveBack) => giveBack(),
        onEnd: () => resolve(retried.length === 0 ? 'ok' : 'retried'),
        onError: (error) => resolve(error.message),
      }
      const observer = { onTarget: () => {}, onRetry: (failed: string) => void retried.push(failed) }
      const request = {
        method: 'GET',
        path: '/',
        headers: ['Host', 'a'],
        identity: [],
        body: undefined,
        upgrade: undefined,
      }
      upstreams.of(settings).transport.dispatch(request, handler, observer)
    })
  const [first, next] = [config, { ...config, cache: 'upstream' as const }]
  const before = generation(first)
  assert.equal(await get(before, first), 'retried')

  const after = generation(next)
  await before.close()
  const found = [await get(after, next), await get(after, next)]

  assert.deepEqual(found, ['ok', 'ok'])
  assert.equal(connections, 1)
  await after.close()
  assert.match(await get(after, next), /closed its connections/)
})

test('A target that leads back to the gateway gets no request twice', async (t) => {
  let gatewayPort = 0
  const relay = createServer((socket) => {
    const onward = connect(gatewayPort, '127.0.0.1').on('error', () => {})
    socket
      .on('error', () => {})
      .pipe(onward)
      .pipe(socket)
  }).listen(0, '127.0.0.1')
  await once(relay, 'listening')
  t.after(() => relay.close())
  const { port } = relay.address() as { port: number }
  const gateway = await gatewayTo(t, [target(port), target(await namedTarget(t, 'two'))], { balance: 'round_robin' })
  gatewayPort = gateway.port

  const statuses = [(await fetch(gateway.origin)).status, (await fetch(gateway.origin)).status]

  assert.deepEqual(statuses.toSorted(), [200, 508])
})
