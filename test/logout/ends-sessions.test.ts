import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointRequest } from '../../src/http/endpoint-request.ts'
import { endAllAtProvider } from '../../src/logout/end-at-provider.ts'
import { frontchannelLogout, type FrontchannelParts } from '../../src/logout/frontchannel.ts'
import { endOwnSessions, type OwnSessionsParts } from '../../src/logout/own-sessions.ts'
import { signedOut, type SignOutParts, signsOutAtOnce } from '../../src/logout/sign-out.ts'
import type { SessionRecord } from '../../src/session/record/record.ts'

const iss = 'https://id.example.com'

/** A front-channel logout with this query. Resolves to the `sid` whose sessions end. */
async function framed(query: string): Promise<{ readonly sids: string[]; readonly code: unknown }> {
  const sids: string[] = []
  const parts = {
    provider: { config: { issuer: iss }, frameOrigins: [] },
    sessions: { audience: 'orders' },
    endings: { endPresentSid: async (_audience: string, sid: string) => (sids.push(sid), []) },
    audit: { record: () => {} },
    pages: { sessionEnded: () => ({ status: 200, headers: {}, body: '' }) },
  } as unknown as FrontchannelParts
  const request = { query: new URLSearchParams(query), cause: {} } as unknown as EndpointRequest
  const code = await frontchannelLogout(request, parts).then(
    () => undefined,
    (error: { readonly code?: string }) => error.code,
  )
  return { sids, code }
}

const issuer = `iss=${encodeURIComponent(iss)}`

test('A front-channel logout ends the sessions of exactly one sid of this issuer', async () => {
  assert.deepEqual(await framed(`${issuer}&sid=one`), { sids: ['one'], code: undefined })
  const longest = 'x'.repeat(1_000)
  assert.deepEqual(await framed(`${issuer}&sid=${longest}`), { sids: [longest], code: undefined })
  for (const query of [
    `${issuer}`,
    `${issuer}&sid=`,
    `${issuer}&sid=${longest}x`,
    `${issuer}&sid=one&sid=two`,
    `${issuer}&${issuer}&sid=one`,
    'sid=one',
    'iss=https%3A%2F%2Fevil.example&sid=one',
  ])
    assert.deepEqual(await framed(query), { sids: [], code: 'ERR_LOGOUT_REQUEST' }, query)
})

const sessionOf = (sid: string | undefined, name: string): SessionRecord => ({
  ...{ iss, sub: 'jane', created_at: 0, absolute_expires_at: 1, claims: {}, userinfo_read_at: 0 },
  ...(sid !== undefined && { sid }),
  tokens: { access_token: 'a', id_token: `id of ${name}`, refresh_token: `refresh of ${name}`, obtained_at: 0 },
})

/** Ends sessions at a provider. Resolves to the ID Tokens and refresh tokens that it got. */
async function endedAtProvider(
  records: readonly SessionRecord[],
  keptSid?: string,
  isReachable = true,
  hasKeys = false,
) {
  const [hints, revoked]: [string[], string[]] = [[], []]
  const audited: string[] = []
  const counts = await endAllAtProvider(
    records,
    {
      audit: { record: (_event, fields) => void audited.push(String((fields as { outcome?: string }).outcome)) },
      personSessions: { hasKeys: async () => hasKeys },
      provider: {
        endSession: async (id_token) => {
          hints.push(String(id_token))
          if (!isReachable) throw new Error('away')
          return 'ended'
        },
        revoke: async (refresh_token) => {
          revoked.push(refresh_token)
          if (!isReachable) throw new Error('away')
          return 'revoked' as never
        },
      },
    },
    { keptSid },
  )
  return { hints, revoked, audited, counts: Object.fromEntries(counts) }
}

test('Each session at the provider ends once, except the one that stays, and all tokens are revoked', async () => {
  const records = [
    sessionOf('one', 'a'),
    sessionOf('one', 'b'),
    sessionOf('two', 'c'),
    sessionOf(undefined, 'd'),
    sessionOf(undefined, 'e'),
  ]

  const { hints, revoked, counts } = await endedAtProvider(records, 'two')

  assert.deepEqual(hints, ['id of a', 'id of d', 'id of e'])
  assert.deepEqual(
    revoked,
    ['a', 'b', 'c', 'd', 'e'].map((name) => `refresh of ${name}`),
  )
  assert.deepEqual(counts, { ended: 3 })
  const withoutSid = await endedAtProvider([sessionOf(undefined, 'd')], undefined)
  assert.deepEqual(withoutSid.hints, ['id of d'], 'a session without sid is not the one that stays')
})

