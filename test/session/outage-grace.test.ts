import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { Redis } from 'ioredis'
import { GatewayError } from '../../src/core/errors.ts'
import type { SessionKey } from '../../src/core/names.ts'
import { tagOf } from '../../src/session/record/record.ts'
import { slotOf } from '../../src/session/store/redis/cluster.ts'
import { clusterConfig, startCluster } from '../support/redis-cluster.ts'
import { sentinelConfig, startSentinel } from '../support/redis-sentinel.ts'
import { startRedis } from '../support/redis.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { until as untilWithin } from '../support/until.ts'
import { assertUnavailable, hearing, replicated, hastyMs, tick } from './redis-stores.ts'
import { audience, lastTrueAt, oneRedis, portOfNotices, replica, signedInAt, type Replica } from './replica.ts'
import { until } from './store-contract.ts'

/**
 * What the documentation says of an ended session at a process that cannot be told: this and the
 * grace, in ms.
 */
const bound = 1_500
const minute = 60_000

const shared = await startRedis({ after })
const admin = new Redis(shared.port, '127.0.0.1')
after(() => admin.disconnect())

/** Redis, given up after a moment. */
const hasty = (port: number) => oneRedis(port, hastyMs)
const isServed = ({ sessions }: Replica, id: SessionKey) => sessions.find(id).then((found) => found !== undefined)
/** A busy machine may not reply in time: then the answer is not known, and the test asks again. */
const knownToBeServed = (at: Replica, id: SessionKey) => isServed(at, id).catch(() => false)
const knownToBeGone = (at: Replica, id: SessionKey) =>
  isServed(at, id).then(
    (served) => !served,
    () => false,
  )
const isRefused = (asked: Promise<unknown>) => asked.then(() => false, assertUnavailable)
const told = ({ log }: Replica) => log.lines.filter(({ message }) => message.startsWith('session.grace'))

