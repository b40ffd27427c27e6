import assert from 'node:assert/strict'
import { posix } from 'node:path'
import { test } from 'node:test'
import { documentsIn, gatewayConfig, inDockerfile, read, secretFilesOf } from './examples.ts'

interface Service {
  readonly image: string
  readonly command?: readonly string[]
  readonly ports?: readonly string[]
  readonly networks: readonly string[]
  readonly volumes?: readonly string[]
  readonly secrets?: readonly string[]
  readonly init?: boolean
  readonly read_only?: boolean
  readonly cap_drop?: readonly string[]
  readonly stop_grace_period?: string
  readonly depends_on?: readonly string[]
}
interface Compose {
  readonly services: Readonly<Record<'gatehouse' | 'orders' | 'redis', Service>>
  readonly networks: Readonly<
    Record<string, { readonly internal?: true; readonly ipam?: { config: [{ subnet: string; gateway: string }] } }>
  >
  readonly secrets: Readonly<Record<string, { readonly file: string }>>
}

const [compose] = documentsIn<Compose>(read('examples/compose/compose.yaml')) as [Compose]
const text = read('examples/compose/gatehouse/gateway.yaml')
const config = gatewayConfig(text)
const { gatehouse, orders, redis } = compose.services
const shared = (one: Service, other: Service) => one.networks.filter((name) => other.networks.includes(name))

test('The application and Redis publish no port and share an internal network with the gateway only', () => {
  for (const service of [orders, redis]) {
    assert.equal(service.ports, undefined)
    assert.equal(service.networks.length, 1)
    for (const network of service.networks) assert.equal(compose.networks[network]?.internal, true)
    assert.equal(shared(service, gatehouse).length, 1)
  }
  assert.deepEqual(shared(orders, redis), [])
})

test('The gateway listens on the published port, on this machine only, and finds the application and its secrets', () => {
  const [upstream] = config.upstreams

  assert.deepEqual(gatehouse.ports, [`127.0.0.1:8080:${config.listen.port}`])
  assert.equal(upstream?.url.hostname, 'orders')
  assert.deepEqual(orders.command, ['--port', upstream?.url.port])
  assert.ok(gatehouse.networks.includes(shared(orders, gatehouse)[0] ?? ''))
  assert.deepEqual(
    secretFilesOf(text).toSorted(),
    (gatehouse.secrets ?? []).map((name) => `/run/secrets/${name}`).toSorted(),
  )
  assert.deepEqual(Object.keys(compose.secrets).toSorted(), gatehouse.secrets?.toSorted())
  const [file = ''] = (JSON.parse(inDockerfile('CMD')) as string[]).slice(-1)
  // The folder is mounted, because a mounted file would never show a change.
  assert.deepEqual(gatehouse.volumes, [`./gatehouse:${posix.dirname(file)}:ro`])
})

test('The gateway trusts only the proxy of the machine for client addresses', () => {
  const [{ gateway } = { gateway: '' }] = compose.networks['front']?.ipam?.config ?? []

  assert.match(text, new RegExp(`^trusted_proxies: \\[${gateway.replaceAll('.', '\\.')}\\]$`, 'm'))
  assert.equal(config.trustedProxies.length, 1)
})

test('The gateway runs read-only and without capabilities, and has time to drain before the application stops', () => {
  assert.equal(gatehouse.read_only, true)
  assert.equal(gatehouse.init, true)
  assert.deepEqual(gatehouse.cap_drop, ['ALL'])
  assert.ok(Number.parseInt(gatehouse.stop_grace_period ?? '10s', 10) * 1000 > config.shutdown.drainTimeoutMs)
  assert.deepEqual(gatehouse.depends_on?.toSorted(), ['orders', 'redis'])
  // The HEALTHCHECK sends its request to loopback.
  assert.equal(config.admin?.host, '127.0.0.1')
  assert.match(redis.command?.join(' ') ?? '', /--maxmemory-policy noeviction --save {2}--appendonly yes/)
})
