import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SessionId } from '../../src/core/names.ts'
import type { EndpointRequest } from '../../src/http/endpoint-request.ts'
import { sessionKey } from '../../src/session/record/record.ts'
import { endOthers } from '../../src/sign-in/previous-sessions.ts'
import { extendSession, session } from '../../src/sign-in/session-endpoints.ts'
import type { SignInParts } from '../../src/sign-in/sign-in-parts.ts'

const id = 'id' as SessionId
const record = { sub: 'jane', claims: { sub: 'jane' }, created_at: 0, absolute_expires_at: 1 }
const request = {
  method: 'POST',
  externalUrl: new URL('https://a.example'),
  secFetchSite: 'same-origin',
} as unknown as EndpointRequest

/** What the endpoint needs, with the session that the store has for the cookie. */
function partsWith(found: object | undefined, { fault = '', isExpired = false } = {}) {
  const expired: (readonly string[])[] = []
  const extended: string[] = []
  const parts = {
    cookie: { read: () => id, isIn: () => true, expireAll: () => ['gatehouse=; Max-Age=0'] },
    boundCookie: { faultOf: () => fault || undefined },
    sessions: { peek: async () => found, find: async (key: string) => extended.push(key) },
    expiredCookies: { has: () => isExpired },
    pages: {
      refusal(_code: string, { setCookies = [] }: { readonly setCookies?: readonly string[] }) {
        expired.push(setCookies)
        return { status: 401 }
      },
    },
    prefix: '/.gatehouse/',
  } as unknown as SignInParts
  return { parts, expired, extended }
}

for (const [who, found, fault, status] of [
  ['a signed-in person', { record }, '', 200],
  ['somebody with the cookie of another device', { record }, 'missing', 401],
  ['a person whose session may have ended in an outage', { record, isDoubtful: true }, '', 401],
  ['nobody', undefined, '', 401],
] as const)
  test(`Only a session that counts here is extended: ${who}`, async () => {
    const { parts, extended } = partsWith(found, { fault })

    assert.equal((await extendSession(request, parts)).status, status)
    assert.deepEqual(extended, status === 200 ? [sessionKey(id)] : [])
  })

test('The cookie of a session that has ended expires once, because the browser may have a new one by then', async () => {
  const [first, later] = [partsWith(undefined), partsWith(undefined, { isExpired: true })]
  await session(request, first.parts)
  await session(request, later.parts)

  assert.deepEqual([first.expired, later.expired], [[['gatehouse=; Max-Age=0']], [[]]])
})

test('A sign-in is complete only after the sessions at other providers have ended', async () => {
  const { promise: inStore, resolve: confirm } = Promise.withResolvers<void>()
  const events: string[] = []
  const ended = endOthers(request, {
    others: [
      { cookie: { read: () => id, expireAll: () => ['other=; Max-Age=0'] }, personCookie: { expire: () => [] } },
    ],
    expiredCookies: { add: () => {} },
    endings: {
      async endOne(key: string) {
        await inStore
        events.push(`ended ${key}`)
        return []
      },
    },
  } as unknown as SignInParts).then((setCookies) => events.push(...setCookies))

  setImmediate(confirm)
  await ended

  assert.deepEqual(events, [`ended ${sessionKey(id)}`, 'other=; Max-Age=0'])
})
