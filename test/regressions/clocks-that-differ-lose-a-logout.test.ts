import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Clock } from '../../src/core/clock.ts'
import { hearing, tick } from '../session/redis-stores.ts'
import { audience, replica } from '../session/replica.ts'
import { until } from '../session/store-contract.ts'
import { startRedis } from '../support/redis.ts'

const shared = await startRedis({ after })
const off = (ms: number): Clock => ({ now: () => Date.now() + ms })
const iss = 'https://id.example.com'
const record = {
  ...{ iss, sub: 'jane', sid: 'one', claims: { sub: 'jane' }, userinfo_read_at: 0 },
  tokens: { access_token: 'a', obtained_at: 0, id_token: 'i' },
}

for (const ms of [-2_000, 2_000, -3_600_000])
  for (const which of ['sid', 'sub'] as const)
    test(`A sign-in does not survive its logout by ${which} at a replica whose clock is ${ms} ms off`, async (t) => {
      const [here, there] = [replica(t, shared.port), replica(t, shared.port, { clock: off(ms) })]
      await hearing(here.store, there.store)
      const begun = (await here.store.time()).earliest

      const order = { audience, jti: `${which} ${ms}`, exp: Date.now() / 1000 + 120 }
      await (which === 'sid'
        ? there.endings.endSid('one', order, 'provider')
        : there.endings.endSub('jane', order, 'provider'))

      assert.equal(await here.sessions.create(audience, record, begun), undefined)
      // A sign-in that begins one round trip after the logout makes a session.
      const { latest } = await there.store.time()
      await until(tick, async () => (await here.store.time()).earliest > latest)
      assert.notEqual(await here.sessions.create(audience, record, (await here.store.time()).earliest), undefined)
      const warning = there.log.lines.find(({ message }) => message === 'store.clock_differs')
      // The time for the round trip to Redis may be part of the difference.
      assert.equal(Math.round(Number(warning?.fields?.['seconds'])), Math.abs(ms) / 1000)
      assert.match(String(warning?.fields?.['hint']), ms < 0 ? /is behind/ : /is ahead of/)
      assert.ok(!here.log.messages().includes('store.clock_differs'))
    })
