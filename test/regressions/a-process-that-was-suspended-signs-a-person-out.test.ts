import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { startWorld, type Replica } from '../support/world.ts'

test('invalid_grant does not end a session whose tokens another process has replaced in the meantime', async (t) => {
  const world = await startWorld(t, { store: 'redis', replicas: 2 })
  world.provider.bend('/oauth/token', (body) => void (body['expires_in'] = 10))
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  const [first, second] = world.replicas as [Replica, Replica]
  // The first request to refresh reaches the provider last, as if its process had been suspended
  // longer than its lease.
  let late = () => {}
  const held = new Promise<void>((resolve) => {
    const mend = world.provider.fault('/oauth/token', (_req, _res, pass) => {
      late = pass
      mend()
      resolve()
    })
  })
  world.moveClock(11_000)

  const suspended = jane.fetch(`${first.url}/echo`)
  await held
  const redis = new Redis(world.redis?.url ?? '')
  t.after(() => redis.disconnect())
  assert.equal(await redis.del(...(await redis.keys('*:l:*'))), 1, 'its lease expires')
  const other = await jane.fetch(`${second.url}/echo`)
  late()

  assert.equal(other.status, 200)
  assert.equal((await suspended).status, 200)
})
