import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startWorld, type Replica, type World } from '../support/world.ts'

/** The provider's access tokens live for 20 s, as far as its answers say. */
async function signedIn(world: World) {
  world.provider.bend('/oauth/token', (body) => (body['expires_in'] = 20))
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  return jane
}

test('a replica that stops while nobody waits for its refresh does not take the rotated token along', async (t) => {
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

test('keys that cannot be had do not cost a session its refresh token', async (t) => {
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
