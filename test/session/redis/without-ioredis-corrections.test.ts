// Own process: it takes corrections out of the classes of ioredis.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../../../src/core/clock.ts'
import { corrections } from '../../../src/session/store/redis/ioredis-corrections.ts'
import { RedisStore } from '../../../src/session/store/redis/redis-store.ts'
import { startRedis } from '../../support/redis.ts'
import { hastyMs, hearing, open, recorder, refusedInTime, settings } from '../redis-stores.ts'
import { created, keysOf } from '../store-contract.ts'

corrections.undo()

test('Without the corrections of ioredis, the store works, and rejects in time when Redis hangs', async (t) => {
  const redis = await startRedis(t)
  const config = { ...settings, kind: 'redis' as const, url: new URL(redis.url) }
  const { store } = open(t, config)
  await hearing(store)
  const { key } = await created(store, Date.now())
  assert.deepEqual(keysOf(await store.endOne(key)), [key])

  const hanging = new RedisStore({ ...config, timeoutMs: hastyMs }, { log: recorder(), clock: systemClock })
  t.after(() => hanging.close())
  await hanging.ping()
  redis.freeze()

  await refusedInTime(hanging, hastyMs)
})
