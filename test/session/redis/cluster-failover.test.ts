// Slow: 4 s, primaries of Clusters die, and replicas take over
import assert from 'node:assert/strict'
import { after, test, type TestContext } from 'node:test'
import { Redis } from 'ioredis'
import type { RedisClusterConfig } from '../../../src/config/model/session.ts'
import { tagOf } from '../../../src/session/record/record.ts'
import { slotOf } from '../../../src/session/store/redis/cluster.ts'
import type { NewSession } from '../../../src/session/store/store.ts'
import { inTime } from '../../support/in-time.ts'
import { clusterConfig, type ClusterSetup, startCluster } from '../../support/redis-cluster.ts'
import { cutOff, type RedisServer } from '../../support/redis.ts'
import { assertUnavailable, hastyMs, hearing, open, replicated, tick } from '../redis-stores.ts'
import { created, keysOf, newSession, order, times, until } from '../store-contract.ts'

const meeting = slotOf('{notices}')

const [failing, losing, moving] = await Promise.all([
  startCluster({ after }, { replicas: 3 }),
  startCluster({ after }, { replicas: 3 }),
  startCluster({ after }, { replicas: 3 }),
])

test('when a primary of a Cluster dies, the store uses its replica', async (t) => {
  const setup = failing
  const [one, other] = [openAt(t, setup, { timeoutMs: hastyMs }), openAt(t, setup)]
  await one.store.ping()
  await hearing(one.store, other.store)
  const dying = setup.primaryOf(meeting)
  const sessions = await Promise.all(times(24, () => created(one.store, Date.now(), { sub: 'jane' })))
  const there = sessions.filter(({ key }) => setup.primaryOf(slotOf(tagOf(key))) === dying)
  const elsewhere = sessions.filter((session) => !there.includes(session))
  const [first] = there as [(typeof there)[0]]
  await replicated(dying.port, `{${tagOf(first.key)}}`)
  other.heard.length = 0

  await dying.kill()
  await assert.rejects(one.store.read(first.key), assertUnavailable)
  await until(tick, () => !one.store.receivesNotices() && !other.store.receivesNotices())
  // Calls that are refused do not wait in line for the node that is away.
  await inTime(2 * hastyMs, () => Promise.allSettled(times(20, () => one.store.read(first.key))))
  await until(tick, async () => (await one.store.read(first.key).catch(() => undefined)) !== undefined)

  for (const { key } of elsewhere)
    await until(tick, async () => (await one.store.read(key).catch(() => undefined)) !== undefined)
  await hearing(one.store, other.store)
  assert.ok(other.heard.some(({ kind, receivesNotices }) => kind === 'resumed' && !receivesNotices))
  await one.store.endSub(first.subTag, order(Date.now()))
  const dropped = other.notices.flatMap((notice) => (notice.kind === 'ended' ? notice.keys : []))
  for (const { key } of there) assert.ok(dropped.includes(key))
  assert.deepEqual(one.log.warnings(), [])
})

test('an ended session stays ended when a failover in a Cluster loses the ending', async (t) => {
  const setup = losing
  const { store, heard } = openAt(t, setup)
  await store.ping()
  await hearing(store)
  // Not where notices are published: the connections to that node stay.
  const at = setup.primaries.findIndex((primary) => primary !== setup.primaryOf(meeting))
  const [primary, replica] = [setup.primaries[at], setup.replicas[at]] as [RedisServer, RedisServer]
  const isThere = (session: NewSession) => setup.primaryOf(slotOf(tagOf(session.key))) === primary
  const [ended, kept] = times(200, () => newSession(Date.now())).filter(isThere) as [NewSession, NewSession]
  for (const session of [ended, kept]) assert.equal(await store.create(session), 'created')
  await replicated(primary.port, `{${tagOf(ended.key)}}`)
  heard.length = 0

  await cutOff(primary)
  assert.deepEqual(keysOf(await store.endOne(ended.key)), [ended.key])
  await primary.kill()

  await until(tick, async () => (await store.read(kept.key).catch(() => undefined)) !== undefined)
  // The failover may not be over yet, so failed queries are repeated.
  await until(tick, async () => (await store.read(ended.key).catch(() => kept)) === undefined)
  assert.ok(heard.some(({ kind }) => kind === 'resumed'))
  const promoted = new Redis(replica.port, '127.0.0.1')
  t.after(() => promoted.disconnect())
  assert.match(await promoted.info('commandstats'), /cmdstat_del:calls/)
})

