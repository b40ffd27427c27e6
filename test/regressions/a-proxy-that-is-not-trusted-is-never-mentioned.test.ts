import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import type { SubjectFindings } from '../../packages/doctor/examine.ts'
import { issueCertificates } from '../support/certificates.ts'
import { startCommand } from '../support/command.ts'
import { prepareGateway } from '../support/gateway-process.ts'
import { startWorld, type World } from '../support/world.ts'

const { server: tls } = issueCertificates()

function warnings({ replicas }: World) {
  return (replicas[0]?.log ?? []).filter(({ message }) => message === 'proxy.not_trusted').map(({ fields }) => fields)
}

test('The log names a peer that sends the fields of a proxy and is not trusted, once, with the line to add', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()

  for (const headers of [
    { 'x-forwarded-for': '192.0.2.1', 'x-forwarded-proto': 'https' },
    { forwarded: 'for=192.0.2.1' },
  ])
    await jane.send(`${world.url}/echo`, { headers })

  const [warning, ...more] = warnings(world)
  assert.deepEqual(more, [])
  assert.equal(warning?.['peer'], '127.0.0.1')
  assert.equal(warning['fields'], 'x-forwarded-for, x-forwarded-proto')
  assert.match(String(warning['hint']), /set trusted_proxies: \[127\.0\.0\.1\]/)
})

test('The log does not name a trusted proxy, nor a client that sends no fields of a proxy', async (t) => {
  const trusting = await startWorld(t, { settings: 'trusted_proxies: [127.0.0.1]' })
  const other = await startWorld(t)

  await trusting.browser().send(`${trusting.url}/echo`, { headers: { 'x-forwarded-for': '192.0.2.1' } })
  await other.browser().send(`${other.url}/echo`)

  assert.deepEqual([...warnings(trusting), ...warnings(other)], [])
})

/** A proxy that ends TLS for a gateway, and says so with `X-Forwarded-Proto`. */
async function startTlsProxy(t: TestContext, gateway: string): Promise<string> {
  const files = { cert: readFileSync(tls.cert), key: readFileSync(tls.key) }
  const server = createServer(files, (req, res) => {
    const headers = { ...req.headers, 'x-forwarded-for': '192.0.2.1', 'x-forwarded-proto': 'https' }
    const onward = request(
      new URL(req.url ?? '/', gateway),
      { method: req.method, headers, agent: false },
      (response) => {
        res.writeHead(response.statusCode ?? 502, response.headers)
        response.pipe(res)
      },
    )
    req.pipe(onward)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}`
}

for (const [who, trusted, level, what] of [
  ['that is not trusted', '[10.1.2.3]', 'fault', /takes the request for one over http/],
  ['that is trusted', '[127.0.0.1]', 'ok', /leads to a Gatehouse$/],
] as const)
  test(`The doctor recognizes a proxy ${who}`, async (t) => {
    const around = await prepareGateway(t, { settings: `trusted_proxies: ${trusted}` })
    const url = await startTlsProxy(t, around.url)
    writeFileSync(around.file, readFileSync(around.file, 'utf8').replace(/^external_url: .*$/m, `external_url: ${url}`))
    const gateway = startCommand(t, ['run', '--config', around.file], { env: around.env })
    await gateway.said('gatehouse is ready')

    const env = { ...around.env, NODE_EXTRA_CA_CERTS: tls.ca }
    const told = startCommand(t, ['doctor', '--config', around.file, '--format', 'json'], { env })
    await told.ended

    const { examined } = JSON.parse(told.out()) as { examined: SubjectFindings[] }
    const found = examined.flatMap(({ findings }) => findings).find(({ id }) => id === 'gateway.external_url')
    assert.equal(found?.level, level, JSON.stringify(found))
    assert.match(found.what, what)
  })