test('The end of a key leaves the session at the provider, and a revocation leaves the other keys', async () => {
  const key = { name: 'a', upstream: 'orders', lifetime: 1, idle_timeout: 1 }
  const records = [{ ...sessionOf(undefined, 'key'), key }, sessionOf('one', 'session')]

  const alone = await endedAtProvider(records)
  assert.deepEqual(alone.hints, ['id of session'])
  assert.deepEqual(alone.revoked, ['refresh of key', 'refresh of session'])
  assert.deepEqual((await endedAtProvider(records, undefined, true, true)).revoked, [])
})

test('While the provider is unreachable, it is asked about the first sessions only, and each one is recorded', async () => {
  const records = Array.from({ length: 25 }, (_, at) => sessionOf(`sid ${at}`, String(at)))

  const { hints, audited, counts } = await endedAtProvider(records, undefined, false)

  assert.equal(hints.length, 10)
  assert.deepEqual(counts, { unreachable: 10, not_asked: 15 })
  assert.deepEqual(new Set(audited), new Set(['unreachable']))
  assert.equal(audited.length, 20, 'the end and the revocation')
})

const ours = { secFetchSite: 'same-origin', externalUrl: new URL('https://orders.example.com') }

for (const [what, request, isAtOnce] of [
  ['a click', { secFetchMode: 'navigate', secFetchDest: 'document' }, true],
  ['a click in an older browser', {}, true],
  ['a script', { method: 'POST', secFetchMode: 'cors', secFetchDest: 'empty' }, true],
  ['an image', { secFetchMode: 'no-cors', secFetchDest: 'image' }, false],
  ['an image with CORS', { secFetchMode: 'cors', secFetchDest: 'image' }, false],
  ['an object', { secFetchMode: 'navigate', secFetchDest: 'object' }, false],
  ['an embedded document', { secFetchMode: 'navigate', secFetchDest: 'embed' }, false],
  ['a prefetch', { isPrefetch: true }, false],
  ['another site', { secFetchSite: 'cross-site', secFetchMode: 'navigate', secFetchDest: 'document' }, false],
  ['a form of another site', { method: 'POST', secFetchSite: 'cross-site' }, false],
] as const)
  test(`A logout link of the application ${isAtOnce ? 'signs out at once' : 'asks first'}: ${what}`, () => {
    const initiator = { secFetchMode: undefined, secFetchDest: undefined, isPrefetch: false, origin: undefined }
    const all = { method: 'GET', ...initiator, referer: undefined, ...ours, ...request }

    assert.equal(signsOutAtOnce(all as Parameters<typeof signsOutAtOnce>[0]), isAtOnce)
  })

/** What the page after a sign-out says, while the store is unavailable. */
async function afterSignOut(query: string, stateInCookie: string | undefined): Promise<string> {
  const parts = {
    cookie: {
      withSuffixForSite: () => ({ name: 'signout', path: '/', secure: false, sameSite: 'Lax' }),
      read: () => 'a session',
    },
    sessions: { read: () => Promise.reject(new Error('the store is unavailable')) },
    provider: { config: { endSessionParams: {} } },
    pages: { signedOut: () => ({ status: 200, headers: {}, body: 'signed out' }) },
    log: { debug: () => {} },
    prefix: '/.gatehouse/',
  } as unknown as SignOutParts
  const request = {
    ...{ query: new URLSearchParams(query), url: '/.gatehouse/signed-out' },
    cookie: stateInCookie === undefined ? undefined : `signout=${stateInCookie}`,
  } as unknown as EndpointRequest
  return signedOut(request, parts).then(
    ({ body }) => String(body),
    (error: Error) => error.message,
  )
}

test('Only a return from a sign-out of this browser says "signed out" without the store', async () => {
  assert.equal(await afterSignOut('state=one', 'one'), 'signed out')
  for (const [query, stateInCookie] of [
    ['state=one', undefined],
    ['state=one', 'two'],
    ['', 'one'],
    ['', undefined],
    ['state=one&state=one', 'one'],
  ] as const)
    assert.equal(await afterSignOut(query, stateInCookie), 'the store is unavailable', `${query} ${stateInCookie}`)
})

test('The form of a refused sign-in ends sessions once', async () => {
  const ended: string[] = []
  const unused = [true, false]
  const parts = {
    prefix: '/.gatehouse/',
    refusedSignIns: {
      read: () => ({ sub: 'jane', sid: undefined, secret: 'secret' }),
      take: async () => unused.shift(),
      expire: () => [],
    },
    personSessions: { end: async (_viewer: unknown, token: string) => (ended.push(token), []) },
    pages: { redirectPage: () => ({ status: 200, headers: {}, body: '' }) },
  } as unknown as OwnSessionsParts
  const form = new URLSearchParams({ session: 'one', sign_in: '/.gatehouse/sign-in' })
  const externalUrl = new URL('https://orders.example.com')
  const request = { method: 'POST', secFetchSite: 'same-origin', externalUrl, form, cause: {} }

  for (let times = 0; times < 2; times += 1) await endOwnSessions(request as unknown as EndpointRequest, parts)

  assert.deepEqual(ended, ['one'])
})
