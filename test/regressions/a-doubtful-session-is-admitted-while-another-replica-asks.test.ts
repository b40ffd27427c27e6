import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Provider, Userinfo } from '../../src/provider/provider.ts'
import { Upkeep } from '../../src/tokens/upkeep.ts'
import { replica, signedInAt, type Replica } from '../session/replica.ts'
import { startRedis } from '../support/redis.ts'
import { noApis, noClaims } from '../support/signing-provider.ts'

const shared = await startRedis({ after })

interface UpkeepAtReplica {
  /** Resolves when this replica has tried to get the lease. */
  readonly triedLease: Promise<void>
  readonly upkeep: Upkeep
}

/** @param refused how often another replica has the lease when this one wants it again */
function upkeepAt(
  { store, sessions, endings, log }: Replica,
  userinfo: () => Promise<Userinfo>,
  refused = 0,
): UpkeepAtReplica {
  let tried = () => {}
  let attempts = 0
  const triedLease = new Promise<void>((resolve) => (tried = resolve))
  const watched = {
    renewLease: store.renewLease.bind(store),
    releaseLease: store.releaseLease.bind(store),
    acquireLease: async (...args: Parameters<typeof store.acquireLease>) => {
      attempts += 1
      if (attempts > 1 && attempts <= 1 + refused) return false
      const isAcquired = await store.acquireLease(...args)
      tried()
      return isAcquired
    },
  }
  const upkeep = new Upkeep(
    { refreshBeforeMs: 0, pollUserinfoMs: undefined },
    {
      ...{ sessions, endings, log, store: watched },
      clock: { now: () => Date.now() },
      audit: { record: () => {} },
      provider: {
        config: { timeoutMs: 60_000, ...noClaims } as Provider['config'],
        apis: noApis,
        refresh: () => assert.fail('the session has no refresh token'),
        userinfo,
      },
    },
  )
  return { upkeep, triedLease }
}

for (const [outcome, userinfo] of [
  ['has ended at the provider', { kind: 'unauthorized' }],
  ['lasts at the provider', { kind: 'claims', claims: { sub: 'jane' } }],
] as const)
  test(`A replica does not admit a doubtful session while another replica asks the provider: it ${outcome}`, async (t) => {
    const [asking, other] = [replica(t, shared.port), replica(t, shared.port)]
    const { id } = await signedInAt(asking, other)
    const stored = (await other.sessions.read(id)) ?? assert.fail('there is no session')
    const doubtful = { ...stored, isDoubtful: true }
    let respond = (_userinfo: Userinfo) => {}
    let called = () => {}
    const isCalled = new Promise<void>((resolve) => (called = resolve))
    let isHeld = true
    const atAsking = upkeepAt(asking, async () => {
      if (!isHeld) return userinfo
      isHeld = false
      called()
      return new Promise<Userinfo>((resolve) => (respond = resolve))
    })
    const atOther = upkeepAt(other, async () => userinfo)

    const first = Promise.resolve(atAsking.upkeep.fresh(doubtful))
    await isCalled
    const second = Promise.resolve(atOther.upkeep.fresh(doubtful))
    await atOther.triedLease
    respond(userinfo)

    const states = (await Promise.all([first, second])).map((session) => session && session.isDoubtful !== true)
    const expected = userinfo.kind === 'claims' ? true : undefined
    assert.deepEqual(states, [expected, expected])
  })

test('A doubtful session that has ended at the provider ends, also while another replica has the lease', async (t) => {
  const [asking, other] = [replica(t, shared.port), replica(t, shared.port)]
  const { id } = await signedInAt(asking, other)
  const stored = (await asking.sessions.read(id)) ?? assert.fail('there is no session')
  const { upkeep } = upkeepAt(asking, async () => ({ kind: 'unauthorized' }), 2)

  assert.equal(await upkeep.fresh({ ...stored, isDoubtful: true }), undefined)
  assert.equal(await other.sessions.read(id), undefined)
})
