import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, test, type TestContext } from 'node:test'
import { Redis } from 'ioredis'
import { redisFindings } from '../../packages/doctor/redis.ts'
import { isShared } from '../../src/config/model/session.ts'
import { examineRedis, probes } from '../../src/session/store/redis/examine.ts'
import { RedisKeys } from '../../src/session/store/redis/keys.ts'
import { scripts } from '../../src/session/store/redis/scripts.ts'
import { startBentRedis } from '../support/bent-redis.ts'
import { freePort } from '../support/free-port.ts'
import { inTime } from '../support/in-time.ts'
import { replacePauses } from '../support/pauses.ts'
import { startCluster } from '../support/redis-cluster.ts'
import { startSentinel } from '../support/redis-sentinel.ts'
import { startRedis, type RedisServer } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { assertUseful, configOf, finding } from './support.ts'

const shared = await startRedis({ after })

async function findingsAbout(t: TestContext, redis: string) {
  const { store } = configOf(t, { store: `{ redis: ${redis} }` }).session
  assert.ok(isShared(store))
  const findings = redisFindings(await examineRedis(store), store)
  assertUseful(findings)
  return findings
}

function asAdmin<T>({ port }: Pick<RedisServer, 'port'>, act: (admin: Redis) => Promise<T>): Promise<T> {
  const admin = new Redis(port, '127.0.0.1')
  return act(admin).finally(() => admin.disconnect())
}

/**
 * A Redis with a user of these rights; resolves to what `session.store.redis` says to sign in as
 * that user.
 */
async function startRedisWithUser(t: TestContext, ...rights: readonly string[]): Promise<string> {
  const redis = await startRedis(t)
  await asAdmin(redis, (admin) => admin.acl('SETUSER', 'gatehouse', 'on', '>a password of Redis', ...rights))
  return `{ url: "${redis.url}", username: gatehouse, password: { env: REDIS_PASSWORD } }`
}

test('A Redis without problems has only good findings, and doctor leaves no keys', async (t) => {
  const findings = await findingsAbout(t, `{ url: "${shared.url}" }`)

  assert.deepEqual(
    findings.map(({ id, level }) => `${id} ${level}`),
    [
      'redis.version ok',
      'redis.mode ok',
      'redis.eviction ok',
      'redis.latency ok',
      'redis.rights ok',
      'redis.fitness ok',
    ],
    JSON.stringify(findings, null, 1),
  )
  assert.match(finding(findings, 'redis.version').what, /^(?:redis|valkey) \d+\.\d+\.\d+/)
  assert.equal(await asAdmin(shared, (admin) => admin.dbsize()), 0)
})

test('A Redis with snapshots only is a warning, one with an append-only file is not', async (t) => {
  const redis = await startRedis(t)
  await asAdmin(redis, (admin) => admin.save())
  const alone = await findingsAbout(t, `{ url: "${redis.url}" }`)
  await asAdmin(redis, (admin) => admin.config('SET', 'appendonly', 'yes'))
  const both = await findingsAbout(t, `{ url: "${redis.url}" }`)

  const { level, todo } = finding(alone, 'redis.persistence')
  assert.equal(level, 'warning')
  assert.match(todo ?? '', /appendonly yes/)
  assert.deepEqual(
    both.filter(({ id }) => id === 'redis.persistence'),
    [],
  )
})

