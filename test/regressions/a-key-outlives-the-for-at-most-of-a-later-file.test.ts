import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { basic, makeKey, send, signedIn, startKeyWorld } from '../support/key-world.ts'
import { runReplica } from '../support/world.ts'

test('A key that was made with a longer for_at_most is refused after the time of the present one', async (t) => {
  const world = await startKeyWorld(t, { store: 'redis' })
  const key = await makeKey(await signedIn(world), world)
  const yaml = readFileSync(world.replicas[0]?.file ?? '', 'utf8').replace(/^listen: .*/m, 'listen: 127.0.0.1:0')
  let moved = 0
  const shorter = yaml.replace('for_at_most: 90d, idle: 30d', 'for_at_most: 10m, idle: 10m')
  const { url } = await runReplica(t, shorter, { now: () => Date.now() + moved })
  const status = async () => (await send(`${url}/echo`, basic(key))).status

  moved = 9 * 60_000
  assert.equal(await status(), 200)
  moved = 11 * 60_000
  assert.equal(await status(), 401)
})
