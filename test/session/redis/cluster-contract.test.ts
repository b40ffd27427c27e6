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
  const opened = open(t, { ...clusterConfig(cluster), keyPrefix: `${randomToken(6)}:` })
  await opened.store.ping()
  const size = async () => {
    const sizes = await Promise.all(admins.map((redis) => sizeOf(redis, opened)))
    return sizes.reduce((sum, count) => sum + count, 0)
  }
  return { store: opened.store, now: systemClock.now, tick, size }
})
