import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { freePort } from '../support/free-port.ts'
import { replacePauses } from '../support/pauses.ts'
import { startRedis } from '../support/redis.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { startWorld } from '../support/world.ts'

test('A gateway that starts takes no request while it waits for Redis', async (t) => {
  const redis = await startRedis(t)
  const proxy = await startTcpProxy(t, redis.port)
  const world = await startWorld(t, { store: 'redis', redis: { ...redis, url: `redis://127.0.0.1:${proxy.port}` } })
  const port = await freePort()
  let isStarting = true
  let responses = 0

  replacePauses(t, { waitForDependenciesMs: 500 })
  proxy.freeze('responses')
  const starting = world.startReplica({ port }).finally(() => (isStarting = false))
  while (isStarting) {
    const response = await fetch(`http://127.0.0.1:${port}/.gatehouse/sign-in`, { redirect: 'manual' }).catch(() => {})
    if (response !== undefined && isStarting) responses += 1
    await turn()
  }

  // One may arrive in the moment between the first connection and the end of the start.
  assert.ok(responses <= 1, `${responses} requests got a response`)
  proxy.thaw()
  await starting
})
