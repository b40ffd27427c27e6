import assert from 'node:assert/strict'
import { after, test, type TestContext } from 'node:test'
import { Redis } from 'ioredis'
import type { RedisClusterConfig } from '../../../src/config/model/session.ts'
import { systemClock } from '../../../src/core/clock.ts'
import { randomToken } from '../../../src/core/random.ts'
import { sidTag, subTag, tagOf } from '../../../src/session/record/record.ts'
import { slotOf, tagIn } from '../../../src/session/store/redis/cluster.ts'
import { RedisKeys } from '../../../src/session/store/redis/keys.ts'
import type { NewSession } from '../../../src/session/store/store.ts'
import { issueCertificates } from '../../support/certificates.ts'
import { freePort } from '../../support/free-port.ts'
import { inTime } from '../../support/in-time.ts'
import { clusterConfig, type ClusterSetup, startCluster } from '../../support/redis-cluster.ts'
import { cutOff, type RedisServer, startRedis } from '../../support/redis.ts'
import {
  responds,
  assertUnavailable,
  beats,
  hearing,
  open,
  refusedInTime,
  replicated,
  settings,
  sizeOf,
  tick,
  unconfirmed,
} from '../redis-stores.ts'
import { created, keysOf, newSession, order, storeContract, times, until } from '../store-contract.ts'

const iss = 'https://id.example.com/'
const meeting = slotOf('{notices}')

// All at once: each takes two seconds until it is at work.
const certificates = issueCertificates()
const [shared, secured, failing, losing] = await Promise.all([
  startCluster({ after }),
  startCluster({ after }, { tls: certificates.server, args: userWithFewRights() }),
  startCluster({ after }, { replicas: 3 }),
  startCluster({ after }, { replicas: 3 }),
])
const admins = shared.primaries.map(({ port }) => new Redis(port, '127.0.0.1'))
after(() => admins.forEach((admin) => admin.disconnect()))

storeContract('redis cluster', async (t) => {
  await Promise.all(admins.map((admin) => admin.flushall()))
  // A channel of its own: the notice of a tombstone of the test before may be on its way yet.
  const { store } = openAt(t, shared, { timeoutMs: 5_000, keyPrefix: `${randomToken(6)}:` })
  await store.ping()
  const size = async () => (await Promise.all(admins.map(sizeOf))).reduce((sum, count) => sum + count, 0)
  return { store, now: systemClock.now, tick, size }
})

test('slots are computed as Redis does, and every slot has a hash tag', async () => {
  const [admin] = admins as [Redis]
  for (const key of ['', 'a', '123456789', 'täg', '{notices}', 'gatehouse:{abc}:s:def', 'o:x'])
    assert.equal(slotOf(key), Number(await admin.cluster('KEYSLOT', key)), key)
  for (const slot of [0, 1, 5_461, 10_923, 16_383]) assert.equal(slotOf(`gatehouse:{${tagIn(slot)}}:epoch`), slot)
})

test('when an ending in a Cluster resolves, every other process has dropped the session', async (t) => {
  const { store, log } = openAt(t, shared)
  const others = times(3, () => openAt(t, shared))
  await hearing(store, ...others.map((other) => other.store))

  for (let round = 0; round < 60; round++) {
    const session = await created(store, Date.now(), { sid: `sid ${round}`, sub: `sub ${round}` })
    const waitedInVain = unconfirmed(log)
    if (round % 3 === 0) await store.endOne(session.key)
    if (round % 3 === 1) await store.endSid(tagOf(session.key), order(Date.now()))
    if (round % 3 === 2) await store.endSub(session.subTag, order(Date.now()))
    // The machine stalled, which may happen now and then.
    if (unconfirmed(log) > waitedInVain) continue
    for (const other of others) {
      const dropped = other.notices.flatMap((notice) => (notice.kind === 'ended' ? notice.keys : []))
      assert.ok(dropped.includes(session.key), `round ${round}`)
    }
  }
  assert.ok(unconfirmed(log) < 5)
})

