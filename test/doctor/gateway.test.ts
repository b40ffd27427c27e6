import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { isPrivate } from '../../packages/doctor/connect.ts'
import { gatewayFindings } from '../../packages/doctor/gateway.ts'
import { issueCertificates } from '../support/certificates.ts'
import { freePort } from '../support/free-port.ts'
import { replacePauses } from '../support/pauses.ts'
import { startWorld } from '../support/world.ts'
import { assertUseful, configOf, finding, type Settings } from './support.ts'

async function findingsAbout(t: TestContext, settings: Settings, env = {}) {
  // Where there is no name server, a name is not resolved within the time limit.
  replacePauses(t, { examineMs: 500 })
  const findings = await gatewayFindings(configOf(t, settings), env, Date.now())
  assertUseful(findings)
  return findings
}

test('An external_url that leads to a gateway is fine', async (t) => {
  const { url } = await startWorld(t)

  const findings = await findingsAbout(t, { externalUrl: url })

  assert.equal(finding(findings, 'gateway.external_url').level, 'ok')
})

test('An external_url that leads to another server is a fault; one that does not respond is a warning', async (t) => {
  const server = createServer((_req, res) => void res.writeHead(200).end())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo

  const elsewhere = await findingsAbout(t, { externalUrl: `http://127.0.0.1:${port}` })
  const nowhere = await findingsAbout(t, { externalUrl: `http://127.0.0.1:${await freePort()}` })

  assert.match(finding(elsewhere, 'gateway.external_url').what, /leads to another server, which responds with 200/)
  assert.equal(finding(elsewhere, 'gateway.external_url').level, 'fault')
  assert.equal(finding(nowhere, 'gateway.external_url').level, 'warning')
})

test('external_url with http is a fault; on loopback it is a warning', async (t) => {
  const others = finding(await findingsAbout(t, { externalUrl: 'http://orders.invalid' }), 'gateway.https')
  const trial = await findingsAbout(t, { externalUrl: `http://127.0.0.1:${await freePort()}` })

  assert.equal(others.level, 'fault')
  assert.match(others.why ?? '', /another host below the same domain can set it/)
  assert.equal(finding(trial, 'gateway.https').level, 'warning')
  assert.ok(trial.every(({ what }) => !what.includes('no other host below the same domain')))
})

test('A certificate of listen.tls that ends soon is a warning', async (t) => {
  // The certificates of the tests are valid for two days.
  const { cert, key } = issueCertificates().server
  const settings = `listen: { tls: { cert_file: ${cert}, key_file: ${key} } }`

  const found = finding(
    await findingsAbout(t, { externalUrl: 'https://orders.invalid', settings }),
    'gateway.certificate',
  )

  assert.equal(found.level, 'warning')
  assert.ok(found.what.includes(cert), found.what)
})

test('doctor says what device binding protects from, and what not', async (t) => {
  const externalUrl = 'https://orders.invalid'
  const on = finding(await findingsAbout(t, { externalUrl }), 'gateway.device_binding')
  const store = 'memory\n  device_binding: off'
  const off = finding(await findingsAbout(t, { externalUrl, store }), 'gateway.device_binding')
  const required = { externalUrl, upstream: 'url: http://127.0.0.1:3000\n    device_binding: required' }

  assert.equal(on.level, 'ok')
  assert.match(on.what, /worthless 5 minutes after they were copied; sessions of other browsers are not protected/)
  assert.match(on.what, /neither malware that stays on the device/)
  assert.equal(off.level, 'warning')
  assert.match(
    finding(await findingsAbout(t, required), 'gateway.device_binding').what,
    /other sessions have no access/,
  )
  const ofDomain = { externalUrl, store: 'memory\n  cookie: { domain: orders.invalid }' }
  assert.match(
    finding(await findingsAbout(t, ofDomain), 'gateway.device_binding').todo ?? '',
    /not possible with session\.cookie\.domain/,
  )
  const http = await findingsAbout(t, { externalUrl: 'http://127.0.0.1:1' })
  assert.ok(http.every(({ id }) => id !== 'gateway.device_binding'))
})

