import assert from 'node:assert/strict'
import { test } from 'node:test'
import { childrenOf, startCommand } from '../support/command.ts'
import { prepareGateway } from '../support/gateway-process.ts'
import { startRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

test('A worker that is killed while the gateway starts is replaced, and the first one serves on', async (t) => {
  const redis = await startRedis(t)
  const around = await prepareGateway(t, { store: `{ redis: { url: "${redis.url}" } }`, settings: 'workers: 2' })
  const gateway = startCommand(t, ['run', '--config', around.file], { env: around.env })
  await until('the second worker starts', () => childrenOf(gateway.pid).length === 2)
  const [first, second] = childrenOf(gateway.pid)

  process.kill(second as number, 'SIGKILL')

  const died = await gateway.said('worker.died')
  assert.equal(died['pid'], second)
  await gateway.said('gatehouse is ready')
  await until('there are two again', () => childrenOf(gateway.pid).length === 2)
  assert.ok(childrenOf(gateway.pid).includes(first as number))
  assert.equal((await fetch(`${around.url}/static/logo`)).status, 200)
})
