import assert from 'node:assert/strict'
import { test } from 'node:test'
import { httpUpstream, startGateway } from '../proxy/support.ts'
import { startDnsServer } from '../support/dns-server.ts'
import { until } from '../support/until.ts'

test('A request that waits for DNS gets its response, although a reload replaces its configuration', async (t) => {
  const { port } = await httpUpstream(t, (_, res) => res.end('hello'))
  const dns = await startDnsServer(t, { 'app.test': { a: ['127.0.0.1'] } })
  dns.isSilent = true
  const url = new URL(`http://app.test:${port}`)
  const resolve = {
    kind: 'a',
    name: 'app.test',
    scheme: 'http',
    port,
    servers: [dns.address],
    everyMs: 60_000,
  } as const
  const { origin, upstreams } = await startGateway(t, port, { upstream: { url, resolve } })
  upstreams.start()
  const loaded = fetch(origin)
  await until('the request waits', () => upstreams.loads()[0]?.[1].requests === 1)

  // As after a reload. DNS servers are asked again.
  const closed = upstreams.close()
  dns.isSilent = false

  assert.equal((await loaded).status, 200)
  await closed
})