test('a session ends with its sub when a failover in a Cluster loses its entry in the index of the sub', async (t) => {
  const setup = losing
  const { store } = openAt(t, setup)
  // The failover of the test before may not be over yet.
  await until(tick, () =>
    store.ping().then(
      () => true,
      () => false,
    ),
  )
  await hearing(store)
  // Not the one of the test before.
  const dying = setup.primaries.findLast((primary) => primary !== setup.primaryOf(meeting)) as RedisServer
  const isThere = (tag: string) => setup.primaryOf(slotOf(tag)) === dying
  const [session] = times(200, (n) => newSession(Date.now(), { sub: `sub ${n}` })).filter(
    ({ key, subTag }) => isThere(subTag) && setup.primaryOf(slotOf(tagOf(key))) === setup.primaryOf(meeting),
  ) as [NewSession]

  // Opens the connection, which the cut lets live.
  assert.deepEqual(await store.listSub(session.subTag), [])
  await cutOff(dying)
  assert.equal(await store.create(session), 'created')
  await dying.kill()
  await until(tick, async () => {
    const outcome = await store.endSub(session.subTag, order(Date.now())).catch(() => undefined)
    return outcome !== undefined
  })

  await until(tick, async () => (await store.read(session.key).catch(() => session)) === undefined)
})

test('notices go through the node that owns their slot, also after the slot has moved', async (t) => {
  const setup = losing
  const [one, other] = times(2, () => openAt(t, setup)) as [Opened, Opened]
  await hearing(one.store, other.store)
  const from = setup.primaryOf(meeting)
  const replica = setup.replicas[setup.primaries.indexOf(from)] as { port: number }
  const promoted = new Redis(replica.port, '127.0.0.1')
  t.after(() => promoted.disconnect())

  await promoted.cluster('FAILOVER')
  await until(tick, async () => /role:master/.test(await promoted.info('replication')))
  await until(tick, async () => (await promoted.pubsub('NUMSUB', 'gatehouse:notices'))[1] === 2)
  await hearing(one.store, other.store)

  const { key } = await created(one.store, Date.now())
  await one.store.endOne(key)
  assert.ok(other.notices.some((notice) => notice.kind === 'ended' && notice.keys.includes(key)))
})

test('an ending that replicas have to acknowledge succeeds right after a planned failover', async (t) => {
  const setup = moving
  const { store } = openAt(t, setup, { replicasAcknowledge: 1 })
  await store.ping()
  await hearing(store)
  const at = setup.primaries.findIndex((primary) => primary !== setup.primaryOf(meeting))
  const [primary, replica] = [setup.primaries[at], setup.replicas[at]] as [RedisServer, RedisServer]
  const isThere = (session: NewSession) => setup.primaryOf(slotOf(tagOf(session.key))) === primary
  const [first, second] = times(200, () => newSession(Date.now())).filter(isThere) as [NewSession, NewSession]
  for (const session of [first, second]) assert.equal(await store.create(session), 'created')
  // Opens the connection for such endings, which then knows the slots before the failover.
  assert.deepEqual(keysOf(await store.endOne(first.key)), [first.key])
  const promoted = new Redis(replica.port, '127.0.0.1')
  t.after(() => promoted.disconnect())

  await promoted.cluster('FAILOVER')
  await until(tick, async () => /role:master[^]*state=online/.test(await promoted.info('replication')))

  assert.deepEqual(keysOf(await store.endOne(second.key)), [second.key])
})

type Opened = ReturnType<typeof openAt>

function openAt(t: TestContext, setup: Pick<ClusterSetup, 'nodes'>, given: Partial<RedisClusterConfig> = {}) {
  return open(t, { ...clusterConfig(setup), ...given })
}
