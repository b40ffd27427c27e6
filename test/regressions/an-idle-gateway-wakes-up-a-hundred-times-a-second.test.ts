// Slow: 15 s, a gateway is not idle before ten seconds have passed without a request
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { startCommand } from '../support/command.ts'
import { prepareGateway } from '../support/gateway-process.ts'
import { startRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

/** How often the main thread of a process began to wait. */
function waits(pid: number): number {
  const [, count] = /^voluntary_ctxt_switches:\t(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(count)
}

test('An idle gateway with Redis and an administration page wakes up a few times a second', async (t) => {
  const redis = await startRedis(t)
  const { file, env } = await prepareGateway(t, { store: `{ redis: { url: ${redis.url} } }`, page: '{}' })
  const gateway = startCommand(t, ['run', '--config', file], { env })
  await gateway.said('gatehouse is ready')
  const pid = gateway.child.pid ?? assert.fail()

  await until('few wake-ups in two seconds', async () => {
    const before = waits(pid)
    await pause(2_000)
    return waits(pid) - before < 10
  })
})
