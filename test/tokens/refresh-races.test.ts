import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ApiReading } from '../../src/core/claims.ts'
import type { SessionKey } from '../../src/core/names.ts'
import type { TokenSet } from '../../src/core/token-set.ts'
import type { Userinfo } from '../../src/provider/provider.ts'
import type { SessionRecord, StoredSession } from '../../src/session/record/record.ts'
import { pollUserinfo, refresh, type UpkeepParts } from '../../src/tokens/refresh.ts'
import { recorder } from '../session/redis-stores.ts'

// What other replicas do in the meantime.

const id_token = `.${Buffer.from('{"iat":1,"sub":"jane"}').toString('base64url')}.`
const old: TokenSet = { access_token: 'old', refresh_token: 'old', id_token, obtained_at: 0 }
const renewed: TokenSet = { access_token: 'new', refresh_token: 'new', id_token, obtained_at: 5 }

function sessionWith(tokens: TokenSet, more: Partial<SessionRecord> = {}, version = 1): StoredSession {
  const record = {
    ...{ iss: 'https://id.example.com', sub: 'jane', created_at: 0, absolute_expires_at: 1_000_000 },
    ...{ tokens, claims: {}, userinfo_read_at: 0, ...more },
  }
  return { key: 'tag:jane' as SessionKey, audience: '', version, bytes: 0, record }
}

const { refresh_token: _, ...unrefreshable } = old
const groups = { id: 'groups', name: 'groups', isMerged: false, everyMs: undefined, sources: [] }

interface Situation {
  /** What the store has now. */
  readonly current: StoredSession
  /** What another replica has written when the provider has responded. */
  readonly later?: StoredSession
  readonly isLeased?: boolean
  readonly userinfo?: Userinfo['kind']
  readonly refreshed?: 'invalid_grant'
  readonly readings?: ReadonlyMap<string, ApiReading>
}

function replicaWith({ current, later, isLeased = false, userinfo = 'claims', ...given }: Situation) {
  let stored = current
  const endings: string[] = []
  const polls: string[] = []
  const parts = {
    sessions: {
      read: async () => stored,
      async replace({ version }: StoredSession, record: SessionRecord) {
        if (version !== stored.version) return 'conflict'
        stored = { ...stored, version: version + 1, record }
        return stored
      },
    },
    endings: { endOne: async (_key: string, by: string) => void endings.push(by) },
    store: { acquireLease: async () => !isLeased, renewLease: async () => true, releaseLease: async () => {} },
    provider: {
      config: { timeoutMs: 0, idTokenClaims: [], renamedClaims: {}, claimsFrom: given.readings ? [groups] : [] },
      apis: { read: async () => given.readings ?? new Map() },
      async refresh() {
        stored = later ?? stored
        return given.refreshed ? { kind: given.refreshed } : { kind: 'refreshed', tokens: renewed }
      },
      async userinfo({ access_token }: TokenSet) {
        polls.push(access_token)
        return { kind: userinfo, claims: { sub: 'jane' } }
      },
    },
    clock: { now: () => 10 },
    log: recorder(),
    audit: { record() {} },
  } as unknown as UpkeepParts
  return { parts, endings, polls, stored: () => stored.record }
}

test('Refreshed tokens are stored although the record has changed meanwhile, and the change stays', async () => {
  const current = sessionWith(old)
  const later = sessionWith(old, { authentication: { acr: 'mfa' } }, 2)
  const { parts, stored } = replicaWith({ current, later })

  const result = await refresh(current, parts)

  assert.deepEqual(result?.record.tokens, renewed)
  assert.deepEqual([stored().tokens, stored().authentication], [renewed, { acr: 'mfa' }])
})

test('A rejected refresh token ends no session whose tokens another replica has refreshed', async () => {
  const current = sessionWith(old)
  const later = sessionWith(renewed, {}, 2)
  const { parts, endings } = replicaWith({ current, later, refreshed: 'invalid_grant' })

  assert.equal(await refresh(current, parts), later)
  assert.deepEqual(endings, [])
})

test('A replica that waits for another one uses its tokens as soon as they are stored', async () => {
  const current = sessionWith(renewed, {}, 2)
  const { parts } = replicaWith({ current, isLeased: true })

  assert.equal(await refresh(sessionWith(old), parts), current)
  await assert.rejects(refresh(current, parts), { code: 'ERR_PROVIDER_UNAVAILABLE' }, 'there are no other tokens')
})

test('A session without a refresh token ends when UserInfo rejects its access token', async () => {
  const current = sessionWith(unrefreshable)
  const { parts, endings } = replicaWith({ current, userinfo: 'unauthorized' })

  assert.equal(await pollUserinfo(current, parts), undefined)
  assert.deepEqual(endings, ['userinfo_401'])
})

test('An API that rejects the access token ends no session without a refresh token', async () => {
  const current = sessionWith(unrefreshable, { api_claims: { groups: { read_at: 1 } } })
  const readings = new Map([['groups', { kind: 'unusable', isRejected: true } as const]])
  const { parts, endings, polls } = replicaWith({ current, readings })

  assert.notEqual(await pollUserinfo(current, parts), undefined)
  assert.deepEqual([endings, polls], [[], ['old']])
})

test('UserInfo is not read again after another replica has read it, except to confirm a session', async () => {
  const current = sessionWith(old, { userinfo_read_at: 9 }, 2)
  const { parts, polls } = replicaWith({ current })

  assert.equal(await pollUserinfo(sessionWith(old), parts), current)
  assert.deepEqual(polls, [])

  await pollUserinfo(sessionWith(old), parts, () => {})
  assert.deepEqual(polls, ['old'])
})
