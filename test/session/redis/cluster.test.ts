import assert from 'node:assert/strict'
import { after, test, type TestContext } from 'node:test'
import { Redis } from 'ioredis'
import type { RedisClusterConfig } from '../../../src/config/model/session.ts'
import { sidTag, subTag, tagOf } from '../../../src/session/record/record.ts'
import { slotOf, tagIn } from '../../../src/session/store/redis/cluster.ts'
import { RedisKeys } from '../../../src/session/store/redis/keys.ts'
import { issueCertificates } from '../../support/certificates.ts'
import { freePort } from '../../support/free-port.ts'
import { clusterConfig, type ClusterSetup, startCluster } from '../../support/redis-cluster.ts'
import { startRedis } from '../../support/redis.ts'
import {
  responds,
  assertDropsElsewhere,
  assertUnavailable,
  beats,
  hearing,
  open,
  refusedInTime,
  tick,
} from '../redis-stores.ts'
import { created, keysOf, newSession, order, times, until } from '../store-contract.ts'

const iss = 'https://id.example.com/'

// All at once: each takes two seconds until it is at work.
const certificates = issueCertificates()
const [shared, secured] = await Promise.all([
  startCluster({ after }),
  startCluster({ after }, { tls: certificates.server, args: userWithFewRights() }),
])
const admins = shared.primaries.map(({ port }) => new Redis(port, '127.0.0.1'))
after(() => admins.forEach((admin) => admin.disconnect()))

test('slots are computed as Redis does, and every slot has a hash tag', async () => {
  const [admin] = admins as [Redis]
  for (const key of ['', 'a', '123456789', 'täg', '{notices}', 'gatehouse:{abc}:s:def', 'o:x'])
    assert.equal(slotOf(key), Number(await admin.cluster('KEYSLOT', key)), key)
  for (const slot of [0, 1, 5_461, 10_923, 16_383]) assert.equal(slotOf(`gatehouse:{${tagIn(slot)}}:epoch`), slot)
})

test('when an ending in a Cluster resolves, every other process has dropped the session', async (t) => {
  const others = times(3, () => openAt(t, shared))
  await assertDropsElsewhere(openAt(t, shared), others, 60)
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

function openAt(t: TestContext, setup: Pick<ClusterSetup, 'nodes'>, given: Partial<RedisClusterConfig> = {}) {
  return open(t, { ...clusterConfig(setup), ...given })
}
