import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { issueCertificates } from '../support/certificates.ts'
import { inTime } from '../support/in-time.ts'
import { startWorld } from '../support/world.ts'

const { server } = issueCertificates()
const tls = `tls: { cert_file: ${server.cert}, key_file: ${server.key} }`

/**
 * Opens a connection that sends no request, then a second one that is served, so that the gateway
 * has the first. Resolves to the text that the first one gets until it ends, once the gateway has
 * stopped.
 */
async function stopWith(
  t: TestContext,
  listen: string,
  drain: string,
  open: (port: number) => Socket,
): Promise<string> {
  const world = await startWorld(t, { drain, listen: (address) => `{ address: "${address}"${listen} }` })
  const [replica] = world.replicas
  assert.ok(replica)
  const { port } = replica.gateway.address
  const silent = open(port)
  t.after(() => silent.destroy())
  let text = ''
  silent.on('error', () => {}).on('data', (part: Buffer) => (text += part.toString('latin1')))
  await once(silent, listen.includes('tls') && 'encrypted' in silent ? 'secureConnect' : 'connect')
  const served = listen.includes('tls')
    ? connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
    : connect(port, '127.0.0.1')
  t.after(() => served.destroy())
  served.on('error', () => {}).write('GET /.gatehouse/session HTTP/1.1\r\nHost: h\r\n\r\n')
  await once(served, 'data')
  const closing = replica.gateway.close()
  try {
    await inTime(10_000, () => closing)
  } finally {
    silent.destroy()
    await closing
  }
  return text
}

const plain = (port: number) => connect(port, '127.0.0.1')
const secure = (port: number) => connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })

const cases = [
  ['on the plain path', '', plain],
  ['of Node’s server', ', plain_path: false', plain],
  ['over TLS', `, ${tls}`, secure],
  ['over TLS, of Node’s server', `, plain_path: false, ${tls}`, secure],
] as const

for (const [what, listen, open] of cases)
  test(`A stop does not wait for a connection without a request, ${what}`, async (t) => {
    assert.equal(await stopWith(t, listen, '1h', open), '')
  })

test('A stop closes a connection whose TLS handshake has not begun at the drain timeout', async (t) => {
  assert.equal(await stopWith(t, `, ${tls}`, '0s', plain), '')
})
