import assert from 'node:assert/strict'
import { test } from 'node:test'
import { block } from '../support/block.ts'
import { commandsDuring } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { startWorld } from '../support/world.ts'

test('With a grace, a busy process serves sessions in memory while Redis stalls and when it replies again', async (t) => {
  const world = await startWorld(t, { store: 'redis', session: 'store_outage_grace: 5m' })
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  const visit = async () => (await jane.fetch(`${world.url}/echo`)).status
  const redis = world.redis ?? assert.fail('there is no Redis')
  await until('the session is in memory', async () => {
    const commands = await commandsDuring(redis, visit)
    return commands.every(([name]) => name !== 'hmget')
  })

  redis.freeze()
  t.after(() => redis.resume())
  block(3_000)
  assert.equal(await visit(), 200, 'while Redis stalls')
  block(1_000)
  redis.resume()
  for (let round = 0; round < 20; round += 1) assert.equal(await visit(), 200, 'when Redis answers again')
})
