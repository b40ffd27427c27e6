import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { connect } from 'node:http2'
import { Agent, request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test, type TestContext } from 'node:test'
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from 'node:tls'
import { auditEventsIn } from '../support/audit-schema.ts'
import { issueCertificates } from '../support/certificates.ts'
import { startWorld, type World } from '../support/world.ts'

const { server: files } = issueCertificates()
const folder = dirname(files.ca)
const ca = readFileSync(files.ca, 'utf8')

interface Wanted {
  readonly subject?: string
  /** Subject alternative names, one an entry: `DNS:billing.internal`. */
  readonly names?: readonly string[]
  /** Its own authority signs it. */
  readonly isOwn?: boolean
  readonly usage?: string
}

/** A certificate of the authority of the tests. */
function certificate(
  name: string,
  { subject = `/O=Example/CN=${name}`, names = [], isOwn = false, usage = 'clientAuth' }: Wanted,
) {
  const at = (ending: string) => join(folder, `${name}.${ending}`)
  const openssl = (...args: string[]) => execFileSync('openssl', args, { stdio: 'ignore' })
  const alternatives = names.map((each, index) => each.replace(':', `.${index} = `))
  const lines = [`extendedKeyUsage = ${usage}`, ...(names.length > 0 ? ['subjectAltName = @names', '[names]'] : [])]
  writeFileSync(at('ext'), [...lines, ...alternatives, ''].join('\n'))
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', at('key')]
  openssl('req', ...newKey, '-subj', subject, '-out', at('csr'))
  const signer = isOwn
    ? ['-signkey', at('key')]
    : ['-CA', files.ca, '-CAkey', join(folder, 'ca.key'), '-CAcreateserial']
  openssl('x509', '-req', '-in', at('csr'), ...signer, '-days', '2', '-extfile', at('ext'), '-out', at('crt'))
  return { key: readFileSync(at('key'), 'utf8'), cert: readFileSync(at('crt'), 'utf8') }
}

const billing = certificate('billing', { names: ['DNS:billing.internal', 'URI:spiffe://example/billing'] })
const stranger = certificate('stranger', { isOwn: true, names: ['DNS:billing.internal'] })

const rules = `rules:
      - { path: /api/*, client_certificates: true, require: { claim: certificate.dns, any_of: [billing.internal] } }
      - { path: /every/*, client_certificates: true }`
const headers = `X-Sub: sub
      X-Cn: certificate.cn
      X-Uri: certificate.uri`

interface Sent {
  readonly status: number
  readonly fields: IncomingHttpHeaders
  readonly body: string
}

