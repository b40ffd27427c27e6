import assert from 'node:assert/strict'
import { after, test, type TestContext } from 'node:test'
import { randomToken } from '../../../src/core/random.ts'
import { tagOf } from '../../../src/session/record/record.ts'
import { startRedis } from '../../support/redis.ts'
import { startTcpProxy } from '../../support/tcp-proxy.ts'
import { hastyMs, hearing, open, responds, settings, tick } from '../redis-stores.ts'
import { created, keysOf, order, times, until } from '../store-contract.ts'

const redis = await startRedis({ after })

/** A store behind a proxy that holds back the replies from the notice with this number on. */
async function openLosing(t: TestContext, lost: number) {
  let notices = 0
  const proxy = await startTcpProxy(t, redis.port, (bytes) => {
    if (bytes.includes('"named":true') && ++notices === lost) proxy.freeze('responses')
  })
  const keyPrefix = `${randomToken(6)}:`
  const at = (port: number, timeoutMs: number) => {
    const url = new URL(`redis://127.0.0.1:${port}`)
    return open(t, { ...settings, kind: 'redis', url, keyPrefix, timeoutMs }).store
  }
  const [store, direct] = [at(proxy.port, hastyMs), at(redis.port, 60_000)]
  await hearing(store, direct)
  return { store, direct, proxy }
}

test('when the reply to a Logout Token is late, the repeated token reports the sessions that have ended', async (t) => {
  const { store, direct, proxy } = await openLosing(t, 1)
  const [{ key }, other] = [await created(direct, Date.now()), await created(direct, Date.now())]
  const token = order(Date.now())

  // The first script takes half of the time, the second one the rest. Its own time limit is later.
  proxy.freeze('responses')
  setTimeout(() => proxy.thaw(), hastyMs / 2)
  await assert.rejects(store.endSid(tagOf(key), token), { code: 'ERR_STORE_UNAVAILABLE' })
  proxy.thaw()
  assert.equal((await store.endOne(other.key)).length, 1, 'the confirmations before this one have arrived')

  assert.deepEqual(keysOf(await store.endSid(tagOf(key), token)), [key])
  assert.equal(await store.endSid(tagOf(key), token), 'replayed')
})

for (const by of ['sid', 'sub'] as const)
  test(`when a Logout Token for many sessions of a ${by} fails after the first, the repeated token reports these too`, async (t) => {
    const { store, direct, proxy } = await openLosing(t, 2)
    const sessions = await Promise.all(times(201, () => created(direct, Date.now(), { sid: 'many', sub: 'many' })))
    const [{ key, subTag }] = sessions as [(typeof sessions)[0]]
    const token = order(Date.now())
    const end = () => (by === 'sid' ? store.endSid(tagOf(key), token) : store.endSub(subTag, token))

    await assert.rejects(end(), { code: 'ERR_STORE_UNAVAILABLE' })
    proxy.thaw()
    await until(tick, () => responds(store))

    const reported = keysOf(await end())
    assert.ok(reported.length >= 200, `${reported.length} sessions are reported`)
    assert.equal(new Set(reported).size, reported.length)
    assert.equal(await end(), 'replayed')
  })