test('Each external host is checked, and the cookie stays within each', async (t) => {
  const findings = await findingsAbout(t, {
    externalUrl: 'https://orders.invalid',
    upstream: 'url: http://127.0.0.1:3000\n    external_url: https://wiki.invalid',
  })

  assert.deepEqual(
    findings.filter(({ id }) => id === 'gateway.external_url').map(({ what }) => what.split(' ')[0]),
    ['https://orders.invalid', 'https://wiki.invalid'],
  )
  assert.match(
    finding(findings, 'gateway.cookie').what,
    /no Domain attribute: it is sent to orders\.invalid, wiki\.invalid only/,
  )
})

test('With one session for a domain, doctor names the domain, and tries a host of the wildcard', async (t) => {
  const findings = await findingsAbout(t, {
    externalUrl: 'https://sso.example.invalid',
    store: 'memory\n  cookie: { domain: example.invalid }',
    upstream: 'url: http://127.0.0.1:3000\n    external_url: https://*.apps.example.invalid',
  })

  assert.deepEqual(
    findings.filter(({ id }) => id === 'gateway.external_url').map(({ what }) => what.split(' ')[0]),
    ['https://sso.example.invalid', 'https://gatehouse-doctor.apps.example.invalid'],
  )
  assert.equal(finding(findings, 'gateway.cookie').level, 'warning')
  assert.match(finding(findings, 'gateway.cookie').what, /__Secure-gatehouse is sent to all hosts of example\.invalid/)
})

test('With https, doctor says where TLS ends, and which hosts get the cookie', async (t) => {
  const nowhere = await findingsAbout(t, { externalUrl: 'https://orders.invalid' })
  const proxy = await findingsAbout(t, {
    externalUrl: 'https://orders.invalid',
    settings: 'trusted_proxies: [10.0.0.0/8]',
  })

  assert.match(finding(nowhere, 'gateway.https').what, /neither listen\.tls nor trusted_proxies/)
  assert.equal(finding(proxy, 'gateway.https').level, 'ok')
  assert.match(
    finding(proxy, 'gateway.cookie').what,
    /__Host-gatehouse has no Domain attribute: it is sent to orders\.invalid only/,
  )
})

test('Logout Tokens may not arrive when the provider is on the internet and the gateway is not', async (t) => {
  const far = await findingsAbout(t, { externalUrl: 'https://10.0.0.7', issuer: 'https://8.8.8.8' })
  const near = await findingsAbout(t, { externalUrl: 'https://10.0.0.7', issuer: 'https://10.0.0.8' })

  assert.match(
    finding(far, 'gateway.backchannel_way').why ?? '',
    /https:\/\/10\.0\.0\.7\/\.gatehouse\/backchannel-logout/,
  )
  assert.ok(near.every(({ id }) => id !== 'gateway.backchannel_way'))
})

test('An environment that disables certificate checks is a fault', async (t) => {
  const findings = await findingsAbout(
    t,
    { externalUrl: 'https://orders.invalid' },
    { NODE_TLS_REJECT_UNAUTHORIZED: '0' },
  )

  assert.equal(finding(findings, 'gateway.environment').level, 'fault')
})

test('Private addresses are recognized', () => {
  for (const address of [
    '10.1.2.3',
    '127.0.0.1',
    '172.16.0.1',
    '172.31.9.9',
    '192.168.0.1',
    '100.64.0.1',
    '::1',
    'fd00::1',
    'fe80::1',
  ])
    assert.ok(isPrivate(address), address)
  for (const address of [
    '8.8.8.8',
    '172.15.0.1',
    '172.32.0.1',
    '100.63.0.1',
    '100.128.0.1',
    '192.0.2.1',
    '2001:db8::1',
    '110.0.0.1',
  ])
    assert.ok(!isPrivate(address), address)
})