describe('in the grace', { concurrency: true }, () => {
  for (const what of ['responses', 'requests', 'both'] as const)
    test(`an ended session is served for the grace and 1.5 s at most, when the ${what} of Redis are lost`, async (t) => {
      const graceMs = 3_000
      const proxy = await startTcpProxy(t, shared.port)
      const [here, there] = [replica(t, shared.port), replica(t, hasty(proxy.port), { graceMs })]
      const { id } = await signedInAt(here, there)

      proxy.freeze(what)
      await here.endings.endOne(id, 'person')
      const endedAt = performance.now()
      const served = (await lastTrueAt(() => knownToBeServed(there, id))) - endedAt

      assert.ok(served < bound + graceMs, `${served} ms`)
      // Notices still arrive when only requests get lost.
      assert.ok(what === 'requests' || told(there).length > 0)
      assert.equal(await there.sessions.find(id).catch(() => undefined), undefined, 'it begins once')
      proxy.thaw()
      await hearing(there.store)
      assert.equal(await there.sessions.find(id), undefined)
    })

  test('when only the notices are lost, sessions are read from the store', async (t) => {
    const proxy = await startTcpProxy(t, shared.port)
    const [here, there] = [replica(t, shared.port), replica(t, proxy.port, { graceMs: 5 * minute })]
    const [{ id: ended }, { id: kept }] = [await signedInAt(here, there), await signedInAt(here, there, 'two')]

    proxy.freeze('responses', await portOfNotices(admin, there.prefix, proxy))
    await here.endings.endOne(ended, 'person')
    const endedAt = performance.now()
    const served = (await lastTrueAt(() => isServed(there, ended))) - endedAt

    assert.ok(served < bound, `${served} ms`)
    assert.ok(await isServed(there, kept))
    assert.deepEqual(told(there), [])
  })

  test('in the grace, only sessions in memory are served, and only until they expire', async (t) => {
    const server = await startRedis(t)
    let moved = 0
    const clock = { now: () => Date.now() + moved }
    const [here, there] = [replica(t, server.port), replica(t, server.port, { graceMs: 5 * minute, clock })]
    const { id } = await signedInAt(here, there)
    const { id: unknown } = await signedInAt(here, here)
    await server.kill()
    await until(tick, () => !there.store.receivesNotices())

    assert.ok(await isServed(there, id))
    assert.ok(await there.sessions.peek(id))
    assert.ok(await isRefused(there.sessions.find(unknown)))
    assert.ok(await isRefused(there.sessions.read(id)))
    moved = 59 * minute
    assert.ok(await isServed(there, id))
    moved = 60 * minute
    assert.ok(await isRefused(there.sessions.find(id)))
  })

  test('without a grace, no session is served in an outage and nothing is logged about a grace', async (t) => {
    const server = await startRedis(t)
    const here = replica(t, server.port)
    const { id } = await signedInAt(here, here)

    await server.kill()

    await until(tick, () => isRefused(here.sessions.find(id)))
    assert.equal(here.sessions.mayServeInOutage, false)
    assert.deepEqual(told(here), [])
  })

  test('the begin and the end of a grace are logged once, with the number of served requests', async (t) => {
    const server = await startRedis(t)
    const here = replica(t, server.port, { graceMs: 4_000 })
    const { id } = await signedInAt(here, here)
    await server.kill()
    await until(tick, async () => (await knownToBeServed(here, id)) && told(here).length > 0)
    for (let times = 0; times < 9; times++) assert.ok(await isServed(here, id))

    await until(tick, () => told(here).length > 1)

    assert.ok(await isRefused(here.sessions.find(id)))
    assert.equal(here.sessions.mayServeInOutage, false)
    const [began, ended] = told(here)
    assert.deepEqual([began?.message, began?.level], ['session.grace_began', 'warn'])
    assert.match(String(began?.fields?.['reason']), /is not available/)
    assert.deepEqual([ended?.message, ended?.level], ['session.grace_ended', 'warn'])
    assert.deepEqual(ended?.fields, { why: 'time_is_over', served: 10 })
  })

  test('a missed ending is noticed before anything is served from memory again', async (t) => {
    const proxy = await startTcpProxy(t, shared.port)
    const [here, there] = [replica(t, shared.port), replica(t, proxy.port, { graceMs: 5 * minute })]
    const [{ id: ended }, { id: kept }] = [await signedInAt(here, there), await signedInAt(here, there, 'two')]
    proxy.freeze('both')
    await here.endings.endOne(ended, 'person')
    await until(tick, async () => (await knownToBeServed(there, ended)) && told(there).length > 0)

    proxy.thaw()
    await until(tick, () => knownToBeGone(there, ended))
    // A query showed that it is gone. The next outage, before any notice, must not undo that.
    proxy.freeze('both')
    for (let times = 0; times < 20; times++)
      assert.equal(await there.sessions.find(ended).catch(() => undefined), undefined)
    proxy.thaw()
    await hearing(there.store)

    assert.equal(there.sessions.findInMemory(ended), undefined)
    assert.equal(there.sessions.findInMemory(kept), undefined)
    assert.ok(await isServed(there, kept))
    assert.deepEqual(
      told(there).map(({ message, fields }) => [message, fields?.['why']]),
      [
        ['session.grace_began', undefined],
        ['session.grace_ended', 'store_responds'],
      ],
    )
  })

  test('an ending in an outage holds for a session that is not in memory, too', async (t) => {
    const server = await startRedis(t)
    const proxy = await startTcpProxy(t, server.port)
    const [here, other] = [replica(t, hasty(proxy.port), { graceMs: 5 * minute }), replica(t, server.port)]
    const { id } = await signedInAt(other, other)
    await hearing(here.store)
    proxy.freeze('both')
    assert.ok(await isRefused(here.endings.endSub('jane', logoutToken, 'provider')))

    proxy.thaw()

    await until(tick, async () => {
      assert.equal(await here.sessions.find(id).catch(() => undefined), undefined)
      return here.audited.includes('session.ended')
    })
    const { id: later } = await signedInAt(here, other)
    assert.ok(await isServed(here, later))
  })

  test('sessions that Redis lost in an outage are not served after it', async (t) => {
    const server = await startRedis(t)
    const proxy = await startTcpProxy(t, server.port)
    const here = replica(t, hasty(proxy.port), { graceMs: 5 * minute })
    const { id } = await signedInAt(here, here)
    proxy.freeze('both')
    await until(tick, async () => (await knownToBeServed(here, id)) && told(here).length > 0)
    const direct = new Redis(server.port, '127.0.0.1')
    await direct.flushall()
    direct.disconnect()

    proxy.thaw()
    await until(tick, () => knownToBeGone(here, id))
    await hearing(here.store)

    assert.equal(await here.sessions.find(id), undefined)
  })

  test('a session that was gone just before an outage is not served in the grace', async (t) => {
    const here = replica(t, shared.port, { graceMs: 5 * minute })
    const { id } = await signedInAt(here, here)
    const { store } = here
    const [read, touch, hears] = [store.read, store.touch, store.receivesNotices]
    store.receivesNotices = () => false
    // The idle timeout has to be moved, and the session ends after it was read.
    store.read = async (key) => {
      const found = await read.call(store, key)
      return found && { ...found, expiresIn: minute }
    }
    store.touch = async () => false
    assert.equal(await here.sessions.find(id), undefined)

    store.read = () => Promise.reject(new GatewayError('ERR_STORE_UNAVAILABLE', 'away'))

    assert.equal(await here.sessions.find(id).catch(() => undefined), undefined)
    Object.assign(store, { read, touch, receivesNotices: hears })
  })

  for (const [who, end] of [
    ['the person', ({ endings }: Replica, id: SessionKey) => endings.endOne(id, 'person')],
    ['a Logout Token with sid', ({ endings }: Replica) => endings.endSid('one', logoutToken, 'provider')],
    ['a front-channel logout', ({ endings }: Replica) => endings.endPresentSid(audience, 'one', 'provider_frame')],
    ['a Logout Token with sub', ({ endings }: Replica) => endings.endSub('jane', logoutToken, 'provider')],
  ] as const)
    test(`in an outage, an ending by ${who} holds here at once, and everywhere when Redis is back`, async (t) => {
      const server = await startRedis(t)
      const proxy = await startTcpProxy(t, server.port)
      const [here, other] = [replica(t, hasty(proxy.port), { graceMs: 5 * minute }), replica(t, server.port)]
      const { id } = await signedInAt(here, other)
      const closed: SessionKey[] = []
      here.endings.onEnded((keys) => closed.push(...keys))
      proxy.freeze('both')
      await until(tick, async () => (await knownToBeServed(here, id)) && told(here).length > 0)

      assert.ok(await isRefused(end(here, id)), 'whoever orders it is to order it again')

      assert.deepEqual(closed, [id])
      assert.equal(await here.sessions.find(id), undefined)
      assert.deepEqual(
        here.audited.filter((event) => event === 'session.ended'),
        [],
      )
      assert.ok(await isServed(other, id), 'which nobody could be told')
      proxy.thaw()
      await until(tick, () => knownToBeGone(other, id))
      await until(tick, () => here.audited.includes('session.ended'))
      const again = await end(here, id)
      if (who === 'the person') assert.deepEqual(again === 'replayed' ? [] : again.map(({ key }) => key), [id])
      else assert.deepEqual(again, who === 'a front-channel logout' ? [] : 'replayed')
      assert.equal(here.audited.filter((event) => event === 'session.ended').length, 1)
    })
})

