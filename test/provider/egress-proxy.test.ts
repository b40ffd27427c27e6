import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test, type TestContext } from 'node:test'
import { check } from '../../src/cli/check.ts'
import { proxyFor } from '../../src/config/hosts.ts'
import { loadConfig } from '../../src/config/load.ts'
import { createOutbound, type OutboundSettings } from '../../src/provider/outbound.ts'
import { elsewhere, issueCertificates } from '../support/certificates.ts'
import { recordingTerminal, folderWith } from '../support/command-line.ts'
import { startConnectProxy } from '../support/connect-proxy.ts'
import { formatDiagnostics } from '../support/diagnostics.ts'
import { tlsServer } from '../support/tls-servers.ts'
import { until } from '../support/until.ts'

/** The settings of the provider in a file with these lines, in this environment. */
function loaded(
  t: TestContext,
  settings: string,
  env: Readonly<Record<string, string>>,
  issuer = 'https://id.invalid',
) {
  const yaml = `version: 1
external_url: https://orders.example.com
${settings}
provider:
  issuer: ${issuer}
  client_id: orders
  client_secret: { env: CLIENT_SECRET }
upstreams: { orders: { url: 'http://127.0.0.1:3000' } }
`
  const file = `${folderWith(t, { 'gateway.yaml': yaml })}/gateway.yaml`
  const whole = { CLIENT_SECRET: 'correct horse battery staple', PROXY_PASSWORD: 'swordfish and chips', ...env }
  return { file, env: whole, result: loadConfig(file, whole) }
}

function providerOf(t: TestContext, settings: string, env: Readonly<Record<string, string>> = {}) {
  const { result } = loaded(t, settings, env)
  assert.ok(result.ok, result.ok ? '' : formatDiagnostics(result.diagnostics))
  return result.config.providers[0]
}

function outboundOf(t: TestContext, settings: OutboundSettings) {
  const outbound = createOutbound(settings)
  t.after(() => outbound.close())
  return outbound
}

test('A request to the provider goes through the proxy, in a tunnel, with its credentials', async (t) => {
  const { server } = issueCertificates()
  const port = await tlsServer(t, server)
  const proxy = await startConnectProxy(t, { port })
  const config = providerOf(
    t,
    `egress_proxy: { url: '${proxy.url}', username: gatehouse, password: { env: PROXY_PASSWORD } }`,
  )
  const { fetch } = outboundOf(t, { ...config, ca: readFileSync(server.ca, 'utf8'), timeoutMs: 5_000 })

  // The certificate is for localhost, which the proxy replaces.
  await assert.rejects(fetch('https://id.invalid/token', {}), /ERR_TLS_CERT_ALTNAME_INVALID/)

  assert.deepEqual(proxy.tunnels, ['id.invalid:443'])
  assert.deepEqual(proxy.others, [])
  assert.deepEqual(proxy.credentials, [`Basic ${Buffer.from('gatehouse:swordfish and chips').toString('base64')}`])
})

test('A provider on this machine, and a host of no_proxy, is reached without the proxy', async (t) => {
  const { server } = issueCertificates()
  const port = await tlsServer(t, server)
  const proxy = await startConnectProxy(t, { port })
  const config = providerOf(t, `egress_proxy: { url: '${proxy.url}', no_proxy: [id.invalid] }`)
  const { fetch } = outboundOf(t, { ...config, ca: readFileSync(server.ca, 'utf8'), timeoutMs: 5_000 })

  assert.equal((await fetch(`https://localhost:${port}/`, {})).status, 200)
  await assert.rejects(fetch('https://id.invalid/token', {}), /GET https:\/\/id\.invalid\/token: (?!.*proxy)/)

  assert.deepEqual(proxy.tunnels, [])
})

test('A proxy that refuses, or that is away, is named in the error, without its credentials', async (t) => {
  const proxy = await startConnectProxy(t, { port: 1 })
  const config = providerOf(t, '', { https_proxy: proxy.url.replace('://', '://gatehouse:swordfish@') })
  const { fetch } = outboundOf(t, { ...config, timeoutMs: 5_000 })
  proxy.refuse(407)

  await assert.rejects(fetch('https://id.invalid/token', { method: 'POST' }), (error: Error) => {
    assert.match(error.message, /^POST https:\/\/id\.invalid\/token through the proxy http:\/\/127\.0\.0\.1:\d+: .*407/)
    assert.doesNotMatch(`${error.message} ${String(error.stack)}`, /swordfish/)
    return true
  })
  assert.deepEqual(proxy.credentials, [`Basic ${Buffer.from('gatehouse:swordfish').toString('base64')}`])
})

test('After a proxy has hung, it is used again', async (t) => {
  const { server } = issueCertificates()
  const port = await tlsServer(t, server)
  const proxy = await startConnectProxy(t, { port })
  const config = providerOf(t, `egress_proxy: { url: '${proxy.url}' }`)
  const { fetch } = outboundOf(t, { ...config, ca: readFileSync(server.ca, 'utf8'), timeoutMs: 500 })
  const resume = proxy.hang()

  const stuck = Array.from({ length: 40 }, () => fetch(`https://${elsewhere}/`, {}))
  for (const outcome of await Promise.allSettled(stuck)) {
    assert.equal(outcome.status, 'rejected')
    assert.match(String(outcome.reason), /through the proxy .*: no response within 500 ms/)
  }
  resume()

  await until('a request succeeds', () =>
    fetch(`https://${elsewhere}/`, {}).then(
      ({ status }) => status === 200,
      () => false,
    ),
  )
})

