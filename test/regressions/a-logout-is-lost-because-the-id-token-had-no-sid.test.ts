import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sessionKey } from '../../src/session/record/record.ts'
import { hearing, tick } from '../session/redis-stores.ts'
import { audience, replica, type Replica } from '../session/replica.ts'
import { until } from '../session/store-contract.ts'
import { withoutSid } from '../support/provider.ts'
import { startRedis } from '../support/redis.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { startWorld } from '../support/world.ts'

const shared = await startRedis({ after })
const iss = 'https://id.example.com'
const order = (jti: string) => ({ audience, jti, exp: Date.now() / 1000 + 120, sub: 'jane' })

async function begunAt({ store }: Replica): Promise<number> {
  return (await store.time()).earliest
}

/** Creates a session. Resolves to `undefined` when a logout prevents it. */
async function signIn(at: Replica, who: { readonly sub: string; readonly sid?: string }, begun: number) {
  const tokens = { access_token: 'a', obtained_at: 0, id_token: 'i' }
  const id = await at.sessions.create(audience, { iss, ...who, tokens, claims: who, userinfo_read_at: 0 }, begun)
  return id && sessionKey(id)
}

for (const store of ['memory', 'redis'] as const)
  test(`A Logout Token with sid and sub ends the sessions of the sub whose ID Token had no sid (${store})`, async (t) => {
    const replicas = store === 'redis' ? 2 : 1
    const world = await startWorld(t, { store, replicas, provider: { adjust: withoutSid } })
    const [laptop, phone, samir] = [world.browser('jane'), world.browser('jane'), world.browser('samir')]
    for (const browser of [laptop, phone, samir]) {
      await browser.get(`${world.url}/echo`)
      for (const { url } of world.replicas) assert.equal((await browser.fetch(`${url}/echo`)).status, 200)
    }

    const logout_token = await world.provider.logoutToken({ sub: 'jane', sid: 'a sid that no ID Token had' })
    assert.equal((await world.postLogoutToken({ logout_token })).status, 200)

    for (const { url } of world.replicas) {
      assert.equal((await laptop.fetch(`${url}/echo`)).status, 401)
      assert.equal((await phone.fetch(`${url}/echo`)).status, 401)
      assert.equal((await samir.fetch(`${url}/echo`)).status, 200)
    }
    const log = world.replicas.flatMap((each) => each.log)
    assert.equal(log.find(({ message }) => message === 'logout_token.obeyed')?.fields['ended'], 2)
    assert.ok(log.some(({ message }) => message === 'provider.no_sid'))
    // A sign-in that begins within one round trip after a logout is rejected.
    await until(tick, async () => (await laptop.get(`${world.url}/echo`)).status === 200)
    assert.equal((await world.postLogoutToken({ logout_token })).status, 200)
    assert.equal((await laptop.fetch(`${world.url}/echo`)).status, 200, 'a replayed token ended a new session')
  })

test('A Logout Token with sid and sub leaves the sessions with another sid, and those of other people', async (t) => {
  const [here, there] = [replica(t, shared.port), replica(t, shared.port)]
  await hearing(here.store, there.store)
  const begun = await begunAt(here)
  const people = {
    meant: { sub: 'jane', sid: 'one' },
    without: { sub: 'jane' },
    elsewhere: { sub: 'jane', sid: 'two' },
    other: { sub: 'samir' },
  }
  const keys = await Promise.all(
    Object.values(people).map(async (who) => (await signIn(here, who, begun)) ?? assert.fail()),
  )
  for (const key of keys) assert.ok(await there.sessions.find(key))

  const ended = await there.endings.endSid('one', order('first'), 'provider')

  assert.ok(ended !== 'replayed')
  assert.deepEqual(new Set(ended.map(({ key }) => key)), new Set(keys.slice(0, 2)))
  for (const { sessions } of [here, there]) {
    const found = await Promise.all(keys.map(async (key) => (await sessions.find(key)) !== undefined))
    assert.deepEqual(found, [false, false, true, true])
  }
  assert.equal(await here.endings.endSid('one', order('first'), 'provider'), 'replayed')
})

test('A sign-in that a Logout Token with another sid overtakes makes no session without sid', async (t) => {
  const [here, there] = [replica(t, shared.port), replica(t, shared.port)]
  await hearing(here.store, there.store)
  const begun = await begunAt(here)

  await there.endings.endSid('one', order('second'), 'provider')

  assert.equal(await signIn(here, { sub: 'jane' }, begun), undefined)
  assert.ok(await signIn(here, { sub: 'samir' }, begun))
  assert.ok(await signIn(here, { sub: 'jane', sid: 'two' }, begun))
  const { latest } = await there.store.time()
  await until(tick, async () => (await begunAt(here)) > latest)
  assert.ok(await signIn(here, { sub: 'jane' }, await begunAt(here)), 'a later sign-in makes a session')
})

test('A session without sid ends after an outage of Redis, although the provider does not repeat its Logout Token', async (t) => {
  const proxy = await startTcpProxy(t, shared.port)
  const here = replica(t, proxy.port)
  await hearing(here.store)
  const key = (await signIn(here, { sub: 'jane' }, await begunAt(here))) ?? assert.fail()

  proxy.freeze('both')
  await assert.rejects(here.endings.endSid('one', order('third'), 'provider'), { code: 'ERR_STORE_UNAVAILABLE' })
  assert.equal(here.sessions.findInMemory(key), undefined)
  proxy.thaw()

  const direct = replica(t, shared.port)
  await hearing(direct.store)
  await until(tick, async () => (await direct.store.read(key)) === undefined)
})
