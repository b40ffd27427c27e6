import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, constants } from 'node:http2'
import { test, type TestContext } from 'node:test'
import { status } from '@grpc/grpc-js'
import { startApi } from '../support/api-world.ts'
import { issueCertificates } from '../support/certificates.ts'
import { type GrpcClient, grpcClient, startGrpcServer } from '../support/grpc.ts'
import { until } from '../support/until.ts'
import { startWorld, type WorldOptions } from '../support/world.ts'

/** An application that speaks gRPC, and a person who is signed in at the gateway in front of it. */
async function startGrpcWorld(t: TestContext, options: Partial<WorldOptions> = {}) {
  const { server: files } = issueCertificates()
  const isTls = String(options.upstreamSettings).includes('protocol: h2\n')
  const server = await startGrpcServer(
    t,
    isTls ? { cert: readFileSync(files.cert), key: readFileSync(files.key) } : undefined,
  )
  const world = await startWorld(t, {
    listen: (address) => `{ address: "${address}", h2c: true }`,
    upstream: server.url,
    upstreamSettings: 'protocol: h2c',
    ...options,
  })
  const jane = world.browser()
  await jane.get(`${world.url}/`)
  return { ...world, jane, server, client: grpcClient(t, world.url, { cookie: jane.cookieHeader }) }
}

const trusted = `protocol: h2\n    ca_file: ${issueCertificates().server.ca}`

for (const [what, upstreamSettings] of [
  ['without TLS', 'protocol: h2c'],
  ['over TLS', trusted],
] as const)
  test(`Calls of all four kinds reach an application ${what}, with the identity of their person`, async (t) => {
    const { client, server, replicas } = await startGrpcWorld(t, { upstreamSettings })
    const chat = client.chat()
    chat.call.write('one')
    await until('the first message is back', () => chat.values.length === 1)
    chat.call.write('two')
    chat.call.end()

    const [unary, failed, collected, listed, chatted] = await Promise.all([
      client.unary('hello'),
      client.unary('fail'),
      client.collect(['a', 'b', 'c']),
      client.list('item').over,
      chat.over,
    ])

    assert.deepEqual([unary.values, unary.status.code], [['echo hello'], status.OK])
    assert.deepEqual(unary.status.metadata.get('x-sum'), ['7'])
    assert.deepEqual([failed.status.code, failed.status.details], [status.NOT_FOUND, 'no order 7: müde'])
    assert.deepEqual(failed.status.metadata.get('x-sum'), ['7'])
    assert.deepEqual([collected.values, collected.status.code], [['a b c'], status.OK])
    assert.deepEqual([listed.values, listed.status.code], [['item 1', 'item 2', 'item 3'], status.OK])
    assert.deepEqual([chatted.values, chatted.status.code], [['echo one', 'echo two'], status.OK])
    assert.equal(server.seen.length, 5)
    for (const seen of server.seen) assert.deepEqual([seen['x-remote-user'], seen['cookie']], ['jane', undefined])
    const statuses = replicas[0]?.access.flatMap(({ grpc_status }) => (grpc_status === undefined ? [] : [grpc_status]))
    assert.deepEqual(statuses?.toSorted(), ['0', '0', '0', '0', '5'])
  })

test('A call without access gets a status of gRPC, and neither a page nor a redirect', async (t) => {
  const { url, client, server, replicas } = await startGrpcWorld(t, {
    upstreamSettings: `protocol: h2c
    rules:
      - { path: /orders.Orders/List, require: { claim: fields.groups, any_of: [nobody] } }`,
  })
  const stranger = grpcClient(t, url)

  const unauthenticated = (await stranger.unary('hello')).status
  const denied = (await client.list('item').over).status

  assert.deepEqual([unauthenticated.code, unauthenticated.details], [status.UNAUTHENTICATED, 'Please sign in.'])
  assert.equal(denied.code, status.PERMISSION_DENIED)
  assert.equal(server.seen.length, 0)
  const lines = () => replicas[0]?.access.filter(({ grpc_status }) => grpc_status !== undefined) ?? []
  await until('both calls are logged', () => lines().length === 2)
  assert.deepEqual(
    lines().map(({ status: http, code, grpc_status }) => `${String(http)} ${String(code)} ${String(grpc_status)}`),
    ['200 ERR_UNAUTHENTICATED 16', '200 ERR_FORBIDDEN 7'],
  )
})

test('A call to a path that no upstream serves is UNIMPLEMENTED', async (t) => {
  const { client } = await startGrpcWorld(t, { upstreamSettings: 'protocol: h2c\n    path: /other/' })

  assert.equal((await client.unary('hello')).status.code, status.UNIMPLEMENTED)
})

test('A call while the store is away is UNAVAILABLE', async (t) => {
  const { client, redis } = await startGrpcWorld(t, { store: 'redis' })
  await redis?.kill()

  assert.equal((await client.unary('hello')).status.code, status.UNAVAILABLE)
})

test('A call to an application that is away is UNAVAILABLE, and one without a response in time DEADLINE_EXCEEDED', async (t) => {
  const { client } = await startGrpcWorld(t, { upstreamSettings: 'protocol: h2c\n    response_timeout: 50ms' })
  const { client: away } = await startGrpcWorld(t, { upstream: new URL('http://127.0.0.1:1') })

  assert.equal((await client.unary('wait')).status.code, status.DEADLINE_EXCEEDED)
  assert.equal((await away.unary('hello')).status.code, status.UNAVAILABLE)
})