const logoutToken = { audience, jti: 'once', exp: Date.now() / 1000 + 120 }

describe('through a failover', { concurrency: true }, () => {
  test('behind a Sentinel, sessions in memory are served during the whole failover', async (t) => {
    const setup = await startSentinel(t)
    const here = replica(t, sentinelConfig(setup), { graceMs: minute })
    const { id } = await signedInAt(here, here)
    await replicated(setup.servers[0].port)

    await setup.servers[0].kill()

    await servedUntilHeardAgain(here, id)
  })

  test('in a Cluster, sessions in memory are served while their node is unavailable', async (t) => {
    const setup = await startCluster(t, { replicas: 3 })
    const here = replica(t, { ...clusterConfig(setup), timeoutMs: 2_000 }, { graceMs: minute })
    await here.store.ping()
    const meeting = setup.primaryOf(slotOf('{notices}'))
    const ids: SessionKey[] = []
    for (let n = 0; n < 24; n++) ids.push((await signedInAt(here, here, `sid ${n}`)).id)
    const id = ids.find((key) => setup.primaryOf(slotOf(tagOf(key))) === meeting) as SessionKey
    await replicated(meeting.port, `{${tagOf(id)}}`)

    await meeting.kill()
    await untilWithin('the grace began', async () => (await knownToBeServed(here, id)) && told(here).length > 0)
    const others = ids.filter((key) => setup.primaryOf(slotOf(tagOf(key))) !== meeting)
    for (const key of others) assert.ok(await isServed(here, key).catch(assertUnavailable))

    await until(tick, () =>
      here.sessions.read(id).then(
        (found) => found !== undefined,
        () => false,
      ),
    )
    await hearing(here.store)
    assert.ok(await isServed(here, id))
  })
})

async function servedUntilHeardAgain(here: Replica, id: SessionKey): Promise<void> {
  await until(tick, async () => {
    assert.ok(await isServed(here, id))
    return told(here).length > 0
  })
  await until(tick, async () => {
    assert.ok(await isServed(here, id))
    return here.store.receivesNotices()
  })
}