test('a change in a Cluster reaches every other process', async (t) => {
  const [{ store }, other] = [openAt(t, shared), openAt(t, shared)]
  await hearing(store, other.store)
  for (let round = 0; round < 10; round++) {
    const { key } = await created(store, Date.now())
    await store.replace(key, Buffer.from('rotated'), 1)
    await until(tick, () => other.notices.some((notice) => notice.kind === 'changed' && notice.key === key))
  }
})

test('a Cluster with a private authority, client certificates and a user with few rights', async (t) => {
  const { client } = certificates
  const given = { tls: client, username: 'gatehouse', password: 'pass', keyPrefix: 'gh:', timeoutMs: 2_000 }
  const { store } = openAt(t, secured, given)
  await store.ping()
  await hearing(store)
  const sessions = await Promise.all(times(6, () => created(store, Date.now(), { sub: 'jane' })))
  assert.deepEqual(
    keysOf(await store.endSub(subTag(iss, 'jane'), order(Date.now()))),
    sessions.map(({ key }) => key).toSorted(),
  )
  for (const [wrong, expected] of [
    [{ password: 'wrong' }, /WRONGPASS/],
    [{ tls: { ...client, ca: undefined } }, /self-signed|unable to (get|verify)/],
    [{ tls: undefined }, /.+/],
  ] as const) {
    const refused = openAt(t, secured, { ...given, ...wrong })
    await until(tick, () => refused.log.lines.length > 0)
    assert.match(String(refused.log.lines[0]?.fields?.['reason']), expected)
    await assert.rejects(refused.store.create(newSession(Date.now())), assertUnavailable)
  }
})

