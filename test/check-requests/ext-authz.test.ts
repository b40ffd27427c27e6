import assert from 'node:assert/strict'
import { connect } from 'node:http2'
import { test, type TestContext } from 'node:test'
import { status } from '@grpc/grpc-js'
import { issueCertificates } from '../support/certificates.ts'
import { decide, startDecisionPoint } from '../support/decision-point.ts'
import { freePort } from '../support/free-port.ts'
import { type AskedWorld, clientCertOf, startAskedWorld } from './asking.ts'
import { type CheckResponse, type EnvoyClient, envoyClient, type HeaderOption } from './envoy-client.ts'

interface HttpAttributes {
  readonly headers?: Readonly<Record<string, string>>
  readonly [attribute: string]: unknown
}

interface Envoy {
  readonly world: AskedWorld
  readonly port: number
  /** Asks about a page load of the wiki with these attributes. */
  check(http?: HttpAttributes, source?: string, certificate?: string): Promise<CheckResponse>
  readonly call: EnvoyClient['call']
}

/** A gateway that Envoy asks over gRPC, and a client with the messages of Envoy. */
async function startEnvoy(
  t: TestContext,
  { settings = 'trusted_proxies: [127.0.0.1]', ...wiki }: Parameters<typeof startAskedWorld>[1] = {},
): Promise<Envoy> {
  const port = await freePort()
  const listen = `ext_authz: { listen: 127.0.0.1:${port}, message_size: 8kb }`
  const world = await startAskedWorld(t, { ...wiki, settings: `${settings}\n${listen}` })
  const { call } = envoyClient(t, port)
  const { host } = new URL(world.url)
  return {
    world,
    port,
    call,
    check: ({ headers, ...http } = {}, source = '192.0.2.7', certificate = '') =>
      call('Check', {
        attributes: {
          source: {
            address: { socket_address: { address: source, port_value: 4711 } },
            ...{ principal: 'spiffe://x', certificate },
          },
          request: {
            time: { seconds: 1_700_000_000, nanos: 5 },
            http: {
              ...{
                id: '1',
                method: 'GET',
                path: '/wiki/page?a=1',
                host,
                scheme: 'http',
                protocol: 'HTTP/1.1',
                size: -1,
              },
              headers: { ':path': '/wiki/page?a=1', accept: 'text/html', 'x-request-id': 'envoy-1', ...headers },
              ...http,
            },
          },
          context_extensions: { route: 'wiki' },
        },
      }),
  }
}

test('Over gRPC, the certificate is the one that Envoy has verified, and never a field of its client', async (t) => {
  const { client } = issueCertificates()
  const { check } = await startEnvoy(t, {
    wiki: 'client_cert_header: true',
    wikiRules: '- { path: /wiki/api/*, client_certificates: true, unauthenticated: 401 }',
  })
  const headers = { 'client-cert': clientCertOf(client.cert ?? '') }
  const api = { path: '/wiki/api/x', headers }

  const forged = await check(api)
  const verified = await check(api, undefined, encodeURIComponent(client.cert ?? ''))

  assert.equal(forged.denied_response?.status.code, 401)
  assert.equal(headersIn(verified.ok_response?.headers)['x-remote-user'], 'certificate/CN=client')
  assert.ok(verified.ok_response?.headers_to_remove.includes('client-cert'))
})

function headersIn(options: readonly HeaderOption[] = []): Record<string, string> {
  return Object.fromEntries(options.map(({ header: { key, value } }) => [key, value]))
}

