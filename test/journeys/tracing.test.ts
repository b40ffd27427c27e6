import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { hostname } from 'node:os'
import { test, type TestContext } from 'node:test'
import { version } from '../../src/core/version.ts'
import type { Visit } from '../support/browser.ts'
import { startCollector, type CollectedSpan, type Collector } from '../support/collector.ts'
import { replacePauses } from '../support/pauses.ts'
import { exchangeRaw } from '../support/raw-exchange.ts'
import { openWebSocket } from '../support/streams.ts'
import { until } from '../support/until.ts'
import { startWorld, type Replica, type World } from '../support/world.ts'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const parentId = 'b7ad6b7169203331'
const sampled = { traceparent: `00-${traceId}-${parentId}-01`, tracestate: 'congo=t61rcWkgMzE' }
const notSampled = { ...sampled, traceparent: `00-${traceId}-${parentId}-00` }

interface Setting {
  readonly sample?: number
  readonly settings?: string
  readonly upstream?: URL
}

async function tracingWorld(t: TestContext, { sample = 1, settings = '', ...others }: Setting = {}) {
  replacePauses(t, { sendSpansMs: 50, retrySpansMs: 50 })
  const collector = await startCollector(t)
  const tracing = `tracing: { otlp: "${collector.url}", sample: ${sample}, service_name: orders-gateway, resource: { deployment.environment.name: test } }`
  const world = await startWorld(t, { settings: `${tracing}\n${settings}`, ...others })
  return { world, collector, replica: world.replicas[0] as Replica }
}

/** The header fields that the application received. */
function received({ body }: Visit): Record<string, string> {
  const { headers } = JSON.parse(body) as { readonly headers: readonly (readonly [string, string])[] }
  return Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value]))
}

const at = (path: string) => (span: CollectedSpan) => span.attributes['url.path'] === path
const below = (parent: CollectedSpan) => (span: CollectedSpan) => span.parentSpanId === parent.spanId

async function signedIn(world: World) {
  const jane = world.browser()
  await jane.get(`${world.url}/`)
  return jane
}

