import assert from 'node:assert/strict'
import { test } from 'node:test'
import { elsewhere } from '../support/certificates.ts'
import { assertWholeJourney, startClient } from '../support/client-journey.ts'
import { withFeatures } from '../support/client-keys.ts'
import { startConnectProxy } from '../support/connect-proxy.ts'
import { tlsProvider } from '../support/tls-provider.ts'

test('Everything that the gateway sends to the provider goes through the proxy, and nothing else does', async (t) => {
  const { tls, browserCa, caFile } = tlsProvider(t)
  const proxy = await startConnectProxy(t)
  const journey = await startClient(t, {
    settings: `egress_proxy: { url: '${proxy.url}' }`,
    providerSettings: caFile,
    browserCa,
    provider: { tls, host: elsewhere, adjust: withFeatures({}) },
  })
  const { world, jane, log } = journey

  await assertWholeJourney(journey)
  await jane.get(`${world.url}/.gatehouse/sign-out`)

  const { host } = new URL(world.provider.issuer)
  assert.deepEqual([...new Set(proxy.tunnels)], [host])
  assert.deepEqual(proxy.others, [])
  assert.doesNotMatch(log(), /"level":"error"/)
})

test('While the proxy is away, signed-in people are served, and the log names the proxy', async (t) => {
  const { tls, browserCa, caFile } = tlsProvider(t)
  const proxy = await startConnectProxy(t)
  const { world, jane, log } = await startClient(t, {
    settings: `egress_proxy: { url: '${proxy.url}' }`,
    session: 'idle_timeout: 8h',
    providerSettings: caFile,
    browserCa,
    provider: { tls, host: elsewhere, adjust: withFeatures({}) },
  })
  assert.equal((await jane.get(`${world.url}/echo`)).status, 200, log())
  await world.provider.down()
  proxy.refuse(503)

  assert.equal((await jane.send(`${world.url}/echo`)).status, 200)
  world.moveClock(11 * 60_000)
  const late = await jane.send(`${world.url}/echo`)

  assert.equal(late.status, 503)
  assert.ok(log().includes(`through the proxy ${proxy.url}: `), log())
})