async function start(
  t: TestContext,
  { isTls, settings = '' }: { readonly isTls: boolean; readonly settings?: string },
) {
  const seen: IncomingHttpHeaders[] = []
  const server = createServer((req, res) => {
    seen.push(req.headers)
    res.end('hello')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close().closeAllConnections())
  const upstream = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const tls = `cert_file: "${files.cert}", key_file: "${files.key}", client_ca_file: "${files.ca}"`
  const world = await startWorld(t, {
    ...{ upstream, headers, settings, upstreamSettings: rules },
    ...(isTls && {
      listen: (address: string) => `{ address: "${address}", tls: { ${tls} } }`,
      externalUrl: (port: number) => `https://localhost:${port}`,
    }),
  })
  return { world, seen }
}

/** Its audit events, each of which matches the schema. */
const auditsOf = ({ replicas: [replica] }: World) => auditEventsIn(replica?.log ?? [])

/** A request over TLS with a certificate. */
async function send(t: TestContext, world: World, path: string, options: object = {}): Promise<Sent> {
  const agent = new Agent({ keepAlive: true, ca, ...options })
  t.after(() => agent.destroy())
  return sendBy(agent, world, path)
}

async function sendBy(agent: Agent, { url }: World, path: string, fields = {}, method = 'GET'): Promise<Sent> {
  const sent = request(`${url}${path}`, { agent, method, headers: { accept: 'application/json', ...fields } }).end()
  const [response] = await once(sent, 'response')
  return { status: response.statusCode, fields: response.headers, body: await text(response) }
}

test('A program with a certificate reaches the application with the names in it', async (t) => {
  const { world, seen } = await start(t, { isTls: true })

  assert.equal((await send(t, world, '/api/x', billing)).status, 200)
  const [fields] = seen
  assert.deepEqual(
    [fields?.['x-sub'], fields?.['x-cn'], fields?.['x-uri']],
    ['certificate/O=Example, CN=billing', 'billing', 'spiffe://example/billing'],
  )
  assert.equal(world.replicas[0]?.access[0]?.['caller'], 'client_certificate')
})

test('Without a certificate, a program gets 401 as before, and other pages work', async (t) => {
  const { world, seen } = await start(t, { isTls: true })

  assert.equal((await send(t, world, '/api/x')).status, 401)
  assert.equal((await send(t, world, '/.gatehouse/health')).status < 500, true)
  assert.deepEqual(seen, [])
})

test('A certificate of another authority is refused, whatever names it has', async (t) => {
  const { world, seen } = await start(t, { isTls: true })

  for (const path of ['/api/x', '/every/x']) assert.equal((await send(t, world, path, stranger)).status, 403)
  assert.deepEqual(seen, [])
  const [refused] = auditsOf(world)
  assert.equal(refused?.message, 'caller.refused')
  assert.match(String(refused?.fields['reason']), /SELF_SIGNED|self.signed/i)
})

test('A certificate whose names a rule does not accept is denied', async (t) => {
  const { world, seen } = await start(t, { isTls: true })
  const other = certificate('other', { names: ['DNS:billing.internal.example.org'] })

  const { status, body } = await send(t, world, '/api/x', other)
  assert.equal(status, 403)
  assert.match(body, /"detail":"You do not have access to this page."/)
  assert.deepEqual(seen, [])
  assert.equal((await send(t, world, '/every/x', other)).status, 200)
})

test('A name with a comma is one name', async (t) => {
  const { world } = await start(t, { isTls: true })
  const sly = certificate('sly', { names: ['DNS:a.example, DNS:billing.internal'] })

  assert.equal((await send(t, world, '/api/x', sly)).status, 403)
})

test('A certificate that ends while its connection is open is refused from then on', async (t) => {
  const { world } = await start(t, { isTls: true })
  const agent = new Agent({ keepAlive: true, maxSockets: 1, ca, ...billing })
  t.after(() => agent.destroy())
  assert.equal((await sendBy(agent, world, '/api/x')).status, 200)

  world.moveClock(3 * 24 * 60 * 60 * 1000)

  assert.equal((await sendBy(agent, world, '/api/x')).status, 403)
  assert.match(String(auditsOf(world).at(-1)?.fields['reason']), /expired/)
})

test('A page of another site cannot use the certificate of a browser', async (t) => {
  const { world, seen } = await start(t, { isTls: true })
  const agent = new Agent({ ca, ...billing })

  const fields = { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }
  const { status } = await sendBy(agent, world, '/api/x', fields, 'POST')

  assert.equal(status, 403)
  assert.deepEqual(seen, [])
})

const inHeader = ({ cert }: { readonly cert: string }) => `:${cert.replaceAll(/-----[^-]*-----|\s/g, '')}:`

async function sendBehindProxy(world: World, path: string, clientCert: string): Promise<number> {
  const response = await fetch(`${world.url}${path}`, {
    headers: { 'client-cert': clientCert, accept: 'application/json' },
  })
  return response.status
}

const trusting = 'trusted_proxies: [127.0.0.1]\nclient_cert_header: true'

test('Behind a trusted proxy, the certificate is that of Client-Cert, and the application does not get the header', async (t) => {
  const { world, seen } = await start(t, { isTls: false, settings: trusting })

  assert.equal(await sendBehindProxy(world, '/api/x', inHeader(billing)), 200)
  assert.equal(seen[0]?.['x-cn'], 'billing')
  assert.equal(seen[0]?.['client-cert'], undefined)
})

for (const [what, value, reason] of [
  ['is no certificate', ':AAAA:', /cannot be read/],
  ['is not between colons', inHeader(billing).slice(1), /between colons/],
  ['is repeated', `${inHeader(billing)}, ${inHeader(billing)}`, /between colons/],
  ['is a certificate for servers only', inHeader(certificate('web', { usage: 'serverAuth' })), /not for clients/],
] as const)
  test(`A Client-Cert that ${what} is refused`, async (t) => {
    const { world } = await start(t, { isTls: false, settings: trusting })

    assert.equal(await sendBehindProxy(world, '/api/x', value), 403)
    assert.match(String(auditsOf(world).at(-1)?.fields['reason']), reason)
  })

for (const [what, settings] of [
  ['of a proxy that is not trusted', 'trusted_proxies: [192.0.2.1]\nclient_cert_header: true'],
] as const)
  test(`Client-Cert ${what} is ignored, and never reaches the application`, async (t) => {
    const { world, seen } = await start(t, { isTls: false, settings })

    assert.equal(await sendBehindProxy(world, '/api/x', inHeader(billing)), 401)
    assert.deepEqual(seen, [])
  })

test('A certificate counts over HTTP/2 too', async (t) => {
  const { world, seen } = await start(t, { isTls: true })
  const session = connect(world.url, { ca, ...billing })
  t.after(() => session.close())

  const stream = session.request({ ':path': '/api/x', accept: 'application/json' }).end()
  const [fields] = await once(stream, 'response')
  stream.resume()
  await once(stream, 'end')

  assert.equal(fields[':status'], 200)
  assert.equal(seen[0]?.['x-cn'], 'billing')
})

for (const version of ['TLSv1.2', 'TLSv1.3'] as const)
  test(`A resumed ${version} session is that of its own certificate, also with HTTP/2`, async (t) => {
    const { world, seen } = await start(t, { isTls: true })
    const port = Number(new URL(world.url).port)
    const open = (options: ConnectionOptions) =>
      connectTls({ ca, port, servername: 'localhost', minVersion: version, maxVersion: version, ...options })
    const first = open(certificate('first', { names: ['DNS:first.internal'] }))
    const begun = once(first, 'session')
    first.write(`GET /every/x HTTP/1.1\r\nHost: localhost:${port}\r\n\r\n`)
    const [session] = (await begun) as [Buffer]
    t.after(() => first.destroy())

    // The client has another certificate now.
    for (const protocol of ['http/1.1', 'h2']) {
      const socket = open({ ...billing, session, ALPNProtocols: [protocol] })
      await once(socket, 'secureConnect')
      const [path, host] = ['/api/x', `localhost:${port}`]
      const status = protocol === 'h2' ? await statusOverHttp2(socket, path) : await statusOn(socket, path, host)
      assert.deepEqual([socket.isSessionReused(), status], [true, 403], protocol)
      socket.destroy()
    }
    assert.ok(seen.every((fields) => fields['x-cn'] === 'first'))
  })

async function statusOn(socket: TLSSocket, path: string, host: string): Promise<number> {
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nAccept: application/json\r\n\r\n`)
  const [bytes] = await once(socket, 'data')
  return Number(String(bytes).split(' ')[1])
}

async function statusOverHttp2(socket: TLSSocket, path: string): Promise<number> {
  const session = connect(`https://localhost:${socket.remotePort}`, { createConnection: () => socket })
  const stream = session.request({ ':path': path, accept: 'application/json' }).end()
  const [fields] = await once(stream, 'response')
  return Number(fields[':status'])
}