test('Envoy gets the identity headers, and the names of the fields to remove', async (t) => {
  const { world, check } = await startEnvoy(t)
  const cookie = await world.signIn('jane')

  const { status: result, ok_response: ok } = await check({
    headers: { cookie: `theme=dark; ${cookie}`, x_remote_user: 'forged', 'x-original-url': '/x', 'x.groups': 'forged' },
  })

  assert.equal(result.code, 0)
  const headers = headersIn(ok?.headers)
  assert.deepEqual([headers['x-remote-user'], headers['cookie']], ['jane', 'theme=dark'])
  // OVERWRITE_IF_EXISTS_OR_ADD
  assert.ok(ok?.headers.every(({ append_action }) => append_action === 2))
  for (const name of ['x_remote_user', 'x-original-url', 'x.groups', 'x-nickname'])
    assert.ok(ok?.headers_to_remove.includes(name), name)
})

test('Envoy gets a redirect to the sign-in, and the page of a refusal, with status, headers and content', async (t) => {
  const { world, check } = await startEnvoy(t)
  const cookie = await world.signIn('samir')

  const redirected = await check()
  const refused = await check({ path: '/wiki/admin/users', headers: { cookie } })

  assert.equal(redirected.status.code, 7)
  assert.equal(redirected.denied_response?.status.code, 303)
  assert.match(headersIn(redirected.denied_response?.headers)['location'] ?? '', /sign-in\?return_to=%2Fwiki%2Fpage/)
  assert.equal(refused.denied_response?.status.code, 403)
  assert.match(refused.denied_response?.body ?? '', /^<!doctype html>/i)
})

test('An ended session loses its cookie by way of Envoy', async (t) => {
  const { world, check } = await startEnvoy(t)
  const cookie = await world.signIn('jane')
  await world.provider.endSession(world.provider.sessions()[0]?.sid ?? '')

  const { denied_response } = await check({ headers: { cookie } })

  const cookies = denied_response?.headers.filter(({ header }) => header.key === 'set-cookie') ?? []
  // Both are added, so neither replaces the other.
  assert.deepEqual(cookies.map(({ header }) => header.value.replace(/=.*/s, '')).toSorted(), [
    'WIKISESSION',
    'WIKISESSION',
    'gatehouse',
  ])
})

test('The access log has the request that Envoy asks about, with the ID and the client of Envoy', async (t) => {
  const { world, check } = await startEnvoy(t)

  await check({ method: 'DELETE', headers: { 'x-forwarded-for': '203.0.113.9' } })

  const line = world.replicas[0]?.access.find(({ asked_by }) => asked_by !== undefined)
  const { request, method, path, client, asked_by, status: code } = line ?? {}
  assert.deepEqual(
    [request, method, path, client, asked_by, code],
    ['envoy-1', 'DELETE', '/wiki/page', '192.0.2.7', '127.0.0.1', 401],
  )
})

for (const [what, http, source] of [
  ['method', { method: '' }],
  ['path', { path: '' }],
  ['host', { host: '' }],
  ['scheme', { scheme: '' }],
  ['source.address', {}, ''],
  ['known method', { method: 'get' }],
  ['malformed', { host: 'a b' }],
  ['is not a path', { path: 'wiki/page' }],
  ['http nor https', { scheme: 'gopher' }],
  ['X-Forwarded-For', {}, 'unix'],
] as const)
  test(`A CheckRequest that does not say which request is meant is refused: ${what}`, async (t) => {
    const { world, check } = await startEnvoy(t)
    const cookie = await world.signIn('jane')

    const { denied_response } = await check({ headers: { cookie }, ...http }, source)

    assert.equal(denied_response?.status.code, 400)
    const line = world.replicas[0]?.log.find(({ message }) => message === 'request.refused')
    assert.match(String(line?.fields['reason']), new RegExp(what))
  })

test('A client that is no trusted proxy is disconnected, and the log says so', async (t) => {
  const { world, port } = await startEnvoy(t, { settings: 'trusted_proxies: [10.0.0.1]' })

  await assert.rejects(sendBytes(port, frame([])))

  const line = world.replicas[0]?.log.find(({ fields }) => String(fields['hint']).includes('trusted_proxies'))
  assert.ok(line)
})