test('A deadline of the client ends the call at the application', async (t) => {
  const { client, server } = await startGrpcWorld(t)

  const outcome = await client.unary('wait', { deadline: Date.now() + 200 })

  assert.equal(outcome.status.code, status.DEADLINE_EXCEEDED)
  assert.match(String(server.seen[0]?.['grpc-timeout'] ?? ''), /^$|m$/)
  await until('the call is cancelled', () => server.cancelled === 1)
})

test('The gateway itself ends a call after its grpc-timeout', async (t) => {
  const { url, jane, server } = await startGrpcWorld(t)
  const session = connect(url)
  t.after(() => session.destroy())
  const stream = session.request({
    ...{ ':method': 'POST', ':path': '/orders.Orders/Unary', 'content-type': 'application/grpc', te: 'trailers' },
    ...{ cookie: jane.cookieHeader, 'grpc-timeout': '100m' },
  })
  stream.end(Buffer.from('\0\0\0\0\x04wait'))

  const [head, flags] = (await once(stream, 'response')) as [Record<string, unknown>, number]

  assert.deepEqual([head[':status'], head['grpc-status']], [200, String(status.DEADLINE_EXCEEDED)])
  assert.ok(flags & constants.NGHTTP2_FLAG_END_STREAM, 'the head ends the response (Trailers-Only)')
  await until('the call is cancelled', () => server.cancelled === 1)
})

test('A logout ends open calls with UNAUTHENTICATED', async (t) => {
  const { client, server, provider, postLogoutToken } = await startGrpcWorld(t)
  const listed = client.list('open')
  const chat = client.chat()
  chat.call.write('one')
  const waiting = client.unary('wait')
  await until(
    'the calls are open',
    () => listed.values.length === 3 && chat.values.length === 1 && server.seen.length === 3,
  )

  const logout_token = await provider.logoutToken({ sid: provider.sessions().at(-1)?.sid ?? '', sub: 'jane' })
  assert.equal((await postLogoutToken({ logout_token })).status, 200)

  const ended = await Promise.all([listed.over, chat.over, waiting])
  assert.deepEqual(
    ended.map(({ status: { code } }) => code),
    [status.UNAUTHENTICATED, status.UNAUTHENTICATED, status.UNAUTHENTICATED],
  )
  await until('the application knows', () => server.cancelled === 3)
})

test('When the application breaks off, the client gets UNAVAILABLE', async (t) => {
  const { client, server } = await startGrpcWorld(t)
  const listed = client.list('open')
  await until('the call is open', () => listed.values.length === 3)

  server.stop()

  assert.equal((await listed.over).status.code, status.UNAVAILABLE)
})

test('A hundred calls share the connections, and one that fails does not disturb the others', async (t) => {
  const { client } = await startGrpcWorld(t)

  const outcomes = await Promise.all(
    Array.from({ length: 100 }, (_, index) => client.unary(index === 50 ? 'fail' : `call ${index}`)),
  )

  assert.deepEqual(
    outcomes.map(({ status: { code } }) => code).filter((code) => code !== status.OK),
    [status.NOT_FOUND],
  )
  assert.deepEqual(outcomes[99]?.values, ['echo call 99'])
})

test('A call that a target did not get goes to another one', async (t) => {
  const server = await startGrpcServer(t)
  const { url, token, gateway } = await startApi(t, {
    targets: ['http://127.0.0.1:1', server.url.origin],
    isHttp2: true,
    upstream: 'protocol: h2c',
    rules: '[{ path: /orders.Orders/*, access_tokens: true }]',
  })
  const client = grpcClient(t, url, { authorization: `Bearer ${token()}` })

  const outcomes = [await client.unary('one'), await client.unary('two'), await client.collect(['a', 'b'])]

  assert.deepEqual(
    outcomes.map(({ values }) => values),
    [['echo one'], ['echo two'], ['a b']],
  )
  assert.ok(gateway.log.some(({ message }) => message === 'upstream.retried'))
})

test('Programs call with an access token', async (t) => {
  const server = await startGrpcServer(t)
  const { url, token } = await startApi(t, {
    application: server.url,
    isHttp2: true,
    upstream: 'protocol: h2c',
    rules: '[{ path: /orders.Orders/*, access_tokens: true }]',
  })
  const calling = (authorization: string): GrpcClient => grpcClient(t, url, { authorization })

  const accepted = await calling(`Bearer ${token()}`).unary('hello')
  const refused = await calling(`Bearer ${token({ aud: 'https://other.example' })}`).unary('hello')

  assert.deepEqual([accepted.values, server.seen[0]?.['x-sub']], [['echo hello'], 'jane'])
  assert.equal(refused.status.code, status.UNAUTHENTICATED)
  assert.match(String(refused.status.metadata.get('www-authenticate')[0]), /^Bearer .*invalid_token/)
})

for (const [type, expected] of [
  ['application/grpc-web+proto', { status: 200, type: 'application/grpc-web+proto', grpc: '16' }],
  ['application/grpc-web-text', { status: 200, type: 'application/grpc-web-text', grpc: '16' }],
  ['application/connect+proto', { status: 401, type: 'application/problem+json', grpc: null }],
  ['application/grpc', { status: 401, type: 'application/problem+json', grpc: null }],
] as const)
  test(`Without a session, a request of ${type} over HTTP/1.1 is refused in its own way`, async (t) => {
    const { url } = await startGrpcWorld(t)

    const response = await fetch(`${url}/orders.Orders/Unary`, {
      method: 'POST',
      headers: { 'content-type': type, accept: 'text/html' },
      redirect: 'manual',
    })

    const { status: code, headers } = response
    assert.deepEqual({ status: code, type: headers.get('content-type'), grpc: headers.get('grpc-status') }, expected)
  })
