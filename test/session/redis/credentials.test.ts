import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Cluster, Redis } from 'ioredis'
import { clusterOptions, renewCredentials } from '../../../src/session/store/redis/options.ts'
import { connectToRedis } from '../../../src/session/store/redis/servers.ts'
import { startRedis } from '../../support/redis.ts'
import { until } from '../../support/until.ts'
import { settings } from '../redis-stores.ts'

test('A connection that was lost authenticates with the password that was renewed', async (t) => {
  const server = await startRedis(t, { password: 'first' })
  const url = new URL(server.url)
  const config = { ...settings, kind: 'redis', url, username: undefined, password: 'first', tls: undefined } as const
  const { commands, subscriber } = connectToRedis(config)
  t.after(() => Promise.all([commands, subscriber].map((connection) => connection.close())))
  const ready = (what: string) => until(what, () => commands.redis.status === 'ready')
  await ready('the first connection')

  const admin = new Redis(server.port, '127.0.0.1', { password: 'first' })
  t.after(() => admin.disconnect())
  await admin.config('SET', 'requirepass', 'second')
  commands.renewCredentials({ ...config, password: 'second' })
  assert.equal(await commands.redis.ping(), 'PONG', 'the open connection stays')
  await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
  await until('the connection is lost', () => commands.redis.status !== 'ready')

  await ready('the second connection')
  assert.equal(await commands.redis.ping(), 'PONG')
})

test('A Cluster authenticates at its nodes with the password that was renewed', (t) => {
  const config = { ...settings, kind: 'redis_cluster', nodes: [{ host: '127.0.0.1', port: 1 }] } as const
  const cluster = new Cluster([...config.nodes], { ...clusterOptions(config, 'commands'), lazyConnect: true })
  t.after(() => cluster.disconnect())

  renewCredentials(cluster, { ...config, username: 'gatehouse', password: 'second' })

  const { username, password } = cluster.options.redisOptions ?? {}
  assert.deepEqual({ username, password }, { username: 'gatehouse', password: 'second' })
})
