import assert from 'node:assert/strict'
import { after, describe, test, type TestContext } from 'node:test'
import { Redis } from 'ioredis'
import type { RedisSentinelConfig } from '../../../src/config/model/session.ts'
import { systemClock } from '../../../src/core/clock.ts'
import { randomToken } from '../../../src/core/random.ts'
import { sidTag } from '../../../src/session/record/record.ts'
import { issueCertificates } from '../../support/certificates.ts'
import { freePort } from '../../support/free-port.ts'
import { sentinelConfig, type SentinelSetup, startSentinel } from '../../support/redis-sentinel.ts'
import { cutOff, startRedis, tlsOf } from '../../support/redis.ts'
import {
  responds,
  assertUnavailable,
  beats,
  hastyMs,
  hearing,
  open,
  replicated,
  sizeOf,
  tick,
} from '../redis-stores.ts'
import { created, keysOf, newSession, order, storeContract, times, until } from '../store-contract.ts'

const iss = 'https://id.example.com/'

const shared = await startSentinel({ after }, { failsOver: false })
const admin = new Redis(shared.servers[0].port, '127.0.0.1')
after(() => admin.disconnect())

storeContract('redis behind a sentinel', async (t) => {
  const opened = openAt(t, shared, { keyPrefix: `${randomToken(6)}:` })
  await opened.store.ping()
  return { store: opened.store, now: systemClock.now, tick, size: () => sizeOf(admin, opened) }
})