test('A request is one span of the gateway and one span of the upstream exchange, whose context the application gets', async (t) => {
  const { world, collector, replica } = await tracingWorld(t)
  const jane = await signedIn(world)
  const before = BigInt(Date.now()) * 1_000_000n

  const visit = await jane.send(`${world.url}/echo?code=SECRET`)

  const server = await collector.spanOf('server', at('/echo'))
  const client = await collector.spanOf('client', below(server))
  const line = replica.access.find(({ path }) => path === '/echo')
  assert.equal(server.traceId, client.traceId)
  assert.equal(server.parentSpanId, undefined)
  assert.equal(received(visit)['traceparent'], `00-${client.traceId}-${client.spanId}-01`)
  assert.equal(received(visit)['tracestate'], undefined)
  assert.equal(line?.['trace'], server.traceId)
  assert.deepEqual(server.attributes, {
    'http.request.method': 'GET',
    'http.response.status_code': '200',
    'url.scheme': 'http',
    'url.path': '/echo',
    'server.address': '127.0.0.1',
    'server.port': new URL(world.url).port,
    'gatehouse.request_id': line?.['request'],
    'gatehouse.upstream': 'orders',
    'gatehouse.session': line?.['session'],
  })
  assert.deepEqual(client.attributes, {
    'http.request.method': 'GET',
    'http.response.status_code': '200',
    'url.full': `${world.upstream.origin}/echo`,
    'server.address': world.upstream.hostname,
    'server.port': world.upstream.port,
    'gatehouse.upstream': 'orders',
  })
  assert.deepEqual([server.name, server.status, client.name, client.status], ['GET', undefined, 'GET', undefined])
  // Rounding may differ by a millisecond.
  const ms = 1_000_000n
  assert.ok(server.start > before - 5n * ms && server.end < BigInt(Date.now()) * ms + 5n * ms)
  assert.ok(server.start <= client.start && client.start <= client.end && client.end <= server.end)
  const [request] = collector.requests
  assert.equal(request?.path, '/v1/traces')
  assert.match(String(request.headers['user-agent']), /^gatehouse\//)
  const { 'service.instance.id': instance, ...resource } = request.resource
  assert.match(instance ?? '', /^[\da-f]{32}$/)
  assert.deepEqual(resource, {
    'service.name': 'orders-gateway',
    'service.version': version,
    'host.name': hostname(),
    'process.pid': String(process.pid),
    'telemetry.sdk.name': 'gatehouse',
    'telemetry.sdk.language': 'nodejs',
    'telemetry.sdk.version': version,
    'deployment.environment.name': 'test',
  })
  assert.equal(JSON.stringify(collector.spans, (_, value: unknown) => String(value)).includes('SECRET'), false)
  assert.deepEqual(collector.refused, [])
})

test('The gateway continues the trace of a trusted proxy', async (t) => {
  const { world, collector } = await tracingWorld(t, { sample: 0, settings: 'trusted_proxies: [127.0.0.1]' })
  const jane = await signedIn(world)

  const visit = await jane.send(`${world.url}/echo`, { headers: sampled })

  const server = await collector.spanOf('server', at('/echo'))
  const client = await collector.spanOf('client', below(server))
  assert.deepEqual([server.traceId, server.parentSpanId, server.traceState], [traceId, parentId, sampled.tracestate])
  assert.equal(received(visit)['traceparent'], `00-${traceId}-${client.spanId}-01`)
  assert.equal(received(visit)['tracestate'], sampled.tracestate)
})

test('The gateway begins a new trace for any other client', async (t) => {
  const { world, collector } = await tracingWorld(t)
  const jane = await signedIn(world)

  const visit = await jane.send(`${world.url}/echo`, { headers: sampled })

  const server = await collector.spanOf('server', at('/echo'))
  assert.notEqual(server.traceId, traceId)
  assert.equal(server.parentSpanId, undefined)
  assert.equal(server.traceState, undefined)
  assert.match(received(visit)['traceparent'] ?? '', new RegExp(`^00-${server.traceId}-[\\da-f]{16}-01$`))
  assert.equal(received(visit)['tracestate'], undefined)
})

for (const [who, settings, headers] of [
  ['nobody has decided', '', {}],
  ['a stranger wants it to be', '', sampled],
  ['a trusted proxy has decided against it', 'trusted_proxies: [127.0.0.1]', notSampled],
] as const)
  test(`An unsampled trace is not exported, but the application gets its context: ${who}`, async (t) => {
    const sample = who.startsWith('a trusted') ? 1 : 0
    const { world, collector, replica } = await tracingWorld(t, { sample, settings })
    const jane = await signedIn(world)

    const visit = await jane.send(`${world.url}/echo`, { headers })
    await replica.stop()

    assert.match(received(visit)['traceparent'] ?? '', /^00-[\da-f]{32}-[\da-f]{16}-00$/)
    const line = replica.access.findLast(({ path }) => path === '/echo')
    assert.equal(received(visit)['traceparent']?.slice(3, 35), line?.['trace'])
    assert.deepEqual(collector.spans.filter(at('/echo')), [])
  })

test('Spans of failed requests are marked: an unreachable application, and one that responds with 500', async (t) => {
  const { world, collector } = await tracingWorld(t)
  const jane = await signedIn(world)
  await jane.send(`${world.url}/status/500`)
  await jane.send(`${world.url}/status/404`)
  const nowhere = await tracingWorld(t, { upstream: new URL('http://127.0.0.1:1') })
  await nowhere.world.browser().send(`${nowhere.world.url}/static/x`)

  const server500 = await collector.spanOf('server', at('/status/500'))
  const client500 = await collector.spanOf('client', below(server500))
  const server404 = await collector.spanOf('server', at('/status/404'))
  const client404 = await collector.spanOf('client', below(server404))
  const server502 = await nowhere.collector.spanOf('server', at('/static/x'))
  const client502 = await nowhere.collector.spanOf('client', below(server502))
  const shown = (span: CollectedSpan) => [
    span.status,
    span.attributes['http.response.status_code'],
    span.attributes['error.type'],
  ]
  assert.deepEqual(shown(server500), [2, '500', '500'])
  assert.deepEqual(shown(client500), [2, '500', '500'])
  // The status is no error for a server span and an error for a client span (semantic conventions
  // for HTTP).
  assert.deepEqual(shown(server404), [undefined, '404', undefined])
  assert.deepEqual(shown(client404), [2, '404', '404'])
  assert.deepEqual(shown(server502), [2, '502', 'ERR_UPSTREAM_UNREACHABLE'])
  assert.deepEqual(shown(client502), [2, undefined, 'ERR_UPSTREAM_UNREACHABLE'])
})

test('A response that breaks off is marked, in both spans', async (t) => {
  const broken = createServer((_, res) => {
    res.writeHead(200, { 'content-length': 100_000 }).write('x'.repeat(50_000), () => res.destroy())
  })
  await new Promise<void>((resolve) => broken.listen(0, '127.0.0.1', resolve))
  t.after(() => broken.close())
  const upstream = new URL(`http://127.0.0.1:${(broken.address() as AddressInfo).port}`)
  const { world, collector } = await tracingWorld(t, { upstream })

  await assert.rejects(world.browser().send(`${world.url}/static/x`))

  const server = await collector.spanOf('server', at('/static/x'))
  const client = await collector.spanOf('client', below(server))
  for (const span of [server, client])
    assert.deepEqual(
      [span.status, span.attributes['http.response.status_code'], span.attributes['error.type']],
      [2, '200', 'ERR_UPSTREAM_UNREACHABLE'],
    )
})

test('Values that a client invents create no span names and no unbounded data', async (t) => {
  const { world, collector } = await tracingWorld(t)
  const path = `/static/${'x'.repeat(3000)}`
  const { host, port } = new URL(world.url)
  await exchangeRaw(Number(port), `PURGE ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)

  const server = await collector.spanOf('server', ({ name }) => name === 'HTTP')
  assert.equal(server.attributes['http.request.method'], '_OTHER')
  assert.equal(server.attributes['http.request.method_original'], 'PURGE')
  assert.equal(server.attributes['url.path'], `${path.slice(0, 1024)}…`)
})

test('Concurrent requests have one trace each', async (t) => {
  const { world, collector } = await tracingWorld(t)
  const jane = await signedIn(world)

  await Promise.all(Array.from({ length: 50 }, async () => jane.send(`${world.url}/echo`)))

  await until('all have arrived', () => collector.spans.filter(at('/echo')).length === 50)
  assert.equal(new Set(collector.spans.filter(at('/echo')).map((span) => span.traceId)).size, 50)
  assert.equal(new Set(collector.spans.map((span) => span.spanId)).size, collector.spans.length)
})

test('The span of a WebSocket lasts as long as the WebSocket is open', async (t) => {
  const { world, collector } = await tracingWorld(t)
  const jane = await signedIn(world)
  const socket = await openWebSocket(t, `${world.url}/ws`, jane.cookieHeader)
  await socket.echo('hello')
  const [session] = world.provider.sessions()
  await world.provider.endSession(session?.sid ?? '')
  await socket.ended

  const server = await collector.spanOf('server', at('/ws'))
  const client = await collector.spanOf('client', below(server))
  assert.equal(server.attributes['http.response.status_code'], '101')
  assert.equal(client.attributes['http.response.status_code'], '101')
  assert.ok(client.end <= server.end)
  // A stream that a logout closes is not an error.
  assert.deepEqual([server.status, client.status], [undefined, undefined])
})

test('A collector that does not respond delays no request, and gets the spans when it responds again', async (t) => {
  const { world, collector, replica } = await tracingWorld(t)
  const over = Promise.withResolvers<void>()
  collector.respondWith(503, { after: over.promise })
  const jane = await signedIn(world)
  for (let times = 0; times < 20; times += 1) assert.equal((await jane.send(`${world.url}/echo`)).status, 200)
  await until('it was asked', () => collector.asked.length > 0)

  over.resolve()
  collector.respondWith(200)

  await until('all have arrived', () => collector.spans.filter(at('/echo')).length === 20)
  assert.equal(dropped(replica), 0)
})

test('A collector that rejects spans is logged once, and the rejected spans are counted', async (t) => {
  const { world, collector, replica } = await tracingWorld(t)
  collector.respondWith(401)
  const jane = await signedIn(world)
  await until('it has refused', () => dropped(replica) > 0)
  await jane.send(`${world.url}/echo`)
  const before = dropped(replica)
  await until('it has refused again', () => dropped(replica) > before)

  const told = replica.log.filter(({ message }) => message === 'tracing.not_exported')
  assert.deepEqual(
    told.map(({ level, fields }) => [level, fields]),
    [['warn', { collector: collector.url, reason: 'responded with status 401' }]],
  )
  collector.respondWith(200)
  await jane.send(`${world.url}/echo`)
  await until('it works again', () => replica.log.some(({ message }) => message === 'tracing.exported'))
})

test('A collector that hangs does not keep the gateway from stopping', async (t) => {
  const { world, collector, replica } = await tracingWorld(t)
  collector.respondWith(0)
  await signedIn(world)
  await until('it hangs', () => collector.asked.length > 0)

  const startedAt = performance.now()
  await replica.stop()

  assert.ok(performance.now() - startedAt < 8_000)
})

test('The gateway exports waiting spans when it stops', async (t) => {
  const { world, collector, replica } = await tracingWorld(t)
  const jane = await signedIn(world)
  await jane.send(`${world.url}/echo`)

  await replica.stop()

  assert.equal(collector.spans.filter(at('/echo')).length, 1)
})

test('The collector gets the headers of the configuration', async (t) => {
  const collector: Collector = await startCollector(t)
  const settings = `tracing: { otlp: "${collector.url}/otlp/traces", sample: 1, headers: { X-Tenant: { env: CLIENT_SECRET } } }`
  const world = await startWorld(t, { settings })
  await world.browser().send(`${world.url}/static/about.txt`)

  await until('it was asked', () => collector.requests.length > 0)
  assert.equal(collector.requests[0]?.headers['x-tenant'], 'correct horse battery staple')
  assert.equal(collector.requests[0].path, '/otlp/traces')
  assert.equal(collector.requests[0].resource['service.name'], 'gatehouse')
})

function dropped({ metrics }: Replica): number {
  const family = metrics.collect().find(({ name }) => name === 'gatehouse_spans_dropped_total')
  return family?.cells[0]?.values[0] ?? 0
}
