import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import type { RequestListener } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type { TLSSocket } from 'node:tls'
import { fetchWhole, startGateway, trusting } from '../proxy/support.ts'
import { until } from '../support/until.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-tls-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))

/**
 * A separate certificate for each kind of subject alternative name; nothing without openssl.
 */
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

const namesAsked: RequestListener = (req, res) => {
  res.end(`${(req.socket as TLSSocket).servername || '-'} ${req.headers.host}`)
}

async function tlsUpstream(
  t: TestContext,
  { key, cert }: { key: string; cert: string },
  application = namesAsked,
): Promise<number> {
  const server = createServer({ key, cert }, application).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close().closeAllConnections())
  return (server.address() as AddressInfo).port
}

const byName = certificate('DNS:localhost')
const byAddress = certificate('IP:127.0.0.1')
const skip = byName && byAddress ? false : 'no openssl'

test(
  'The certificate is checked for the host of the upstream URL, not for the Host of the client',
  { skip },
  async (t) => {
    assert.ok(byName)
    const port = await tlsUpstream(t, byName)
    const url = new URL(`https://localhost:${port}`)
    const { origin } = await startGateway(t, port, { upstream: { url, tls: trusting(byName.cert) } })

    for (let each = 0; each < 2; each++) assert.equal((await fetchWhole(origin)).body, 'localhost orders.example.com')
  },
)

test('A certificate may contain an IP address', { skip }, async (t) => {
  assert.ok(byAddress)
  const port = await tlsUpstream(t, byAddress)
  const url = new URL(`https://127.0.0.1:${port}`)
  const { origin } = await startGateway(t, port, { upstream: { url, tls: trusting(byAddress.cert) } })

  assert.equal((await fetchWhole(origin)).body, '- orders.example.com')
})

test('A certificate of an unknown issuer or of another host causes a 502', { skip }, async (t) => {
  assert.ok(byName && byAddress)
  const port = await tlsUpstream(t, byName)
  const url = new URL(`https://localhost:${port}`)
  const unknown = await startGateway(t, port, { upstream: { url } })
  const other = await startGateway(t, port, {
    upstream: { url: new URL(`https://127.0.0.1:${port}`), tls: trusting(byName.cert) },
  })

  assert.equal((await fetchWhole(unknown.origin)).status, 502)
  assert.equal((await fetchWhole(other.origin)).status, 502)
})

test('An unsolicited response is never delivered to a request that waits for the connection', { skip }, async (t) => {
  assert.ok(byName)
  const sized = (content: string) => `HTTP/1.1 200 OK\r\nContent-Length: ${content.length}\r\n\r\n${content}`
  let respondFirst = (): void => {}
  const asked: (string | undefined)[] = []
  const port = await tlsUpstream(t, byName, ({ url, socket }, res) => {
    asked.push(url)
    if (url === '/first') respondFirst = () => void socket.write(sized('/first') + sized('poison'))
    else res.end(url)
  })
  const url = new URL(`https://localhost:${port}`)
  const { origin, server } = await startGateway(t, port, {
    upstream: { url, tls: trusting(byName.cert), maxConnections: 1 },
  })
  let arrived = 0
  server.on('request', () => (arrived += 1))

  const responses = ['/first', '/second', '/third'].map((path) => fetchWhole(origin, { path }))
  await until('all have arrived, and the first is asked for', () => arrived === 3 && asked.length === 1)
  respondFirst()

  for (const { body } of await Promise.all(responses)) assert.notEqual(body, 'poison')
})

test(
  'Requests that wait for a connection are still sent when the connections of a generation are closed',
  { skip },
  async (t) => {
    assert.ok(byName)
    const held: (() => void)[] = []
    const port = await tlsUpstream(t, byName, (req, res) => {
      if (req.url === '/first') held.push(() => res.end('first'))
      else res.end('second')
    })
    const upstream = { url: new URL(`https://localhost:${port}`), tls: trusting(byName.cert), maxConnections: 1 }
    const { origin, upstreams } = await startGateway(t, port, { upstream })
    const first = fetchWhole(`${origin}/first`)
    await until('the only connection is used', () => held.length > 0)
    const second = fetchWhole(`${origin}/second`)
    await until('a request waits', () => upstreams.loads()[0]?.[1].waiting === 1)

    const closed = upstreams.close()
    assert.equal((await second).body, 'second')
    held[0]?.()
    assert.equal((await first).body, 'first')
    await closed
  },
)