test('A message beyond message_size is RESOURCE_EXHAUSTED, and the connection serves the next one', async (t) => {
  const { check } = await startEnvoy(t)

  await assert.rejects(check({ body: 'x'.repeat(1_000_000) }), { code: status.RESOURCE_EXHAUSTED })

  assert.equal((await check()).denied_response?.status.code, 303)
})

test('An unknown method is UNIMPLEMENTED', async (t) => {
  const { call } = await startEnvoy(t)

  await assert.rejects(call('Other', {}), { code: status.UNIMPLEMENTED })
})

test('An empty CheckRequest is refused', async (t) => {
  const { call } = await startEnvoy(t)

  assert.equal((await call('Check', {})).denied_response?.status.code, 400)
})

/** Sends bytes as a call, without a gRPC client. */
function sendBytes(port: number, bytes: Uint8Array, type = 'application/grpc'): Promise<readonly [unknown, unknown]> {
  const session = connect(`http://127.0.0.1:${port}`)
  const path = '/envoy.service.auth.v3.Authorization/Check'
  const stream = session.request({ ':method': 'POST', ':path': path, 'content-type': type, te: 'trailers' })
  return new Promise((resolve, reject) => {
    let found: readonly [unknown, unknown] = [undefined, undefined]
    stream.on('response', (headers) => (found = [headers[':status'], headers['grpc-status'] ?? found[1]]))
    stream.on('trailers', (trailers) => (found = [found[0], trailers['grpc-status']]))
    session.on('error', reject)
    stream.on('error', reject)
    stream.resume().on('close', () => {
      session.close()
      resolve(found)
    })
    stream.end(bytes)
  })
}

const frame = (message: readonly number[], length = message.length) => Uint8Array.from([0, 0, 0, 0, length, ...message])

for (const [what, bytes, expected] of [
  ['no bytes', Uint8Array.from([]), '3'],
  ['a prefix that is cut off', Uint8Array.from([0, 0, 0]), '3'],
  ['a compressed message', Uint8Array.from([1, 0, 0, 0, 0]), '12'],
  ['a length beyond the end', frame([], 9), '3'],
  ['two messages', Uint8Array.from([...frame([]), ...frame([])]), '3'],
  // These are refused with 400 in a CheckResponse.
  ['a field longer than the message', frame([0x0a, 0x7f]), '0'],
  ['a number without an end', frame([0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]), '0'],
  ['an unknown wire type', frame([0x0b]), '0'],
  ['the field number 0', frame([0x02, 0x00]), '0'],
] as const)
  test(`Bytes that are no CheckRequest do no harm: ${what}`, async (t) => {
    const { port, check } = await startEnvoy(t)

    assert.deepEqual(await sendBytes(port, bytes), [200, expected])
    assert.equal((await check()).denied_response?.status.code, 303)
  })

test('Content of another type is 415', async (t) => {
  const { port } = await startEnvoy(t)

  assert.deepEqual(await sendBytes(port, frame([]), 'application/json'), [415, undefined])
})

test('The listener closes with the gateway, also with a connection open', async (t) => {
  const { world, port, check } = await startEnvoy(t)
  await check()

  await world.replicas[0]?.stop()

  await assert.rejects(sendBytes(port, frame([])))
})

test('Envoy gets no permission when the session ends while the decision is awaited', async (t) => {
  const point = await startDecisionPoint(t)
  const { world, check } = await startEnvoy(t, { wiki: `authorize_with: { url: "${point.url}", timeout: 10s }` })
  const cookie = await world.signIn()
  const held = Promise.withResolvers<() => void>()
  point.answer = (req, res, evaluation) => held.resolve(() => decide({ decision: true })(req, res, evaluation))
  const response = check({ headers: { cookie } })
  const permit = await held.promise
  const [session] = world.provider.sessions()
  await world.postLogoutToken({
    logout_token: await world.provider.logoutToken({ sid: session?.sid ?? '', sub: 'jane' }),
  })

  permit()

  assert.equal((await response).denied_response?.status.code, 401)
})
