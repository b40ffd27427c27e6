import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { Redis } from 'ioredis'
import { changeSession } from '../../../src/session/live/live-sessions.ts'
import { tagOf } from '../../../src/session/record/record.ts'
import { startRedis } from '../../support/redis.ts'
import { startTcpProxy } from '../../support/tcp-proxy.ts'
import { assertUnavailable, beats, hastyMs, hearing, tick } from '../redis-stores.ts'
import { lastTrueAt, oneRedis, portOfNotices, replica, signedInAt } from '../replica.ts'
import { until } from '../store-contract.ts'

/**
 * For so long, in ms, an ended session may be served by a process that cannot be told. The
 * documentation says so.
 */
const bound = 1_500

const shared = await startRedis({ after })
const admin = new Redis(shared.port, '127.0.0.1')
after(() => admin.disconnect())

test('the other process drops an ended session at once', async (t) => {
  const [here, there] = [replica(t, shared.port), replica(t, shared.port)]
  const { id } = await signedInAt(here, there)

  await here.endings.endOne(id, 'person')

  assert.equal(there.sessions.findInMemory(id), undefined)
})

describe('an ended session is served for 1.5 s at most when notices are lost', { concurrency: true }, () => {
  for (const what of ['responses', 'requests', 'both'] as const)
    for (const which of ['its notices', 'everything'] as const)
      test(`when the ${what} of ${which} are lost`, async (t) => {
        const proxy = await startTcpProxy(t, shared.port)
        const [here, there] = [replica(t, shared.port), replica(t, oneRedis(proxy.port, hastyMs))]
        const { id } = await signedInAt(here, there)
        const port = which === 'everything' ? undefined : await portOfNotices(admin, there.prefix, proxy)

        proxy.freeze(what, port)
        await here.endings.endOne(id, 'person')
        const endedAt = performance.now()
        const served = (await lastTrueAt(() => there.sessions.findInMemory(id) !== undefined)) - endedAt

        assert.ok(served < bound, `${served} ms`)
        const asked = await there.sessions.find(id).catch(assertUnavailable)
        assert.ok(asked === undefined || asked === true)
        proxy.thaw()
        await hearing(there.store)
        assert.equal(await there.sessions.find(id), undefined)
      })
})

test('an emptied Redis is noticed, and no session is served from memory after that', async (t) => {
  const [here, there] = [replica(t, shared.port), replica(t, shared.port)]
  const { id } = await signedInAt(here, there)
  await until(tick, async () => (await admin.exists(`${here.prefix}{notices}:epoch`)) === 1)

  await admin.flushall()
  const lostAt = performance.now()

  for (const { sessions } of [here, there]) {
    const served = (await lastTrueAt(() => sessions.findInMemory(id) !== undefined)) - lostAt
    assert.ok(served < bound, `${served} ms`)
  }
  assert.equal(await there.sessions.find(id), undefined)
  // Both have the same new epoch, so that is all.
  await hearing(here.store, there.store)
  here.notices.length = there.notices.length = 0
  await beats(admin, 6)
  assert.deepEqual([...here.notices, ...there.notices], [])
})

test('a session that may have ended still may after a write, until the provider has confirmed it', async (t) => {
  const here = replica(t, shared.port)
  const { id } = await signedInAt(here, here)
  // The run of a server that this process has never met.
  const place = `${here.prefix}{${tagOf(id)}}:s:${id.slice(tagOf(id).length + 1)}`
  assert.equal(await admin.hset(place, 'run', 'abcdefabcdef'), 0)
  const [there, other] = [replica(t, shared.port), replica(t, shared.port)]
  await hearing(there.store, other.store)
  assert.equal((await there.sessions.read(id))?.isDoubtful, true)

  assert.equal(await changeSession(id, there.sessions, (record) => ({ ...record, authentication: {} })), true)
  for (const { sessions } of [there, other]) {
    const read = await sessions.find(id)
    assert.deepEqual([read?.isDoubtful, read?.record.authentication], [true, {}])
  }

  await changeSession(id, there.sessions, (record) => ({ ...record, userinfo_read_at: 1 }))
  for (const { sessions } of [there, other]) assert.equal((await sessions.read(id))?.isDoubtful, undefined)
})

test('evicted sessions are not served from memory, and the eviction is logged', async (t) => {
  const server = await startRedis(t)
  const direct = new Redis(server.port, '127.0.0.1')
  t.after(() => direct.disconnect())
  const here = replica(t, server.port)
  await signedInAt(here, here)
  const filler = 'x'.repeat(10_000)
  await direct.config('SET', 'maxmemory-policy', 'allkeys-random')
  await direct.config('SET', 'maxmemory', '3mb')

  for (let n = 0; n < 400; n++) await direct.set(`filler ${n}`, filler)

  await until(tick, () => here.log.lines.some(({ message }) => message === 'store.evicts'))
  assert.ok(here.notices.some(({ kind }) => kind === 'resumed'))
})

test('a primary without the replicas that it needs proves nothing', async (t) => {
  const server = await startRedis(t)
  const direct = new Redis(server.port, '127.0.0.1')
  t.after(() => direct.disconnect())
  const here = replica(t, server.port)
  const { id } = await signedInAt(here, here)
  const { id: ending } = await signedInAt(here, here)

  await direct.config('SET', 'min-replicas-to-write', '1')

  await until(tick, () => here.sessions.findInMemory(id) === undefined)
  await assert.rejects(here.endings.endOne(ending, 'person'), /NOREPLICAS/)
  await direct.config('SET', 'min-replicas-to-write', '0')
  await hearing(here.store)
  assert.notEqual(await here.sessions.find(id), undefined)
})
