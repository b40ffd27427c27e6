import { after } from 'node:test'
import { Redis } from 'ioredis'
import { systemClock } from '../../../src/core/clock.ts'
import { randomToken } from '../../../src/core/random.ts'
import { clusterConfig, startCluster } from '../../support/redis-cluster.ts'
import { open, sizeOf, tick } from '../redis-stores.ts'
import { storeContract } from '../store-contract.ts'

const cluster = await startCluster({ after })
const admins = cluster.primaries.map(({ port }) => new Redis(port, '127.0.0.1'))
after(() => admins.forEach((admin) => admin.disconnect()))

storeContract('redis cluster', async (t) => {
  await Promise.all(admins.map((admin) => admin.flushall()))
  // A channel of its own: the notice of a tombstone of the test before may be on its way yet.
  const { store } = open(t, {
    ...clusterConfig(cluster),
    timeoutMs: 5_000,
    keyPrefix: `${randomToken(6)}:`,
  })
  await store.ping()
  const size = async () => (await Promise.all(admins.map(sizeOf))).reduce((sum, count) => sum + count, 0)
  return { store, now: systemClock.now, tick, size }
})