test('Each command of the scripts is tested', () => {
  const tried = new Set(probes(new RedisKeys('gatehouse:')).map(([command]) => command))
  const given = Object.values(scripts).flatMap((lua) =>
    [...lua.matchAll(/redis\.call\('([A-Z]+)'/g)].map(([, name]) => name),
  )

  assert.ok(given.length > 20)
  assert.deepEqual(
    given.filter((command) => !tried.has(command ?? '')),
    [],
  )
})

test('An unreachable Redis is a fault within the time limit', async (t) => {
  replacePauses(t, { examineStoreMs: 500, connectToStoreMs: 300, reconnectToStoreMs: 100 })
  const port = await freePort()
  const findings = await inTime(15_000, () => findingsAbout(t, `{ url: "redis://127.0.0.1:${port}" }`))

  const { level, what, todo } = finding(findings, 'redis.connection')
  assert.equal(level, 'fault')
  assert.match(what, /ECONNREFUSED/)
  assert.match(todo ?? '', /no program listens there/)
})

test('A Redis that hangs is a fault within the time limit', async (t) => {
  replacePauses(t, { examineStoreMs: 500, connectToStoreMs: 300, reconnectToStoreMs: 100 })
  const redis = await startRedis(t)
  redis.freeze()
  t.after(() => redis.resume())

  const findings = await inTime(20_000, () => findingsAbout(t, `{ url: "${redis.url}", timeout: 300ms }`))

  assert.equal(finding(findings, 'redis.connection').level, 'fault')
})

test('A name that the Sentinels do not know is a fault about the name', async (t) => {
  replacePauses(t, { examineStoreMs: 500, connectToStoreMs: 300, reconnectToStoreMs: 100 })
  const { sentinel } = await startSentinel(t)

  const findings = await findingsAbout(t, `{ sentinels: ["127.0.0.1:${sentinel.port}"], name: other }`)

  const { level, todo } = finding(findings, 'redis.connection')
  assert.equal(level, 'fault')
  assert.match(todo ?? '', /compare session\.store\.redis\.name/)
})

test('A missing password and a wrong password are told apart', async (t) => {
  replacePauses(t, { examineStoreMs: 500, connectToStoreMs: 300, reconnectToStoreMs: 100 })
  const redis = await startRedis(t, { password: 'another password than ours' })

  const missing = await findingsAbout(t, `{ url: "${redis.url}", timeout: 300ms }`)
  const wrong = await findingsAbout(t, `{ url: "${redis.url}", password: { env: REDIS_PASSWORD }, timeout: 300ms }`)

  assert.match(finding(missing, 'redis.connection').todo ?? '', /it requires a password/)
  assert.match(finding(wrong, 'redis.connection').todo ?? '', /compare username and password/)
})

test('All missing permissions of a Redis user are named at once, with the command that grants them', async (t) => {
  const redis = await startRedisWithUser(
    t,
    '~gatehouse:*',
    '&gatehouse:*',
    '+@all',
    '-zadd',
    '-publish',
    '-subscribe',
    '-persist',
    '-scan',
  )

  const findings = await findingsAbout(t, redis)

  const { level, what, todo } = finding(findings, 'redis.rights')
  assert.equal(level, 'fault')
  assert.match(what, /the user gatehouse may not run SCAN, ZADD, PERSIST, PUBLISH, SUBSCRIBE on gatehouse:\*/)
  assert.match(
    todo ?? '',
    /^ACL SETUSER gatehouse ~gatehouse:\* &gatehouse:\* \+scan \+zadd \+persist \+publish \+subscribe$/,
  )
  assert.equal(finding(findings, 'redis.mode').level, 'ok')
})

test('The documented permissions of a Redis user are sufficient', async (t) => {
  const redis = await startRedisWithUser(t, '~gatehouse:*', '&gatehouse:*', '+@all', '-@dangerous', '+info')

  const findings = await findingsAbout(t, redis)

  assert.equal(finding(findings, 'redis.rights').level, 'ok', JSON.stringify(findings))
})

test('Without INFO, doctor warns that an older copy of Redis is not detected', async (t) => {
  const redis = await startRedisWithUser(t, '~gatehouse:*', '&gatehouse:*', '+@all', '-@dangerous')

  const { level, why, todo } = finding(await findingsAbout(t, redis), 'redis.rights')

  assert.equal(level, 'fault')
  assert.match(why ?? '', /^without INFO, .*older copy/)
  assert.match(todo ?? '', /\+info$/)
})

test('A Redis with another time is a warning', async (t) => {
  const later = "local time = redis.call('TIME') return { tostring(time[1] + 3600), time[2] }"
  const { url } = await startBentRedis(t, shared.port, ({ args: [command] }) =>
    command?.toUpperCase() === 'TIME' ? ['EVAL', later, '0'] : undefined,
  )

  const { level, what } = finding(await findingsAbout(t, `{ url: "${url}" }`), 'redis.clock')

  assert.equal(level, 'warning')
  assert.match(what, /^its clock is 3[56]\d\d\.\d s ahead of the local clock$/)
})

test('Fewer replicas than replicas_acknowledge are a fault', async (t) => {
  const primary = await startRedis(t, { args: ['--repl-diskless-sync-delay', '0'] })
  const replica = await startRedis(t, { args: ['--replicaof', '127.0.0.1', String(primary.port)] })
  await asAdmin(primary, (admin) =>
    until('the replica is connected', async () => /state=online/.test(await admin.info('replication'))),
  )
  const replicasOf = async (wanted: number) =>
    finding(await findingsAbout(t, `{ url: "${primary.url}", replicas_acknowledge: ${wanted} }`), 'redis.replicas')

  assert.equal((await replicasOf(1)).level, 'ok')
  const tooMany = await replicasOf(2)
  assert.equal(tooMany.level, 'fault')
  assert.match(tooMany.what, /^1 replicas? .* requires 2$/)

  // It stays connected, and has acknowledged all earlier writes.
  await asAdmin(primary, (admin) =>
    until('all is acknowledged', async () =>
      /offset=(\d+),[^]*master_repl_offset:\1\r/.test(await admin.info('replication')),
    ),
  )
  replica.freeze()
  assert.match((await replicasOf(1)).what, /^0 replicas .* requires 1$/)

  await replica.kill()
  assert.match((await replicasOf(1)).what, /^0 replicas .* requires 1$/)
})

test('In a Cluster, the replicas of each primary are counted', async (t) => {
  const cluster = await startCluster(t, { replicas: 1 })
  const findings = await findingsAbout(
    t,
    `{ cluster: ["127.0.0.1:${cluster.primaries[0]?.port}"], replicas_acknowledge: 1 }`,
  )

  const levels = findings.filter(({ id }) => id === 'redis.replicas').map(({ level }) => level)
  assert.deepEqual(levels.toSorted(), ['fault', 'fault', 'ok'])
})

test('A user without WAIT is a fault with replicas_acknowledge', async (t) => {
  const rights = ['~gatehouse:*', '&gatehouse:*', '+@all', '-@dangerous', '+info', '-wait']
  const redis = await startRedisWithUser(t, ...rights)

  const without = finding(await findingsAbout(t, redis), 'redis.rights')
  const needed = finding(await findingsAbout(t, redis.replace('{', '{ replicas_acknowledge: 1,')), 'redis.rights')

  assert.equal(without.level, 'ok')
  assert.equal(needed.level, 'fault')
  assert.match(needed.what, /may not run WAIT/)
})

test('A user with permissions for other keys is a fault', async (t) => {
  const redis = await startRedisWithUser(t, '~other:*', '&*', '+@all')

  const findings = await findingsAbout(t, redis)

  assert.equal(finding(findings, 'redis.rights').level, 'fault')
})

test('An eviction policy that loses logouts is a warning, and so is a Redis that is nearly full', async (t) => {
  const redis = await startRedis(t, { args: ['--maxmemory', '1gb', '--maxmemory-policy', 'allkeys-lru'] })

  assert.match(finding(await findingsAbout(t, `{ url: "${redis.url}" }`), 'redis.eviction').what, /allkeys-lru/)

  await asAdmin(redis, async (admin) => {
    await admin.config('SET', 'maxmemory-policy', 'noeviction')
    await admin.config('SET', 'maxmemory', '1200kb')
  })
  const { level, what } = finding(await findingsAbout(t, `{ url: "${redis.url}" }`), 'redis.eviction')
  assert.equal(level, 'warning')
  assert.match(what, /is nearly full/)
})

test('A Redis that is full is a fault', async (t) => {
  const redis = await startRedis(t, { args: ['--maxmemory', '100kb'] })

  assert.match(
    finding(await findingsAbout(t, `{ url: "${redis.url}" }`), 'redis.commands').todo ?? '',
    /raise its maxmemory/,
  )
})

test('A replica instead of the primary is a fault', async (t) => {
  const replica = await startRedis(t, { args: ['--replicaof', '127.0.0.1', String(shared.port)] })

  const findings = await findingsAbout(t, `{ url: "${replica.url}" }`)

  assert.match(finding(findings, 'redis.mode').what, /is a replica/)
  assert.match(finding(findings, 'redis.commands').what, /READONLY/)
})

test('A Sentinel or a Cluster node instead of a server is a fault that names the right setting', async (t) => {
  const [sentinel, cluster] = await Promise.all([startSentinel(t, { failsOver: false }), startCluster(t)])

  const [asServer, asNode, right, rightCluster] = await Promise.all([
    findingsAbout(t, `{ url: "redis://127.0.0.1:${sentinel.sentinel.port}" }`),
    findingsAbout(t, `{ url: "redis://127.0.0.1:${cluster.primaries[0]?.port}" }`),
    findingsAbout(t, `{ sentinels: ["127.0.0.1:${sentinel.sentinel.port}"], name: ${sentinel.name} }`),
    findingsAbout(t, `{ cluster: ["127.0.0.1:${cluster.primaries[0]?.port}"] }`),
  ])

  assert.match(finding(asServer, 'redis.mode').todo ?? '', /sentinels, with name/)
  assert.match(finding(asNode, 'redis.mode').todo ?? '', /session\.store\.redis\.cluster/)
  assert.ok(
    right.every(({ level }) => level === 'ok'),
    JSON.stringify(right),
  )
  assert.ok(
    rightCluster.every(({ level }) => level === 'ok'),
    JSON.stringify(rightCluster),
  )
  assert.equal(rightCluster.filter(({ id }) => id === 'redis.mode').length, 3)
})

for (const [what, settings, says] of [
  [
    'a plain Redis as Sentinels',
    () => `{ sentinels: ["127.0.0.1:${shared.port}"], name: main }`,
    /is a Redis, and not a Sentinel/,
  ],
  [
    'a plain Redis as a Cluster',
    () => `{ cluster: ["127.0.0.1:${shared.port}"] }`,
    /not a node of a Cluster.*redis\.url/,
  ],
  [
    'rediss to a plain port',
    () => `{ url: "rediss://127.0.0.1:${shared.port}" }`,
    /does not speak TLS.*write redis:\/\//,
  ],
] as const)
  test(`The finding about ${what} says what to write`, async (t) => {
    replacePauses(t, { examineStoreMs: 500, connectToStoreMs: 300, reconnectToStoreMs: 100 })
    const { level, todo } = finding(await findingsAbout(t, settings()), 'redis.connection')

    assert.equal(level, 'fault')
    assert.match(todo ?? '', says)
  })

test('A web server in place of Redis is described without the words of a parser', async (t) => {
  replacePauses(t, { examineStoreMs: 500, connectToStoreMs: 300, reconnectToStoreMs: 100 })
  const web = createServer((_req, res) => res.end()).listen(0, '127.0.0.1')
  await once(web, 'listening')
  t.after(() => {
    web.close()
    web.closeAllConnections()
  })
  const { port } = web.address() as AddressInfo

  const { what, todo } = finding(await findingsAbout(t, `{ url: "redis://127.0.0.1:${port}" }`), 'redis.connection')

  assert.match(what, /what it sends is not the protocol of Redis$/)
  assert.match(todo ?? '', /another program listens there, such as a web server/)
})
