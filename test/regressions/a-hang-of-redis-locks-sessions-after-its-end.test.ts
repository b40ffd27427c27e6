import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import type { SessionKey } from '../../src/core/names.ts'
import { underLease } from '../../src/session/live/lease.ts'
import { hastyMs, openAt } from '../session/redis-stores.ts'
import { replacePauses } from '../support/pauses.ts'
import { startRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

const key = `${'t'.repeat(24)}:hash` as SessionKey

/** Whether another process does the work now. */
async function isFree({ store }: Awaited<ReturnType<typeof openAt>>): Promise<boolean> {
  return (await underLease(key, store, async () => {}).catch(() => undefined)) !== undefined
}

test('A lock that Redis gives after a hang to a process that has given up is released at once', async (t) => {
  // So that a lease does not expire during the test.
  replacePauses(t, { leaseMs: 600_000 })
  const redis = await startRedis(t)
  const { store } = await openAt(t, redis, { timeoutMs: hastyMs })
  const another = await openAt(t, redis, { timeoutMs: hastyMs })
  redis.freeze()
  t.after(() => redis.resume())

  await assert.rejects(
    underLease(key, store, () => assert.fail('the lock was not given')),
    { code: 'ERR_STORE_UNAVAILABLE' },
  )
  redis.resume()

  await until('another process does the work', () => isFree(another))
})

test('A lock that Redis did not take back, because it rejected writes, is released afterwards', async (t) => {
  replacePauses(t, { leaseMs: 600_000 })
  const redis = await startRedis(t)
  const { store } = await openAt(t, redis)
  const another = await openAt(t, redis)
  const admin = new Redis(redis.port, '127.0.0.1')
  t.after(() => admin.disconnect())
  const needReplicas = (count: string) => admin.config('SET', 'min-replicas-to-write', count)

  await underLease(key, store, () => needReplicas('1'))
  await needReplicas('0')

  await until('another process does the work', () => isFree(another))
})
