import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isShared } from '../../src/config/model/session.ts'
import {
  clusterOptions,
  nodeOptions,
  sentinelOptions,
  serverOptions,
  watchOptions,
} from '../../src/session/store/redis/options.ts'
import { configOf } from '../doctor/support.ts'

// ioredis ignores an option that it does not know, and waits 10 s for a connection by default.

for (const [kind, settings] of [
  ['redis', 'url: "redis://127.0.0.1:6379"'],
  ['redis_sentinel', 'sentinels: ["127.0.0.1:26379"], name: main'],
  ['redis_cluster', 'cluster: ["127.0.0.1:7000"]'],
] as const)
  test(`A connection to Redis is tried for 2 s, and its end for 0.1 s: ${kind}`, (t) => {
    const { store: config } = configOf(t, { store: `{ redis: { ${settings} } }` }).session
    assert.ok(isShared(config))
    assert.equal(config.kind, kind)
    const all =
      config.kind === 'redis'
        ? [serverOptions(config, 'test')]
        : config.kind === 'redis_sentinel'
          ? [sentinelOptions(config, 'test'), watchOptions(config, { host: '127.0.0.1', port: 26379 })]
          : [clusterOptions(config, 'test').redisOptions, nodeOptions(config, 'test')]

    for (const { connectTimeout, disconnectTimeout } of all)
      assert.deepEqual([connectTimeout, disconnectTimeout], [2_000, 100])
  })
