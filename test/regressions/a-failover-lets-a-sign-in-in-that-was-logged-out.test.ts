import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { sidTag, subTag } from '../../src/session/record/record.ts'
import { hearing, open, settings } from '../session/redis-stores.ts'
import { newSession, order } from '../session/store-contract.ts'
import { startRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { startWorld, type Replica } from '../support/world.ts'

const iss = 'https://id.example.com/'

for (const [whom, of] of [
  ['a session', (sid: string) => ({ sid, sub: 'jane' })],
  ['a person', () => ({ sub: 'jane' })],
] as const)
  test(`A sign-in makes no session when Redis has lost the logout of ${whom} that arrived during it`, async (t) => {
    const world = await startWorld(t, { store: 'redis', replicas: 2 })
    const [here, there] = world.replicas as [Replica, Replica]
    const redis = world.redis ?? assert.fail('there is no Redis')
    const jane = world.browser()
    const callback = await jane.until(`${here.url}/echo`, '/.gatehouse/callback')
    // The callback is at its last step, before it stores the new session.
    let release = () => {}
    const atUserinfo = new Promise<void>((resolve) => {
      world.provider.fault('/oauth/userinfo', (_req, _res, pass) => {
        release = pass
        resolve()
      })
    })
    const coming = jane.send(callback)
    await atUserinfo
    const [session] = world.provider.sessions()
    const logout_token = await world.provider.logoutToken(of(session?.sid ?? ''))
    assert.equal((await world.postLogoutToken({ logout_token }, there)).status, 200)

    await redis.restart()
    const returns = () => here.log.filter(({ message }) => message === 'store.available').length
    await until('Redis is back', () => returns() === 2)
    release()

    assert.equal((await coming).status, 403)
    assert.equal((await jane.fetch(`${here.url}/echo`)).status, 401)
  })

test('Running gateways store again the tombstones that Redis has lost', async (t) => {
  const server = await startRedis(t)
  const at = { ...settings, kind: 'redis', url: new URL(server.url), timeoutMs: 2_000 } as const
  const [one, other] = [open(t, at), open(t, at)]
  await hearing(one.store, other.store)
  const bySid = newSession(Date.now(), { sid: 'one', sub: 'zoe' })
  const bySub = newSession(Date.now(), { sid: 'two', sub: 'jane' })
  await one.store.endSid(sidTag(iss, 'one'), order(Date.now() + 1_000))
  await one.store.endSub(subTag(iss, 'jane'), order(Date.now() + 1_000))
  // Only the process that received the endings still has them.
  await one.store.close()

  const direct = new Redis(server.port, '127.0.0.1')
  t.after(() => direct.disconnect())
  await direct.flushall()
  assert.equal(await other.store.create(bySid), 'ended', 'before they are stored again')
  await until('both are there again', async () => (await direct.keys('*:t')).length === 2)
  for (const key of await direct.keys('*:t')) assert.ok((await direct.pttl(key)) > 0)

  const late = open(t, at)
  await late.store.ping()
  assert.equal(await late.store.create(bySid), 'ended')
  assert.equal(await late.store.create(bySub), 'ended')
})
