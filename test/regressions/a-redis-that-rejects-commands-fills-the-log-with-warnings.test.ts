import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { startCommand } from '../support/command.ts'
import { prepareGateway } from '../support/gateway-process.ts'
import { startRedis } from '../support/redis.ts'

test('A Redis that rejects many commands at once causes no warning of Node.js about listeners', async (t) => {
  const [primary, replica] = [await startRedis(t), await startRedis(t)]
  const direct = new Redis(replica.port, '127.0.0.1')
  t.after(() => direct.disconnect())
  await direct.replicaof('127.0.0.1', primary.port)
  const around = await prepareGateway(t, { store: `{ redis: { url: "${replica.url}" } }` })
  const gateway = startCommand(t, ['run', '--config', around.file], { env: around.env })

  await gateway.said('store.unavailable')
  await gateway.said('gatehouse is ready')

  assert.doesNotMatch(gateway.err(), /MaxListenersExceededWarning/)
})