test('The proxy itself can have TLS, with its own authority', async (t) => {
  const { server } = issueCertificates()
  const textOf = (file: string) => readFileSync(file, 'utf8')
  const port = await tlsServer(t, server)
  const proxy = await startConnectProxy(t, { port, tls: { cert: textOf(server.cert), key: textOf(server.key) } })
  const config = providerOf(t, `egress_proxy: { url: '${proxy.url}', ca_file: ${server.ca} }`)
  const { fetch } = outboundOf(t, { ...config, timeoutMs: 5_000 })

  // The tunnel is there. The authority of the proxy is not one of the provider.
  await assert.rejects(fetch('https://id.invalid/', {}), /SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_VERIFY|UNABLE_TO_GET/)

  assert.deepEqual(proxy.tunnels, ['id.invalid:443'])
})

for (const [what, env, expected] of [
  ['HTTPS_PROXY', { HTTPS_PROXY: 'http://proxy:3128' }, 'http://proxy:3128'],
  ['the lower case first', { HTTPS_PROXY: 'http://upper:1', https_proxy: 'http://lower:1' }, 'http://lower:1'],
  ['HTTP_PROXY when there is no other', { HTTP_PROXY: 'http://proxy:3128' }, 'http://proxy:3128'],
  ['a proxy without a scheme', { HTTPS_PROXY: 'proxy:3128' }, 'http://proxy:3128'],
  ['an empty variable', { HTTPS_PROXY: '', https_proxy: '' }, undefined],
  ['NO_PROXY with the host', { HTTPS_PROXY: 'http://proxy:1', NO_PROXY: 'other, id.invalid' }, undefined],
  ['NO_PROXY with the domain', { HTTPS_PROXY: 'http://proxy:1', NO_PROXY: '.invalid' }, undefined],
  ['NO_PROXY with a star before the domain', { HTTPS_PROXY: 'http://proxy:1', no_proxy: '*.invalid' }, undefined],
  ['NO_PROXY with all hosts', { HTTPS_PROXY: 'http://proxy:1', no_proxy: '*' }, undefined],
  ['NO_PROXY with the port', { HTTPS_PROXY: 'http://proxy:1', no_proxy: 'id.invalid:443' }, undefined],
  ['NO_PROXY with another port', { HTTPS_PROXY: 'http://p:1', no_proxy: 'id.invalid:8443' }, 'http://p:1'],
  ['NO_PROXY with a part of a name', { HTTPS_PROXY: 'http://p:1', no_proxy: 'd.invalid' }, 'http://p:1'],
  ['NO_PROXY with what is no host', { HTTPS_PROXY: 'http://p:1', no_proxy: '10.0.0.0/99,a b,://' }, 'http://p:1'],
] as const)
  test(`The proxy of the environment: ${what}`, (t) => {
    const { egressProxy } = providerOf(t, '', env)

    assert.equal(proxyFor(new URL('https://id.invalid'), egressProxy)?.url.origin, expected)
  })

test('A range of addresses in no_proxy is for addresses in URLs', (t) => {
  const { egressProxy } = providerOf(t, `egress_proxy: { url: 'http://p:1', no_proxy: ['10.0.0.0/8', 'fd00::/8'] }`)
  const isDirect = (url: string) => proxyFor(new URL(url), egressProxy) === undefined

  assert.ok(isDirect('https://10.1.2.3/'))
  assert.ok(isDirect('https://[fd00::1]:8443/'))
  assert.ok(!isDirect('https://11.1.2.3/'))
  assert.ok(!isDirect('https://[2001:db8::1]/'))
  assert.ok(!isDirect('https://id.invalid/'))
})

test('The file is stronger than the environment, and can switch the proxy off', (t) => {
  const env = { HTTPS_PROXY: 'http://env:1', NO_PROXY: 'id.invalid' }
  const of = (settings: string) => proxyFor(new URL('https://id.invalid'), providerOf(t, settings, env).egressProxy)

  assert.equal(of('egress_proxy: { url: http://file:1, no_proxy: [] }')?.url.origin, 'http://file:1')
  assert.equal(of(`egress_proxy: { no_proxy: ['*'] }`), undefined)
  assert.equal(of(''), undefined)
})

test('An environment variable that names no HTTP proxy is an error that does not repeat it', (t) => {
  for (const HTTPS_PROXY of ['socks5://user:swordfish@proxy:1080', 'http://swordfish:x@:']) {
    const { result } = loaded(t, '', { HTTPS_PROXY })
    const text = result.ok ? 'ok' : formatDiagnostics(result.diagnostics)

    assert.match(text, /egress_proxy: the environment variable HTTPS_PROXY is not the http or https URL of a proxy/)
    assert.doesNotMatch(text, /swordfish/)
  }
})

test('gatehouse check says which proxy is used, without its password', async (t) => {
  const { file, env } = loaded(t, '', { HTTPS_PROXY: 'http://gatehouse:swordfish@proxy:3128' })
  const { said, terminal } = recordingTerminal(env)

  assert.equal(await check({ ...terminal, file }), 0)

  assert.match(said.out, /through the proxy http:\/\/proxy:3128 \(the environment variable HTTPS_PROXY\)/)
  assert.doesNotMatch(said.out + said.err, /swordfish/)
})
