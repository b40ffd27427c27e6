import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { open, type Recorder, settings, tick } from '../session/redis-stores.ts'
import { until } from '../session/store-contract.ts'
import { startCommand } from '../support/command.ts'
import { prepareGateway } from '../support/gateway-process.ts'
import { gatehouseWith } from '../support/pauses.ts'
import { startCluster } from '../support/redis-cluster.ts'
import { startRedis } from '../support/redis.ts'

const address = (port: number) => new URL(`redis://127.0.0.1:${port}`)

function line(log: Recorder, message: string) {
  return log.lines.find((each) => each.message === message)?.fields
}

test('A gateway whose Redis is a replica is not ready, and the log has the words of Redis and what to do', async (t) => {
  const [primary, replica] = [await startRedis(t), await startRedis(t)]
  const direct = new Redis(replica.port, '127.0.0.1')
  t.after(() => direct.disconnect())
  await direct.replicaof('127.0.0.1', primary.port)
  const around = await prepareGateway(t, { store: `{ redis: { url: "${replica.url}" } }` })
  const gateway = startCommand(t, ['run', '--config', around.file], {
    env: around.env,
    program: gatehouseWith({ waitForDependenciesMs: 300 }),
  })

  const unavailable = await gateway.said('store.unavailable')

  assert.match(String(unavailable['reason']), /^READONLY /)
  assert.equal(unavailable['hint'], 'Use the address of the primary instead of a replica.')
  await gateway.said('gatehouse is ready')
  // While it connects again, the reason is another one.
  await until(tick, async () => {
    const ready = await fetch(`${around.adminUrl}/ready`)
    assert.equal(ready.status, 503)
    return ((await ready.json()) as { store: string }).store.includes('READONLY')
  })
})

test('One node of a Cluster as url is not available, and the log says to use cluster', async (t) => {
  const cluster = await startCluster(t)
  const [node] = cluster.nodes
  const { store, log } = open(t, { ...settings, kind: 'redis', url: address(node?.port ?? 0) })

  await until(tick, () => log.messages().includes('store.available'))
  await assert.rejects(store.ping(), /MOVED/)

  await until(tick, () => log.messages().includes('store.rejects_commands'))
  assert.equal(
    line(log, 'store.rejects_commands')?.['hint'],
    'It is a node of a Cluster: use session.store.redis.cluster.',
  )
})
