import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createHash, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type { TLSSocket } from 'node:tls'
import type { UpstreamTlsConfig } from '../../src/config/model/upstream.ts'
import { fetchWhole, startGateway, trusting } from '../proxy/support.ts'
import { issueCertificates } from '../support/certificates.ts'

const { server: files, client } = issueCertificates()
const ca = readFileSync(files.ca, 'utf8')
const cert = readFileSync(files.cert, 'utf8')

/** An application that responds with the name in the certificate of its client, and SNI. */
async function application(t: TestContext, options = {}): Promise<number> {
  const keys = { key: readFileSync(files.key), cert, ca, requestCert: true, rejectUnauthorized: true, ...options }
  const server = createServer(keys, (req, res) => {
    const socket = req.socket as TLSSocket
    res.end(`${socket.getPeerCertificate().subject?.CN ?? '-'} ${socket.servername || '-'}`)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close().closeAllConnections())
  return (server.address() as AddressInfo).port
}

function gatewayTo(t: TestContext, port: number, tls: Partial<UpstreamTlsConfig>) {
  const url = new URL(`https://localhost:${port}`)
  return startGateway(t, port, { upstream: { url, tls: { ...trusting(ca), ...tls } } })
}

test('An application that requires a client certificate gets that of the gateway', async (t) => {
  const { origin } = await gatewayTo(t, await application(t), { clientCertificate: client })

  assert.equal((await fetchWhole(origin)).body, 'client localhost')
  assert.equal((await fetchWhole(origin)).body, 'client localhost')
})

test('Without the client certificate that an application requires, the log names the reason', async (t) => {
  const { origin, logged } = await gatewayTo(t, await application(t), {})

  assert.equal((await fetchWhole(origin)).status, 502)
  assert.match(String(logged[0]?.fields['reason']), /certificate required|handshake failure|alert/i)
})

test('The certificate is verified for server_name, which is also sent as SNI', async (t) => {
  const port = await application(t, { requestCert: false })
  const [right, wrong] = await Promise.all([
    gatewayTo(t, port, { serverName: 'orders.example.test' }),
    gatewayTo(t, port, { serverName: 'orders.example.org' }),
  ])

  assert.equal((await fetchWhole(right.origin)).body, '- orders.example.test')
  assert.equal((await fetchWhole(wrong.origin)).status, 502)
  assert.match(String(wrong.logged[0]?.fields['reason']), /altnames/)
})

const pin = createHash('sha256')
  .update(new X509Certificate(cert).publicKey.export({ type: 'spki', format: 'der' }))
  .digest('base64')

test('A certificate must have one of the pinned keys', async (t) => {
  const port = await application(t, { requestCert: false })
  const other = createHash('sha256').update('another key').digest('base64')
  const [right, wrong] = await Promise.all([
    gatewayTo(t, port, { pinnedKeys: [other, pin] }),
    gatewayTo(t, port, { pinnedKeys: [other] }),
  ])

  assert.equal((await fetchWhole(right.origin)).status, 200)
  assert.equal((await fetchWhole(wrong.origin)).status, 502)
  assert.ok(String(wrong.logged[0]?.fields['reason']).includes(`sha256/${pin}`))
})

test('A pinned key does not replace the other checks of a certificate', async (t) => {
  const port = await application(t, { requestCert: false })
  const { origin, logged } = await gatewayTo(t, port, { pinnedKeys: [pin], ca: undefined })
  const elsewhere = await gatewayTo(t, port, { pinnedKeys: [pin], serverName: 'orders.example.org' })

  assert.equal((await fetchWhole(origin)).status, 502)
  assert.match(String(logged[0]?.fields['reason']), /certificate/)
  assert.equal((await fetchWhole(elsewhere.origin)).status, 502)
})

test('When the certificate of a target has expired, requests go to another target', async (t) => {
  const expired = expiredCertificate()
  const servers = [await targetOf(t, 'one'), await targetOf(t, 'two')]
  const targets = servers.map(({ port }) => ({
    ...{ url: new URL(`https://localhost:${port}`), socketPath: undefined, weight: 1, backup: false },
  }))
  const eject = { failures: 1, statuses: [], forMs: 60_000, atMostMs: 60_000 }
  const tls = trusting(ca)
  const { origin, logged } = await startGateway(t, 1, { upstream: { targets, tls, eject, keepAliveMs: 0 } })
  const bodies = async () => [(await fetchWhole(origin)).body, (await fetchWhole(origin)).body]
  assert.deepEqual(await bodies(), ['one', 'two'])

  servers[0]?.server.setSecureContext(expired)

  assert.deepEqual(await bodies(), ['two', 'two'])
  const reasons = logged.filter(({ message }) => message === 'upstream.target_ejected')
  assert.match(String(reasons[0]?.fields['reason']), /expired/)
})

async function targetOf(t: TestContext, name: string) {
  const server = createServer({ key: readFileSync(files.key), cert }, (_, res) => res.end(name)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close().closeAllConnections())
  return { server, port: (server.address() as AddressInfo).port }
}

/** A certificate of the same authority that has expired. */
function expiredCertificate(): { readonly key: Buffer; readonly cert: Buffer } {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-expired-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const at = (name: string) => join(folder, name)
  const openssl = (...args: string[]) => execFileSync('openssl', args, { stdio: 'ignore' })
  const authority = dirname(files.ca)
  writeFileSync(at('index'), '')
  writeFileSync(
    at('ca.cnf'),
    `[ca]\ndefault_ca = all\n[all]\nnew_certs_dir = ${folder}\ndatabase = ${at('index')}\nrand_serial = yes\ndefault_md = sha256\npolicy = any\n[any]\ncommonName = supplied\n[names]\nsubjectAltName = DNS:localhost\n`,
  )
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', at('key')]
  openssl('req', ...newKey, '-subj', '/CN=server', '-out', at('csr'))
  const ca = ['-config', at('ca.cnf'), '-cert', join(authority, 'ca.crt'), '-keyfile', join(authority, 'ca.key')]
  const dates = ['-startdate', '20200101000000Z', '-enddate', '20200102000000Z']
  openssl('ca', '-batch', ...ca, ...dates, '-extensions', 'names', '-in', at('csr'), '-out', at('crt'), '-notext')
  return { key: readFileSync(at('key')), cert: readFileSync(at('crt')) }
}