test('when a primary of a Cluster dies, the store uses its replica', async (t) => {
  const setup = failing
  const [one, other] = [openAt(t, setup), openAt(t, setup)]
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
  await inTime(2 * settings.timeoutMs, () => Promise.allSettled(times(20, () => one.store.read(first.key))))
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
  const { store, heard } = openAt(t, setup, { timeoutMs: 5_000 })
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
  const { store } = openAt(t, setup, { timeoutMs: 5_000 })
  await store.ping()
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

test('listeners of the process that ends a session late are told, before Redis replies and after it', async (t) => {
  const [{ store, notices, config }, other] = [openAt(t, shared), openAt(t, shared)]
  await hearing(store, other.store)
  const session = await created(store, Date.now(), { sub: 'lost' })
  // What a failover may lose.
  const owner = admins[shared.primaries.indexOf(shared.primaryOf(slotOf(session.subTag)))] as Redis
  assert.equal(await owner.zrem(new RedisKeys(config.keyPrefix).subIndex(session.subTag), session.key), 1)
  assert.deepEqual(await other.store.endSub(session.subTag, order(Date.now())), [])
  assert.ok(await store.read(session.key))

  for (const admin of admins) await admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub')

  const late = () => notices.filter((notice) => notice.kind === 'ended_late')
  await until(tick, () => late().some(({ sessions }) => sessions.length > 0))
  const { key, sealed } = session
  assert.deepEqual(late(), [
    { kind: 'ended_late', keys: [key], sessions: [] },
    { kind: 'ended_late', keys: [], sessions: [{ key, sealed: Buffer.from(sealed) }] },
  ])
  assert.equal(await store.read(key), undefined)
})

test('notices go through the node that owns their slot, also after the slot has moved', async (t) => {
  const setup = losing
  const [one, other] = times(2, () => openAt(t, setup, { timeoutMs: 5_000 })) as [Opened, Opened]
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

test('a session whose slot is being moved is found, or the query is rejected in time', async (t) => {
  const { store } = openAt(t, shared, { timeoutMs: 2_000 })
  await store.ping()
  const session = await created(store, Date.now(), { sid: 'moving' })
  const slot = slotOf(tagOf(session.key))
  const from = shared.primaries.indexOf(shared.primaryOf(slot))
  const to = (from + 1) % 3
  const [source, target] = [admins[from], admins[to]] as [Redis, Redis]
  const ids = await Promise.all(admins.map((admin) => admin.cluster('MYID')))
  const move = async (source: Redis, target: Redis, sourceId: string, targetId: string, toPort: number) => {
    await target.cluster('SETSLOT', slot, 'IMPORTING', sourceId)
    await source.cluster('SETSLOT', slot, 'MIGRATING', targetId)
    assert.notEqual(await store.read(session.key), undefined)
    for (const key of (await source.cluster('GETKEYSINSLOT', slot, 100)) as string[]) {
      await source.migrate('127.0.0.1', toPort, key, 0, 2_000)
      // Half of its keys are here, and half are there.
      await store.touch(session.key, 60_000).catch(assertUnavailable)
      await store.endSid(tagOf(newSession(Date.now(), { sid: 'moving' }).key), lateOrder()).catch(assertUnavailable)
    }
    assert.equal((await store.read(session.key)) !== undefined, true)
    for (const [admin, id] of [
      [target, targetId],
      [source, targetId],
    ] as const)
      await admin.cluster('SETSLOT', slot, 'NODE', id)
    assert.notEqual(await store.read(session.key), undefined)
  }
  // The token was used before, so the order ends no session.
  const token = order(0)
  const lateOrder = () => token
  assert.deepEqual(await store.endSid(sidTag(iss, 'nobody'), token), [])

  await move(source, target, ids[from] as string, ids[to] as string, shared.primaries[to]?.port as number)
  await move(target, source, ids[to] as string, ids[from] as string, shared.primaries[from]?.port as number)
})

test('when a node of a Cluster was emptied, every process drops its copies', async (t) => {
  const [one, other] = [openAt(t, shared), openAt(t, shared)]
  await one.store.ping()
  await hearing(one.store, other.store)
  for (const admin of admins) {
    await beats(admin, 2)
    one.heard.length = other.heard.length = 0

    await admin.flushall()

    await until(tick, () => one.heard.length > 0 && other.heard.length > 0)
    assert.equal(one.heard[0]?.kind, 'resumed')
  }
})

test('a Cluster may be unavailable at the start', async (t) => {
  const ports = await Promise.all(times(2, () => freePort()))
  const nodes = ports.map((port) => ({ host: 'localhost', port }))
  const { store, log } = openAt(t, shared, { nodes })
  await refusedInTime(store)
  await until(tick, () => log.lines.length > 0)
  assert.match(String(log.lines[0]?.fields?.['reason']), /ECONNREFUSED|closed/)

  const known = openAt(t, shared, { nodes: [...nodes, ...shared.nodes] })
  await until(tick, () => responds(known.store))
  await created(known.store, Date.now())
  await hearing(known.store)
})

test('a server that is no Cluster is logged', async (t) => {
  const server = await startRedis(t)
  const { store, log } = openAt(t, shared, { nodes: [{ host: '127.0.0.1', port: server.port }] })
  await until(tick, () => log.lines.length > 0)

  assert.match(String(log.lines[0]?.fields?.['reason']), /cluster support disabled/)
  await assert.rejects(store.ping(), assertUnavailable)
})

test('a closed store in a Cluster rejects', async (t) => {
  const { store, log } = openAt(t, shared)
  await hearing(store)
  await store.close()

  assert.deepEqual(log.warnings(), [])
  assert.equal(store.receivesNotices(), false)
  await assert.rejects(store.read(newSession(Date.now()).key), assertUnavailable)
  await store.close()
})

function userWithFewRights(): string[] {
  const rights = ['~gh:*', '&gh:*', '+@all', '-@dangerous', '+info', '+cluster|slots']
  return ['--user', 'gatehouse', 'on', '>pass', ...rights]
}

type Opened = ReturnType<typeof openAt>

function openAt(t: TestContext, setup: Pick<ClusterSetup, 'nodes'>, given: Partial<RedisClusterConfig> = {}) {
  return open(t, { ...clusterConfig(setup), ...given })
}
