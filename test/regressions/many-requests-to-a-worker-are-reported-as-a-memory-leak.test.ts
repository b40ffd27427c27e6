import assert from 'node:assert/strict'
import { test } from 'node:test'
import { request } from 'undici'
import { childrenOf, startCommand } from '../support/command.ts'
import { prepareGateway } from '../support/gateway-process.ts'
import { startRedis } from '../support/redis.ts'

test('Many concurrent requests to a worker cause no leak warning, and all of them end when the worker ends', async (t) => {
  const redis = await startRedis(t)
  const store = `{ redis: { url: "${redis.url}" } }`
  const around = await prepareGateway(t, { store, settings: 'workers: 2', page: '{}' })
  const gateway = startCommand(t, ['run', '--config', around.file], { env: around.env })
  await gateway.said('gatehouse is ready')
  const [hanging = 0] = childrenOf(gateway.pid)
  process.kill(hanging, 'SIGSTOP')

  const pages = Array.from({ length: 20 }, async () => {
    const { statusCode, body } = await request(`${around.adminUrl}/`)
    await body.dump()
    return statusCode
  })
  process.kill(hanging, 'SIGKILL')

  assert.deepEqual(new Set(await Promise.all(pages)), new Set([200]))
  assert.doesNotMatch(gateway.err(), /MaxListenersExceededWarning/)
})
