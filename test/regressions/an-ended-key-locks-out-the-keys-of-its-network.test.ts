import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { basic, makeKey, send, signedIn, startKeyWorld } from '../support/key-world.ts'
import { until } from '../support/until.ts'

const anyKey = () => `ghk_${randomBytes(48).toString('base64url')}`

test('A program that repeats an ended key keeps no other program of its address from its first request', async (t) => {
  const world = await startKeyWorld(t, { store: 'redis' })
  const key = await makeKey(await signedIn(world), world)
  // A replica that does not have the key in memory.
  const { url } = await world.startReplica()
  const ended = anyKey()

  for (let sent = 0; sent < 30; sent += 1) assert.equal((await send(`${url}/echo`, basic(ended))).status, 401)

  assert.equal((await send(`${url}/echo`, basic(key))).status, 200)
})

test('A flood of wrong keys does not lock out a key that was right at the same address', async (t) => {
  const world = await startKeyWorld(t, { store: 'redis', redisSettings: 'timeout: 300ms' })
  const { url, log } = world.replicas[0] ?? assert.fail()
  const key = await makeKey(await signedIn(world), world)
  assert.equal((await send(`${url}/echo`, basic(key))).status, 200)
  const has = (message: string) => log.some((line) => line.message === message)

  // After an outage, the memory is empty.
  world.redis?.freeze()
  await until('the store is away', async () => (await send(`${url}/echo`, basic(anyKey()))).status === 503)
  world.redis?.resume()
  await until('the store is back', () => has('store.available'))
  await until('a wrong key is limited', async () => (await send(`${url}/echo`, basic(anyKey()))).status === 429)

  assert.equal((await send(`${url}/echo`, basic(key))).status, 200)
})
