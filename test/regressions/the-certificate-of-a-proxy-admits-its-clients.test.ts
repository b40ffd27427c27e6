import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, request } from 'node:https'
import { test, type TestContext } from 'node:test'
import { issueCertificates } from '../support/certificates.ts'
import { startWorld } from '../support/world.ts'

const { server: files, client } = issueCertificates()

/** The status of a request without credentials, which a proxy with a certificate carries. */
async function statusBehind(t: TestContext, settings: string): Promise<number> {
  const tls = `{ cert_file: ${files.cert}, key_file: ${files.key}, client_ca_file: ${files.ca} }`
  const { url } = await startWorld(t, {
    listen: (address) => `{ address: "${address}", tls: ${tls} }`,
    externalUrl: (port) => `https://localhost:${port}`,
    headers: 'X-Sub: sub',
    upstreamSettings: 'rules: [{ path: /*, client_certificates: true, unauthenticated: 401 }]',
    settings,
  })
  const agent = new Agent(client)
  t.after(() => agent.destroy())
  const sent = request(`${url}/`, { agent, headers: { 'X-Forwarded-For': '192.0.2.9' } }).end()
  const [response] = await once(sent, 'response')
  response.resume()
  await once(response, 'end')
  return response.statusCode
}

for (const settings of ['trusted_proxies: [127.0.0.1]', 'trusted_proxies: [127.0.0.1]\nclient_cert_header: true'])
  test(`The certificate of a trusted proxy is not that of its clients: ${settings.replace('\n', ', ')}`, async (t) => {
    assert.equal(await statusBehind(t, settings), 401)
  })

test('The certificate of a client that is no trusted proxy counts', async (t) => {
  assert.equal(await statusBehind(t, 'trusted_proxies: [192.0.2.1]'), 200)
})
