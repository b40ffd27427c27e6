import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { Redis } from 'ioredis'
import type { SessionKey } from '../../src/core/names.ts'
import { tagOf } from '../../src/session/record/record.ts'
import { slotOf } from '../../src/session/store/redis/cluster.ts'
import type { NewSession, SessionStore } from '../../src/session/store/store.ts'
import { hearing, open, replicated, settings } from '../session/redis-stores.ts'
import { newSession } from '../session/store-contract.ts'
import { clusterConfig, startCluster, type ClusterSetup } from '../support/redis-cluster.ts'
import { startRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

async function startGateway(t: TestContext, setup: ClusterSetup) {
  const gateway = open(t, { ...clusterConfig(setup), timeoutMs: 5_000 })
  await gateway.store.ping()
  await hearing(gateway.store)
  return gateway
}

/**
 * Returns whether the store holds a session, and whether the provider must confirm it. Waits while
 * the Cluster changes.
 */
async function look(store: SessionStore, key: SessionKey): Promise<'absent' | 'trusted' | 'doubtful'> {
  let found: 'absent' | 'trusted' | 'doubtful' | undefined
  await until('the node of the session answers', async () => {
    const session = await store.read(key).catch(() => null)
    if (session === null) return false
    found = session === undefined ? 'absent' : session.isDoubtful === true ? 'doubtful' : 'trusted'
    return true
  })
  return found ?? assert.fail()
}

async function asAdmin<T>({ port }: { readonly port: number }, act: (admin: Redis) => Promise<T>): Promise<T> {
  const admin = new Redis(port, '127.0.0.1')
  return act(admin).finally(() => admin.disconnect())
}

test('A gateway that starts after one shard was restored from an older copy trusts only the sessions of the other shards', async (t) => {
  const cluster = await startCluster(t, { replicas: 1 })
  const { store: running } = await startGateway(t, cluster)
  const sessions = Array.from({ length: 100 }, (_, n) => newSession(Date.now(), { sid: `sid ${n}` }))
  const shards = cluster.primaries.map((primary) => ({
    primary,
    sessions: sessions.filter(({ key }) => cluster.primaryOf(slotOf(tagOf(key))) === primary),
  }))
  for (const session of sessions) assert.equal(await running.create(session), 'created')
  const [failedOver, restored, untouched] = shards.map(({ sessions }) => sessions) as [
    NewSession[],
    NewSession[],
    NewSession[],
  ]
  const [kept, ended] = restored as [NewSession, NewSession]

  await t.test('A shard that is restored from an older file brings no ended session back', async () => {
    await asAdmin(cluster.primaries[1] ?? assert.fail(), (admin) => admin.save())
    await running.endOne(ended.key)
    await cluster.primaries[1]?.restart()
    const { store: fresh, log } = await startGateway(t, cluster)

    assert.equal(await look(fresh, kept.key), 'doubtful')
    assert.notEqual(await look(fresh, ended.key), 'trusted')
    assert.equal(await look(fresh, untouched[0]?.key ?? assert.fail()), 'trusted')
    assert.equal(await look(running, kept.key), 'trusted', 'a gateway that was there asks about nobody')
    assert.equal(log.warnings().filter((line) => line === 'store.sessions_of_an_earlier_run').length, 1)
    assert.equal(await fresh.replace(kept.key, Buffer.from('confirmed'), 1), 'replaced')
    assert.equal(await look(fresh, kept.key), 'trusted', 'nobody is asked about twice')
  })

  await t.test('A shard whose replica replaced its primary brings no ended session back', async () => {
    const [replica] = cluster.replicas
    const [session] = failedOver as [NewSession]
    await replicated(cluster.primaries[0]?.port ?? assert.fail(), `{${tagOf(session.key)}}`)
    await asAdmin(replica ?? assert.fail(), (admin) => admin.cluster('FAILOVER'))
    for (const node of [...cluster.primaries, ...cluster.replicas])
      await asAdmin(node, (admin) =>
        until('the node knows the new primary', async () => {
          const slots = await admin.cluster('SLOTS')
          return slots.some(([from, , owner]) => from === 0 && owner?.[1] === replica?.port)
        }),
      )
    const { store: fresh } = await startGateway(t, cluster)

    assert.equal(await look(fresh, session.key), 'doubtful')
    assert.equal(await look(running, session.key), 'trusted')
    assert.equal(await look(fresh, untouched[0]?.key ?? assert.fail()), 'trusted')
  })
})

test('A warning says once that without INFO the gateway cannot notice an older copy', async (t) => {
  const redis = await startRedis(t)
  await asAdmin(redis, (admin) =>
    admin.acl('SETUSER', 'gatehouse', 'on', '>pass', '~gatehouse:*', '&gatehouse:*', '+@all', '-@dangerous'),
  )
  const { store, log } = open(t, {
    ...{ ...settings, kind: 'redis', url: new URL(redis.url), username: 'gatehouse', password: 'pass' },
    timeoutMs: 5_000,
  })
  await store.ping()
  const session = newSession(Date.now())
  assert.equal(await store.create(session), 'created')
  assert.equal(await store.replace(session.key, Buffer.from('refreshed'), 1), 'replaced')

  assert.equal(await look(store, session.key), 'trusted')
  const told = log.lines.filter(({ message }) => message === 'store.older_copies_not_noticed')
  assert.equal(told.length, 1)
  assert.equal(told[0]?.level, 'warn')
  assert.match(String(told[0]?.fields?.['reason']), /NOPERM/)
  assert.match(String(told[0]?.fields?.['hint']), /\+info/)
})