// Each has servers of its own, and most of the time they wait for these.
describe('redis behind a sentinel', { concurrency: true }, () => {
  test('when the primary dies, the store uses its replica', async (t) => {
    const setup = await startSentinel(t)
    const [one, other] = [openAt(t, setup), openAt(t, setup)]
    await hearing(one.store, other.store)
    const session = await created(one.store, Date.now())
    await replicated(setup.servers[0].port)
    other.heard.length = 0

    await setup.servers[0].kill()
    await assert.rejects(one.store.read(session.key), assertUnavailable)
    await until(tick, () => !one.store.receivesNotices() && !other.store.receivesNotices())
    await until(tick, async () => (await responds(one.store)) && (await responds(other.store)))

    assert.notEqual(await one.store.read(session.key), undefined)
    await hearing(one.store, other.store)
    assert.ok(other.heard.some(({ kind, receivesNotices }) => kind === 'resumed' && !receivesNotices))
    await one.store.endOne(session.key)
    assert.ok(other.notices.some((notice) => notice.kind === 'ended' && notice.keys.includes(session.key)))
    await until(tick, () => one.log.messages().length >= 3)
    assert.deepEqual(one.log.messages(), ['store.available', 'store.unavailable', 'store.available'])
  })

  test('a process that has found the new primary stays there when it is announced', async (t) => {
    const setup = await startSentinel(t)
    const [primary] = setup.servers
    const direct = new Redis(primary.port, '127.0.0.1')
    t.after(() => direct.disconnect())
    // A Sentinel announces nothing that one could choose; a Redis in its place lets everybody.
    const announcing = await startRedis(t)
    const publisher = new Redis(announcing.port, '127.0.0.1')
    t.after(() => publisher.disconnect())
    const { store } = openAt(t, setup, { sentinels: [setup.sentinel.port, announcing.port].map(local) })
    await hearing(store)
    const announce = (port: number) =>
      publisher.publish('+switch-master', `${setup.name} 127.0.0.1 1 127.0.0.1 ${port}`)
    const connection = async () => /id=(\d+) .*name=gatehouse-commands/.exec(String(await direct.client('LIST')))?.[1]
    const before = await connection()

    await until(tick, async () => (await announce(primary.port)) === 1)
    await beats(direct, 2)
    assert.equal(await connection(), before)

    await announce(setup.servers[1].port)
    await until(tick, async () => (await connection()) !== before)
  })

  test('an ended session stays ended when a failover loses the ending', async (t) => {
    const setup = await startSentinel(t)
    const [one, other] = [openAt(t, setup), openAt(t, setup)]
    await hearing(one.store, other.store)
    const [ended, kept] = [await created(one.store, Date.now()), await created(one.store, Date.now())]
    await replicated(setup.servers[0].port)
    const [primary, replica] = setup.servers

    await cutOff(primary)
    assert.deepEqual(keysOf(await one.store.endOne(ended.key)), [ended.key])
    const promoted = new Redis(replica.port, '127.0.0.1')
    t.after(() => promoted.disconnect())
    assert.equal((await promoted.keys('*:s:*')).length, 2)
    await primary.kill()
    // The process that ended the session dies too. The other process has received the notice.
    await one.store.close()

    await until(tick, async () => /role:master/.test(await promoted.info('replication')))
    await until(tick, async () => (await other.store.read(kept.key).catch(() => undefined)) !== undefined)
    await until(tick, async () => (await other.store.read(ended.key).catch(() => 'unknown')) === undefined)
  })

  test('after an ordered failover, both processes use the new primary for notices', async (t) => {
    const setup = await startSentinel(t)
    const [one, other] = [openAt(t, setup), openAt(t, setup)]
    await hearing(one.store, other.store)
    const asking = new Redis(setup.sentinel.port, '127.0.0.1', { enableReadyCheck: false })
    t.after(() => asking.disconnect())

    // A replica is not good enough before the Sentinel has looked at it again.
    await until(tick, () => asking.call('SENTINEL', 'FAILOVER', setup.name).then(Boolean, () => false))
    const promoted = new Redis(setup.servers[1].port, '127.0.0.1')
    t.after(() => promoted.disconnect())
    await until(tick, async () => /role:master/.test(await promoted.info('replication')))
    await until(tick, () => one.store.create(newSession(Date.now())).then(Boolean, () => false))
    await until(tick, async () => (await promoted.pubsub('NUMSUB', 'gatehouse:notices'))[1] === 2)
    await hearing(one.store, other.store)

    const { key } = await created(one.store, Date.now())
    await one.store.endOne(key)
    assert.ok(other.notices.some((notice) => notice.kind === 'ended' && notice.keys.includes(key)))
    assert.equal(one.log.warnings().includes('store.endings_not_confirmed'), false)
  })

  test('passwords, a database and certificates are used with the Sentinel and with Redis', async (t) => {
    const { server, client } = issueCertificates()
    const setup = await startSentinel(t, { password: 'of-redis', sentinelPassword: 'of-sentinel', tls: server })
    const given = { password: 'of-redis', sentinelPassword: 'of-sentinel', database: 3, tls: client, timeoutMs: 2_000 }
    const { store } = openAt(t, setup, given)
    await store.ping()
    await hearing(store)
    await created(store, Date.now())

    const direct = new Redis(setup.servers[0].port, '127.0.0.1', { password: 'of-redis', tls: tlsOf(server) })
    t.after(() => direct.disconnect())
    assert.equal(await direct.dbsize(), 0)
    await direct.select(3)
    assert.notEqual(await direct.dbsize(), 0)

    for (const [wrong, expected] of [
      [{ sentinelPassword: undefined }, /NOAUTH/],
      [{ sentinelPassword: 'wrong' }, /WRONGPASS/],
      [{ password: 'wrong' }, /WRONGPASS/],
      [{ tls: { ...client, ca: undefined } }, /TLS settings do not fit/],
      [{ tls: { ...client, cert: undefined, key: undefined } }, /TLS settings do not fit/],
      [{ tls: undefined }, /TLS settings do not fit/],
    ] as const) {
      const refused = openAt(t, setup, { ...given, ...wrong })
      await until(tick, () => refused.log.lines.length > 0)
      assert.match(String(refused.log.lines[0]?.fields?.['reason']), expected)
      await assert.rejects(refused.store.create(newSession(Date.now())), assertUnavailable)
      assert.ok(!JSON.stringify(refused.log.lines).includes('of-sentinel'))
    }
  })

  test('an unavailable or hanging Sentinel is skipped', async (t) => {
    const frozen = await startSentinel(t)
    frozen.sentinel.freeze()
    const sentinels = [await freePort(), frozen.sentinel.port, shared.sentinel.port].map(local)
    const { store } = openAt(t, shared, { sentinels, timeoutMs: hastyMs })

    await until(tick, () => responds(store))
    await created(store, Date.now())
  })

  test('errors of the Sentinels are logged', async (t) => {
    const unknown = openAt(t, shared, { name: 'other' })
    await until(tick, () => unknown.log.lines.length > 0)
    assert.deepEqual(unknown.log.lines[0]?.fields, {
      store: `other (Sentinels 127.0.0.1:${shared.sentinel.port})`,
      reason: 'the Sentinels do not know a primary of this name',
      hint: 'Compare session.store.redis.name with SENTINEL MASTERS.',
    })

    const away = openAt(t, shared, { sentinels: [local(await freePort())] })
    await until(tick, () => away.log.lines.length > 0)
    assert.match(String(away.log.lines[0]?.fields?.['reason']), /^failed to connect to sentinel 127.0.0.1:\d+ because/)
    await assert.rejects(away.store.ping(), assertUnavailable)
  })

  test('the Sentinels may be unavailable at the start', async (t) => {
    const setup = await startSentinel(t)
    await setup.sentinel.kill()
    const { store, log } = openAt(t, setup)
    await until(tick, () => log.lines.length > 0)

    await setup.sentinel.restart()
    await until(tick, () => responds(store))
    await hearing(store)
    await created(store, Date.now())
  })

  test('an ending while the primary is unavailable is rejected, and succeeds when it is repeated', async (t) => {
    const setup = await startSentinel(t)
    const { store } = openAt(t, setup)
    await hearing(store)
    const sessions = await Promise.all(times(3, () => created(store, Date.now(), { sid: 'one' })))
    await replicated(setup.servers[0].port)
    const token = order(Date.now())
    await setup.servers[0].kill()
    await assert.rejects(store.endSid(sidTag(iss, 'one'), token), assertUnavailable)

    await until(tick, () => responds(store))

    assert.deepEqual(keysOf(await store.endSid(sidTag(iss, 'one'), token)), sessions.map(({ key }) => key).toSorted())
    assert.equal(await store.endSid(sidTag(iss, 'one'), token), 'replayed')
  })
})

function openAt(t: TestContext, setup: SentinelSetup, given: Partial<RedisSentinelConfig> = {}) {
  return open(t, { ...sentinelConfig(setup), ...given })
}

function local(port: number) {
  return { host: '127.0.0.1', port }
}
