import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { test, type TestContext } from 'node:test'
import type { ResolveConfig, UpstreamConfig } from '../../../src/config/model/upstream.ts'
import { createResolver, resolveTargets } from '../../../src/proxy/targets/resolve.ts'
import { type DnsRecords, type DnsServer, startDnsServer } from '../../support/dns-server.ts'
import { until } from '../../support/until.ts'
import { startGateway } from '../support.ts'

const host = 'app.internal'
const srvName = '_http._tcp.app.internal'

function settingsFor({ address }: DnsServer, settings: Partial<ResolveConfig> = {}): ResolveConfig {
  return { ...{ kind: 'a', name: host, scheme: 'http', port: 80, everyMs: 20, servers: [address] }, ...settings }
}

async function targetsOf(t: TestContext, names: Record<string, DnsRecords>, settings: Partial<ResolveConfig> = {}) {
  const config = settingsFor(await startDnsServer(t, names), settings)
  const targets = await resolveTargets(config, createResolver(config))
  return targets.map(({ url, weight, backup }) => `${url.origin} ${weight}${backup ? ' backup' : ''}`)
}

test('Each IPv4 and IPv6 address of a name is a target', async (t) => {
  const found = await targetsOf(
    t,
    { [host]: { a: ['10.0.0.2', '10.0.0.1'], aaaa: ['2001:0db8:0000:0000:0000:0000:0000:0007'] } },
    { port: 8080 },
  )

  assert.deepEqual(found, ['http://10.0.0.1:8080 1', 'http://10.0.0.2:8080 1', 'http://[2001:db8::7]:8080 1'])
})

test('SRV records give port, weight and backups', async (t) => {
  const found = await targetsOf(
    t,
    {
      [srvName]: {
        srv: [
          { priority: 1, weight: 3, port: 8081, host: 'one.internal' },
          { priority: 1, weight: 0, port: 8082, host: 'two.internal' },
          { priority: 5, weight: 1, port: 8083, host: 'two.internal' },
          { priority: 1, weight: 1, port: 8084, host: 'gone.internal' },
        ],
      },
      'one.internal': { a: ['10.0.0.1'] },
      'two.internal': { a: ['10.0.0.2'] },
    },
    { kind: 'srv', name: srvName },
  )

  assert.deepEqual(found, ['http://10.0.0.1:8081 3', 'http://10.0.0.2:8082 1', 'http://10.0.0.2:8083 1 backup'])
})

for (const [what, names, expected] of [
  ['does not exist', {}, /ENOTFOUND/],
  ['has no address', { [host]: {} }, /no address/],
  ['is an alias of itself', { [host]: { cname: host } }, /no address/],
] as const)
  test(`A name that ${what} is an error that names it`, async (t) => {
    await assert.rejects(
      targetsOf(t, names),
      (error: Error) => error.message.includes(host) && expected.test(error.message),
    )
  })

/** Targets with the same port on different loopback addresses. */
async function application(t: TestContext, addresses: readonly string[]): Promise<number> {
  let port = 0
  for (const address of addresses) {
    const server = createServer((_: IncomingMessage, res: ServerResponse) => res.end(address)).listen(port, address)
    await once(server, 'listening')
    t.after(() => server.close().closeAllConnections())
    port = (server.address() as { port: number }).port
  }
  return port
}

async function gatewayFor(t: TestContext, dns: DnsServer, port: number, settings: Partial<UpstreamConfig> = {}) {
  const gateway = await startGateway(t, port, {
    upstream: {
      url: new URL(`http://${host}:${port}`),
      resolve: settingsFor(dns, { port }),
      eject: { failures: 3, statuses: [], forMs: 60_000, atMostMs: 60_000 },
      ...settings,
    },
  })
  gateway.upstreams.start()
  const bodies = async (times: number) => {
    const found: string[] = []
    for (let at = 0; at < times; at++) found.push(await (await fetch(gateway.origin)).text())
    return found
  }
  const nextAnswer = async () => {
    const { questions } = dns
    // Two questions (A and AAAA) may be under way with the former answer.
    await until('the name was resolved again', () => dns.questions >= questions + 5)
  }
  return { ...gateway, bodies, nextAnswer }
}

test('The gateway follows the answers of DNS, and a first request waits for the first answer', async (t) => {
  const port = await application(t, ['127.0.0.1', '127.0.0.2', '127.0.0.3'])
  const dns = await startDnsServer(t, { [host]: { a: ['127.0.0.1', '127.0.0.2'] } })
  const { bodies, nextAnswer } = await gatewayFor(t, dns, port)

  assert.deepEqual((await bodies(2)).toSorted(), ['127.0.0.1', '127.0.0.2'])
  dns.names.set(host, { a: ['127.0.0.3', '127.0.0.2'] })
  await nextAnswer()
  assert.deepEqual((await bodies(2)).toSorted(), ['127.0.0.2', '127.0.0.3'])
})

for (const [what, change] of [
  ['is silent', (dns: DnsServer) => void (dns.isSilent = true)],
  ['says that the name does not exist', (dns: DnsServer) => void dns.names.delete(host)],
  ['says that the name has no address', (dns: DnsServer) => void dns.names.set(host, {})],
] as const)
  test(`While DNS ${what}, the targets of the last answer get the requests`, async (t) => {
    const port = await application(t, ['127.0.0.1'])
    const dns = await startDnsServer(t, { [host]: { a: ['127.0.0.1'] } })
    const { bodies, logged, nextAnswer } = await gatewayFor(t, dns, port)
    assert.deepEqual(await bodies(1), ['127.0.0.1'])

    change(dns)
    if (what === 'is silent') await until('a question came', () => dns.questions > 2)
    else await nextAnswer()

    assert.deepEqual(await bodies(2), ['127.0.0.1', '127.0.0.1'])
    if (what !== 'is silent')
      assert.deepEqual(
        logged.filter(({ message }) => message === 'upstream.not_resolved').map(({ fields }) => fields['name']),
        [host],
      )
  })

test('Without any answer of DNS the client gets 502, and requests succeed once there is one', async (t) => {
  const port = await application(t, ['127.0.0.1'])
  const dns = await startDnsServer(t, {})
  const { origin, bodies, logged, nextAnswer } = await gatewayFor(t, dns, port)

  assert.equal((await fetch(origin)).status, 502)
  assert.match(String(logged.find(({ message }) => message === 'upstream.failed')?.fields['reason']), /app\.internal/)
  dns.names.set(host, { a: ['127.0.0.1'] })
  await nextAnswer()
  assert.deepEqual(await bodies(1), ['127.0.0.1'])
  assert.ok(logged.some(({ message }) => message === 'upstream.resolved'))
})

test('An address that is away is ejected, also when DNS still gives it', async (t) => {
  const port = await application(t, ['127.0.0.1'])
  const dns = await startDnsServer(t, { [host]: { a: ['127.0.0.1', '127.0.0.9'] } })
  const { bodies, logged } = await gatewayFor(t, dns, port)

  assert.deepEqual(new Set(await bodies(12)), new Set(['127.0.0.1']))
  const ejected = logged.filter(({ message }) => message === 'upstream.target_ejected')
  assert.deepEqual(
    ejected.map(({ fields }) => fields['target']),
    [`http://127.0.0.9:${port}`],
  )
})
