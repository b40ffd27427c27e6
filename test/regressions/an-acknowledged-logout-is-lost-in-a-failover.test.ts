import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { Redis } from 'ioredis'
import { tagOf } from '../../src/session/record/record.ts'
import { assertUnavailable, hearing, open, settings, tick } from '../session/redis-stores.ts'
import { created, keysOf, order, until as untilSeen } from '../session/store-contract.ts'
import { clusterConfig, startCluster } from '../support/redis-cluster.ts'
import { startRedis, type RedisServer } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { startWorld } from '../support/world.ts'

const timeout = 2_000

async function startPair(t: TestContext): Promise<{ readonly primary: RedisServer; readonly replica: RedisServer }> {
  const primary = await startRedis(t, { args: ['--repl-diskless-sync-delay', '0'] })
  const replica = await startRedis(t, { args: ['--replicaof', '127.0.0.1', String(primary.port)] })
  await follows(replica)
  return { primary, replica }
}

async function follows({ port }: RedisServer): Promise<void> {
  const direct = new Redis(port, '127.0.0.1', { enableReadyCheck: false })
  await until('the replica follows', async () => /master_link_status:up/.test(await direct.info('replication')))
  direct.disconnect()
}

test('A Logout Token that no replica of Redis has stored gets 503, and gets 200 when it is sent again', async (t) => {
  const { primary, replica } = await startPair(t)
  const redisSettings = `replicas_acknowledge: 1, timeout: ${timeout}ms`
  const world = await startWorld(t, { store: 'redis', redis: primary, redisSettings })
  const { log } = world.replicas[0] ?? assert.fail('there is no replica')
  const told = (message: string) => log.filter((line) => line.message === message).length
  const [jane, zoe] = [world.browser('jane'), world.browser('zoe')]
  await jane.get(`${world.url}/echo`)
  const [session] = world.provider.sessions()
  await zoe.get(`${world.url}/echo`)
  const logout_token = await world.provider.logoutToken({ sid: session?.sid ?? '', sub: 'jane' })

  replica.freeze()
  t.after(() => replica.resume())
  assert.equal((await world.postLogoutToken({ logout_token })).status, 503)
  assert.equal((await jane.fetch(`${world.url}/echo`)).status, 401, 'it holds at once all the same')
  assert.equal((await zoe.fetch(`${world.url}/echo`)).status, 200, 'requests do not wait for the replica')
  assert.equal((await world.postLogoutToken({ logout_token })).status, 503, 'it is not a replay')
  assert.equal(told('store.endings_not_acknowledged'), 1)

  replica.resume()
  await until('the replica acknowledges', async () => {
    return (await world.postLogoutToken({ logout_token })).status === 200
  })
  assert.equal(told('store.endings_acknowledged'), 1)
  // The gateway also repeats the ending by itself. The first one to arrive writes the event.
  await until('the ending is in the audit log', () => told('session.ended') > 0)
  assert.equal(told('session.ended'), 1, 'once')
})

test('Of two deliveries at once, of which the first fails while the second waits, one reports the ended sessions', async (t) => {
  const { primary, replica } = await startPair(t)
  const url = new URL(primary.url)
  const { store } = open(t, { ...settings, kind: 'redis', url, timeoutMs: timeout, replicasAcknowledge: 1 })
  await hearing(store)
  const { key } = await created(store, Date.now())
  const other = await created(store, Date.now(), { sid: 'other', sub: 'other' })
  await untilSeen(tick, () =>
    store.endOne(other.key).then(
      () => true,
      () => false,
    ),
  )
  const begun = performance.now()

  replica.freeze()
  t.after(() => replica.resume())
  const first = store.endOne(key)
  first.catch(() => {})
  await untilSeen(tick, async () => performance.now() > begun + timeout / 2)
  const second = store.endOne(key)
  await assert.rejects(first, assertUnavailable)
  replica.resume()

  const reported = [...(await second.catch(() => []))]
  await untilSeen(tick, async () => {
    const more = await store.endOne(key).catch(() => undefined)
    reported.push(...(more ?? []))
    return more !== undefined
  })
  assert.deepEqual(keysOf(reported), [key])
})

test('An ending succeeds when a connected replica acknowledges it, and fails without a replica', async (t) => {
  const { primary, replica } = await startPair(t)
  const url = new URL(primary.url)
  const { store } = open(t, { ...settings, kind: 'redis', url, timeoutMs: timeout, replicasAcknowledge: 1 })
  await store.ping()
  const [one, two, three] = [
    await created(store, Date.now()),
    await created(store, Date.now(), { sub: 'two' }),
    await created(store, Date.now(), { sid: 'three', sub: 'three' }),
  ]

  assert.deepEqual(keysOf(await store.endOne(one.key)), [one.key])
  assert.deepEqual(keysOf(await store.endSub(two.subTag, order(Date.now()))), [two.key])
  await replica.kill()
  const again = order(Date.now())
  await assert.rejects(store.endSid(tagOf(three.key), again), assertUnavailable)

  await replica.restart()
  await follows(replica)
  assert.deepEqual(keysOf(await store.endSid(tagOf(three.key), again)), [three.key], 'it is told who was ended before')
  assert.equal(await store.endSid(tagOf(three.key), again), 'replayed')
})

test('An ending that no replica has acknowledged is carried out again when Redis has lost it', async (t) => {
  const { primary, replica } = await startPair(t)
  const url = new URL(primary.url)
  const { store } = open(t, { ...settings, kind: 'redis', url, timeoutMs: timeout, replicasAcknowledge: 1 })
  const direct = new Redis(primary.port, '127.0.0.1')
  t.after(() => direct.disconnect())
  await store.ping()
  const [ended, stays] = [
    await created(store, Date.now()),
    await created(store, Date.now(), { sid: 'zoe', sub: 'zoe' }),
  ]
  // The first copy of the replica may not be complete yet.
  await until('Redis has saved', () => direct.save().then(Boolean, () => false))
  await replica.kill()
  await assert.rejects(store.endOne(ended.key), assertUnavailable)

  await primary.restart()

  await until('Redis serves', () => store.read(stays.key).then(Boolean, () => false))
  await until('the ending holds', async () => (await store.read(ended.key)) === undefined)
})

test('In a Cluster, the replica of the node that holds the session acknowledges the ending', async (t) => {
  const cluster = await startCluster(t, { replicas: 3 })
  const { store } = open(t, {
    ...{ ...clusterConfig(cluster), timeoutMs: timeout, replicasAcknowledge: 1 },
  })
  await untilSeen(tick, () => store.ping().then(() => store.receivesNotices()))
  for (const replica of cluster.replicas) await follows(replica)
  const sessions = []
  for (const sid of ['a', 'b', 'c', 'd']) sessions.push(await created(store, Date.now(), { sid, sub: 'jane' }))

  const ended = keysOf(await store.endSub(sessions[0]?.subTag ?? assert.fail(), order(Date.now())))
  assert.deepEqual(ended.toSorted(), sessions.map(({ key }) => key).toSorted())

  const last = await created(store, Date.now(), { sid: 'e' })
  for (const replica of cluster.replicas) await replica.kill()
  await assert.rejects(store.endOne(last.key), assertUnavailable)
})
