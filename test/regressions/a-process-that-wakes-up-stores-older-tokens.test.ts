import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Redis } from 'ioredis'
import type { TokenSet } from '../../src/core/token-set.ts'
import type { Provider } from '../../src/provider/provider.ts'
import type { StoredSession } from '../../src/session/record/record.ts'
import { refresh } from '../../src/tokens/refresh.ts'
import { replica, signedInAt, type Replica } from '../session/replica.ts'
import { startRedis } from '../support/redis.ts'
import { noApis, noClaims } from '../support/signing-provider.ts'

const shared = await startRedis({ after })
const direct = new Redis(shared.port, '127.0.0.1')
after(() => direct.disconnect())

/** The tokens of a provider that accepts a refresh token more than once. */
function issued(count: number): TokenSet & { readonly refresh_token: string } {
  const payload = Buffer.from(JSON.stringify({ iat: count })).toString('base64url')
  const tokens = { access_token: `a${count}`, refresh_token: `r${count}`, id_token: `e30.${payload}.` }
  return { ...tokens, obtained_at: count, access_token_expires_at: 0 }
}

/** Refreshes at a replica. `answer` is the token endpoint of the provider. */
function refreshAt({ store, sessions, endings, log }: Replica, seen: StoredSession, response: () => Promise<TokenSet>) {
  return refresh(seen, {
    ...{ store, sessions, endings, log, clock: { now: () => Date.now() }, audit: { record: () => {} } },
    provider: {
      config: { timeoutMs: 1_000, ...noClaims } as Provider['config'],
      apis: noApis,
      refresh: async () => ({ kind: 'refreshed', tokens: await response() }),
      userinfo: async () => ({ kind: 'claims', claims: { sub: 'jane' } }),
    },
  })
}

for (const [title, ofTheSuspended, ofTheOther] of [
  ['A process that wakes up does not store its older tokens over newer ones', 2, 3],
  ['A process that wakes up stores the tokens that the provider issued last', 3, 2],
] as const)
  test(title, async (t) => {
    const [suspended, other] = [replica(t, shared.port), replica(t, shared.port)]
    const { id } = await signedInAt(suspended, other)
    const read = async () => (await other.sessions.read(id)) ?? assert.fail('the session is gone')
    await suspended.sessions.replace(await read(), { ...(await read()).record, tokens: issued(1) })
    const seen = await read()
    const asked = Promise.withResolvers<void>()
    const wakesUp = Promise.withResolvers<TokenSet>()

    const late = refreshAt(suspended, seen, () => {
      asked.resolve()
      return wakesUp.promise
    })
    await asked.promise
    assert.equal(await direct.del(...(await direct.keys(`${other.prefix}*:l:*`))), 1, 'the lease expires')
    await refreshAt(other, seen, async () => issued(ofTheOther))
    wakesUp.resolve(issued(ofTheSuspended))

    assert.equal((await late)?.record.tokens.refresh_token, 'r3')
    assert.equal((await read()).record.tokens.refresh_token, 'r3')
  })
