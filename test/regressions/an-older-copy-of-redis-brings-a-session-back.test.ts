import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { until } from '../support/until.ts'
import { startWorld, type Replica } from '../support/world.ts'

test('A Redis that is restarted from an older file brings no ended session back, even when the gateways restart too', async (t) => {
  const world = await startWorld(t, { store: 'redis' })
  const [signedOut, stays] = [world.browser(), world.browser('zoe')]
  await signedOut.get(`${world.url}/echo`)
  const sid = world.provider.sessions().at(-1)?.sid ?? ''
  await stays.get(`${world.url}/echo`)
  const redis = world.redis ?? assert.fail('there is no Redis')
  const direct = new Redis(redis.port, '127.0.0.1', { lazyConnect: true })
  await direct.connect()
  await direct.save()
  direct.disconnect()

  assert.deepEqual(await world.provider.endSession(sid), { kind: 'delivered', status: 200 })
  await redis.restart()
  const fresh: Replica = await world.startReplica()
  const refreshes = world.provider.hits('/oauth/token')

  await until('the gateway serves', async () => (await stays.fetch(`${fresh.url}/echo`)).status === 200)
  assert.ok(world.provider.hits('/oauth/token') > refreshes, 'the provider was asked')
  assert.notEqual((await signedOut.fetch(`${fresh.url}/echo`)).status, 200)
  const asked = world.provider.hits('/oauth/token')
  assert.equal((await stays.fetch(`${fresh.url}/echo`)).status, 200)
  assert.equal(world.provider.hits('/oauth/token'), asked, 'nobody is asked about twice')
})

test('A gateway that kept running asks the provider about no session', async (t) => {
  const world = await startWorld(t, { store: 'redis' })
  const [signedOut, stays] = [world.browser(), world.browser('zoe')]
  await signedOut.get(`${world.url}/echo`)
  const sid = world.provider.sessions().at(-1)?.sid ?? ''
  await stays.get(`${world.url}/echo`)
  const redis = world.redis ?? assert.fail('there is no Redis')
  const direct = new Redis(redis.port, '127.0.0.1')
  await direct.save()
  direct.disconnect()
  assert.deepEqual(await world.provider.endSession(sid), { kind: 'delivered', status: 200 })
  const asked = world.provider.hits('/oauth/token')

  await redis.restart()

  await until('the gateway serves', async () => (await stays.fetch(`${world.url}/echo`)).status === 200)
  assert.equal(world.provider.hits('/oauth/token'), asked)
  assert.notEqual((await signedOut.fetch(`${world.url}/echo`)).status, 200)
})
