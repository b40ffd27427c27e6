import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { connect, createSecureContext, createServer } from 'node:tls'
import { Certificates } from '../../src/listener/certificate.ts'
import { issueCertificates } from '../support/certificates.ts'
import { startHttp2World } from '../support/http2.ts'
import { until } from '../support/until.ts'

const names = ['tls.crt', 'tls.key'] as const
/** A certificate and its key. */
type Pair = readonly [string, string]
const quiet = { debug() {}, info() {}, warn() {}, error() {}, announce() {} }

/** A folder with a certificate, and the certificate that a server would use. */
function watched(t: TestContext, write: (folder: string, pair: Pair) => void) {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-certificate-'))
  const { server: one, client: other } = issueCertificates()
  const pairs = [
    [readFileSync(one.cert, 'utf8'), readFileSync(one.key, 'utf8')],
    [other.cert, other.key],
  ] as const
  const served: string[] = []
  const writePair = (at: number) => write(folder, pairs[at % 2] ?? pairs[0])
  writePair(0)
  const files = { certFile: join(folder, 'tls.crt'), keyFile: join(folder, 'tls.key') }
  const server = { setSecureContext: ({ cert }: { cert?: unknown }) => void served.push(String(cert)) }
  const watching = new Certificates({ ...files, certificates: [], clientCaFile: undefined }, quiet)
  watching.renewIn(server as never, 10)
  t.after(() => {
    watching.close()
    rmSync(folder, { recursive: true })
  })
  return { served, renew: (at: number) => (writePair(at), pairs[at % 2]?.[0] ?? '') }
}

for (const [how, write] of [
  [
    'written over',
    (folder: string, pair: Pair) => {
      for (const [at, name] of names.entries()) writeFileSync(join(folder, name), pair[at] ?? '')
    },
  ],
  [
    'renamed over',
    (folder: string, pair: Pair) => {
      for (const [at, name] of names.entries()) {
        writeFileSync(join(folder, 'new'), pair[at] ?? '')
        renameSync(join(folder, 'new'), join(folder, name))
      }
    },
  ],
  [
    'behind a link, as Kubernetes does it',
    (folder: string, pair: Pair) => {
      const data = mkdtempSync(join(folder, 'data-'))
      for (const [at, name] of names.entries()) writeFileSync(join(data, name), pair[at] ?? '')
      symlinkSync(data, join(folder, 'next'))
      renameSync(join(folder, 'next'), join(folder, '..data'))
      for (const name of names)
        try {
          symlinkSync(join(folder, '..data', name), join(folder, name))
        } catch {
          // The link exists since the first renewal.
        }
    },
  ],
] as const) {
  test(`Each renewed certificate is loaded: ${how}`, async (t) => {
    const { served, renew } = watched(t, write)

    for (const at of [1, 2, 3]) {
      const cert = renew(at)
      await until(`certificate ${at} is served`, () => served.at(-1) === cert)
    }
  })
}

/** A world with the certificate of `startHttp2World`, and one for the host `gatehouse`. */
async function startWithTwo(t: TestContext) {
  const { client } = issueCertificates()
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-certificate-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const [cert, key] = [join(folder, 'tls.crt'), join(folder, 'tls.key')]
  writeFileSync(cert, client.cert)
  writeFileSync(key, client.key)
  return startHttp2World(t, (_req, res) => res.end(), { certificates: `[{ cert_file: ${cert}, key_file: ${key} }]` })
}

test('A client gets the certificate for the host that it asks for, or else the first one', async (t) => {
  const { url } = await startWithTwo(t)
  const subjectFor = (servername: string) =>
    new Promise((resolve, reject) => {
      const socket = connect({ port: Number(new URL(url).port), servername, rejectUnauthorized: false }, () => {
        resolve(socket.getPeerCertificate().subject.CN)
        socket.destroy()
      }).on('error', reject)
    })

  assert.equal(await subjectFor('gatehouse'), 'client')
  assert.equal(await subjectFor('localhost'), 'server')
  assert.equal(await subjectFor('unknown.example.com'), 'server')
})

const hybrid = 'X25519MLKEM768'
let lacksHybrid: string | false = false
try {
  createSecureContext({ ecdhCurve: hybrid })
} catch {
  lacksHybrid = `OpenSSL ${process.versions.openssl} of this Node.js lacks it`
}

for (const ecdhCurve of [undefined, `X25519:${hybrid}`])
  test(
    `${hybrid} is negotiated with a client that offers ${ecdhCurve ?? 'the defaults'}`,
    { skip: lacksHybrid },
    async (t) => {
      const { url } = await startHttp2World(t, (_req, res) => res.end())
      const options = { port: Number(new URL(url).port), rejectUnauthorized: false, ...(ecdhCurve && { ecdhCurve }) }
      const socket = connect(options)
      t.after(() => socket.destroy())
      await once(socket, 'secureConnect')

      // The types of Node.js lack the name of a group that is no curve, and so does Node.js 22.
      const { name } = socket.getEphemeralKeyInfo() as { name?: string }
      if (name === undefined && process.versions.node.startsWith('22.')) return t.skip('Node.js 22 does not tell it')
      assert.equal(name, hybrid)
    },
  )

test('The metrics say when the first certificate ends', async (t) => {
  const world = await startWithTwo(t)

  const [cell] = world.replicas[0]?.metrics.read('gatehouse_certificate_end_timestamp_seconds')?.cells ?? []

  // The certificates of the tests are valid for two days.
  const seconds = Number(cell?.values[0]) - Date.now() / 1000
  assert.ok(seconds > 0 && seconds <= 2 * 24 * 3600, `${seconds} s`)
})

test('Each certificate accepts client certificates of the configured authority only, also after its renewal', async (t) => {
  const { server: files, client } = issueCertificates()
  const pair = { certFile: files.cert, keyFile: files.key }
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-certificate-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const other = { certFile: join(folder, 'tls.crt'), keyFile: join(folder, 'tls.key') }
  writeFileSync(other.certFile, client.cert)
  writeFileSync(other.keyFile, client.key)
  const clientCaFile = join(folder, 'ca.crt')
  writeFileSync(clientCaFile, readFileSync(files.ca))
  const certificates = new Certificates({ ...pair, certificates: [other], clientCaFile }, quiet)
  t.after(() => certificates.close())
  const seen: boolean[] = []
  const server = createServer(certificates.options, (socket) => void seen.push(socket.authorized))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo
  const connectTo = async (servername: string) => {
    const { cert, key } = client
    const socket = connect({ port, servername, cert, key, rejectUnauthorized: false })
    await once(server, 'secureConnection')
    socket.destroy()
  }

  for (const servername of ['localhost', 'gatehouse']) await connectTo(servername)
  assert.deepEqual(seen, [true, true])

  const renewed = t.mock.method(server, 'setSecureContext')
  certificates.renewIn(server, 10)
  // Another authority, which has not issued the certificate of the client.
  writeFileSync(clientCaFile, readFileSync(files.cert))
  await until('the authority is renewed', () => renewed.mock.callCount() > 0)
  for (const servername of ['localhost', 'gatehouse', 'unknown']) await connectTo(servername)
  assert.deepEqual(seen.slice(2), [false, false, false])
})
