import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type { TLSSocket } from 'node:tls'
import { fetchWhole, startGateway } from './support.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-tls-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))

/** A certificate of its own for each kind of subject alternative name, or nothing where there is no openssl. */
function certificate(subjectAltName: string): { key: string; cert: string } | undefined {
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const options = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2']
  const names = ['-subj', '/CN=upstream', '-addext', `subjectAltName=${subjectAltName}`]
  try {
    execFileSync('openssl', ['req', ...options, ...names, '-keyout', key, '-out', cert], { stdio: 'ignore' })
  } catch {
    return undefined
  }
  return { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') }
}

async function tlsUpstream(t: TestContext, { key, cert }: { key: string; cert: string }): Promise<number> {
  const server = createServer({ key, cert }, (req, res) => {
    res.end(`${(req.socket as TLSSocket).servername || '-'} ${req.headers.host}`)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close().closeAllConnections())
  return (server.address() as AddressInfo).port
}

const byName = certificate('DNS:localhost')
const byAddress = certificate('IP:127.0.0.1')
const skip = byName && byAddress ? false : 'no openssl'

test(
  "the upstream's own name is what its certificate is checked for, whatever the client's Host says",
  { skip },
  async (t) => {
    assert.ok(byName)
    const port = await tlsUpstream(t, byName)
    const url = new URL(`https://localhost:${port}`)
    const { origin } = await startGateway(t, port, { upstream: { url, ca: byName.cert } })

    for (let each = 0; each < 2; each++) assert.equal((await fetchWhole(origin)).body, 'localhost orders.example.com')
  },
)

test('a certificate may be for an address', { skip }, async (t) => {
  assert.ok(byAddress)
  const port = await tlsUpstream(t, byAddress)
  const url = new URL(`https://127.0.0.1:${port}`)
  const { origin } = await startGateway(t, port, { upstream: { url, ca: byAddress.cert } })

  assert.equal((await fetchWhole(origin)).body, '- orders.example.com')
})

test('a certificate of nobody known, or of somebody else, is a 502', { skip }, async (t) => {
  assert.ok(byName && byAddress)
  const port = await tlsUpstream(t, byName)
  const url = new URL(`https://localhost:${port}`)
  const unknown = await startGateway(t, port, { upstream: { url } })
  const other = await startGateway(t, port, {
    upstream: { url: new URL(`https://127.0.0.1:${port}`), ca: byName.cert },
  })

  assert.equal((await fetchWhole(unknown.origin)).status, 502)
  assert.equal((await fetchWhole(other.origin)).status, 502)
})
