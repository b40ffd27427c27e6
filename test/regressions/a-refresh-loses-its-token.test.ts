import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { commandsSinceStart, type RedisServer } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { startWorld, type Replica, type World } from '../support/world.ts'

/** The responses of the provider say that its access tokens live for 20 s. */
async function signedIn(world: World) {
  world.provider.bend('/oauth/token', (body) => (body['expires_in'] = 20))
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  return jane
}

test('A replica that stops during a refresh stores the rotated token first, even if no request waits for it', async (t) => {
  const world = await startWorld(t, { store: 'redis', replicas: 2 })
  const [first, second] = world.replicas as [Replica, Replica]
  const jane = await signedIn(world)
  let release = () => {}
  const asked = new Promise<void>((resolve) => {
    world.provider.fault('/oauth/token', (_req, _res, pass) => {
      release = pass
      resolve()
    })
  })
  world.moveClock(16_000)
  assert.equal((await jane.fetch(`${first.url}/echo`)).status, 200)
  await asked

  const stopped = first.stop()
  setImmediate(() => release())
  await stopped
  world.moveClock(10_000)

  assert.equal((await jane.fetch(`${second.url}/echo`)).status, 200)
})

test('A session keeps its refresh token when the keys of the provider are unavailable', async (t) => {
  const world = await startWorld(t, { store: 'redis' })
  const jane = await signedIn(world)
  const { port } = (world.replicas[0] as Replica).gateway.address
  await world.replicas[0]?.stop()
  await world.startReplica({ port })
  const heal = world.provider.fault('/oauth/jwks', (_req, res) => void res.writeHead(503).end())
  world.moveClock(21_000)
  assert.equal((await jane.fetch(`${world.url}/echo`)).status, 503)

  heal()
  world.moveClock(5_000)

  assert.equal((await jane.fetch(`${world.url}/echo`)).status, 200)
})

test('A rotated token is not lost when the store fails for a moment during the refresh', async (t) => {
  const world = await startWorld(t, { store: 'redis' })
  const jane = await signedIn(world)
  const redis = world.redis as RedisServer
  const admin = new Redis(redis.port, '127.0.0.1')
  t.after(() => admin.disconnect())
  // Each attempt to replace a session reads its version first.
  const attempts = async () => (await commandsSinceStart(redis)).get('hget') ?? 0
  let before = Infinity
  world.provider.fault('/oauth/token', (_req, _res, pass) => {
    void attempts()
      .then((sofar) => (before = sofar))
      .then(() => admin.config('SET', 'maxmemory', '1'))
      .then(pass)
  })
  world.moveClock(21_000)

  let hasResponse = false
  const asked = jane.fetch(`${world.url}/echo`).finally(() => (hasResponse = true))
  // The pauses between this many attempts take more than half a second together.
  await until('the store has refused the tokens often', async () => hasResponse || (await attempts()) >= before + 8)
  await admin.config('SET', 'maxmemory', '0')

  assert.equal((await asked).status, 200)
})
