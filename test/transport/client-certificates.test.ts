import assert from 'node:assert/strict'
import { createHash, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
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
