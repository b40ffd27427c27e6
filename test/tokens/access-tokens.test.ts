import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AccessTokensConfig } from '../../src/config/model/upstream.ts'
import { GatewayError } from '../../src/core/errors.ts'
import type { SessionKey } from '../../src/core/names.ts'
import { newSessionId, sessionKey, sidTag } from '../../src/session/record/record.ts'
import { AccessTokens, type Issuer, type TokenIdentity } from '../../src/tokens/access-tokens.ts'
import { TokenEndings } from '../../src/tokens/token-endings.ts'

const iss = 'https://id.example.com'
const jwt = (claims: object) =>
  ['{}', JSON.stringify(claims), ''].map((part) => Buffer.from(part).toString('base64url')).join('.')

/** What the provider says about a token. */
interface Said {
  readonly expiresAt?: number
  readonly issuedAt?: number
  readonly sid?: string
  readonly claims?: Readonly<Record<string, string | number>>
  readonly refuses?: 'ERR_TOKEN_INVALID' | 'ERR_PROVIDER_UNAVAILABLE'
}

/** Tokens of one provider, at the time 1000 s, and how often it was asked. */
function start(check: AccessTokensConfig['check'], options: { readonly isRenewed?: () => Promise<boolean> } = {}) {
  let now = 1_000_000
  let asked = 0
  let said: Said = { expiresAt: 1_060_000, issuedAt: 999_000 }
  let isFull = false
  const clock = { now: () => now }
  const endings = new TokenEndings({ clock, isRenewed: options.isRenewed ?? (async () => false) })
  const introspections = { hasFor: () => !isFull, take() {}, leave() {} }
  const tokens = new AccessTokens({ clock, endings, introspections })
  const answer = async () => {
    asked += 1
    if (said.refuses !== undefined) throw new GatewayError(said.refuses, 'no')
    const { sid, expiresAt, issuedAt, claims = {} } = said
    return { iss, sub: 'jane', sid, issuedAt, expiresAt, claims: { sub: 'jane', ...claims } }
  }
  const config = {
    ...{ issuer: iss, clockToleranceMs: 30_000, renamedClaims: {}, oauth2: undefined },
    claimsFrom: [
      { name: 'api', isMerged: false },
      { name: 'own', isMerged: false },
    ],
  }
  const issuer = {
    ...{ config, audience: 'orders' },
    provider: { verifyAccessToken: answer, introspect: answer },
  } as unknown as Issuer
  const accepts: AccessTokensConfig = {
    ...{ audience: ['api'], types: ['at+jwt'], scopes: [], metadata: false },
    ...{ check, introspectionCacheMs: 10_000 },
  }
  return {
    endings,
    identify: async (token = jwt({ iss }), upstream = 'orders'): Promise<TokenIdentity> =>
      tokens.identify(token, { name: upstream }, accepts, [issuer], '192.0.2.7'),
    asked: () => asked,
    say: (next: Said) => void (said = next),
    pass: (ms: number) => void (now += ms),
    fill: (full: boolean) => void (isFull = full),
  }
}

const keyOf = (sid: string): SessionKey => sessionKey(newSessionId('orders', { sub: 'jane', sid }))

test('A JWT is verified once for each upstream, until it expires', async () => {
  const { identify, asked, say, pass } = start('jwt')

  assert.equal((await identify()).kind, 'accepted')
  say({ refuses: 'ERR_TOKEN_INVALID' })
  pass(59_999)
  assert.equal((await identify()).kind, 'accepted')
  assert.equal(asked(), 1)
  assert.equal((await identify(jwt({ iss }), 'stock')).kind, 'refused')
  pass(1)
  assert.equal((await identify()).kind, 'refused')
  assert.equal(asked(), 3)
})

test('The result of an introspection is used for introspection_cache, and no longer than the token', async () => {
  for (const [expiresAt, lasts] of [
    [1_060_000, 10_000],
    [1_004_000, 4_000],
    [undefined, 10_000],
  ] as const) {
    const { identify, asked, say, pass } = start('introspection')
    say(expiresAt === undefined ? {} : { expiresAt })
    assert.equal((await identify('opaque')).kind, 'accepted')
    say({ refuses: 'ERR_TOKEN_INVALID' })
    pass(lasts - 1)
    assert.equal((await identify('opaque')).kind, 'accepted')
    pass(1)
    assert.equal((await identify('opaque')).kind, 'refused')
    assert.equal(asked(), 2)
  }
})

test('A token of another issuer, without one, or longer than 16 KiB is refused without a question', async () => {
  const { identify, asked } = start('jwt')

  assert.equal((await identify(jwt({ iss: 'https://evil.example' }))).kind, 'refused')
  assert.equal((await identify(jwt({}))).kind, 'refused')
  assert.equal((await identify('opaque')).kind, 'refused')
  assert.equal((await identify(jwt({ iss, long: 'x'.repeat(16 * 1024) }))).kind, 'refused')
  assert.equal(asked(), 0)
})

test('A provider that is away makes a token neither good nor bad, and is asked again', async () => {
  const { identify, say } = start('jwt')
  say({ refuses: 'ERR_PROVIDER_UNAVAILABLE' })

  assert.equal((await identify()).kind, 'unavailable')
  say({ expiresAt: 1_060_000 })
  assert.equal((await identify()).kind, 'accepted')
})

test('Only an introspection waits for a place, and requests with the same token share one', async () => {
  const jwts = start('jwt')
  jwts.fill(true)
  assert.equal((await jwts.identify()).kind, 'accepted')
  const { identify, fill, asked } = start('introspection')
  const first = identify('opaque')
  fill(true)

  assert.equal((await identify('another')).kind, 'unavailable')
  assert.equal((await identify('opaque')).kind, 'accepted')
  assert.equal((await first).kind, 'accepted')
  assert.equal(asked(), 1)
})

test('A token ends with the session of its sid, and the stream that uses it too', async () => {
  const { identify, endings, say, pass } = start('jwt')
  say({ sid: 'one', expiresAt: 1_060_000, issuedAt: 999_000 })
  const token = jwt({ iss })
  const identity = await identify(token)
  assert.ok(identity.kind === 'accepted')
  assert.equal(identity.isOver(), false)
  pass(1)

  endings.noteOrder({ tag: sidTag('orders', 'two'), at: 1_000_001, issued_at: undefined })
  assert.equal(identity.isOver(), false)
  endings.noteOrder({ tag: sidTag('orders', 'one'), at: 1_000_001, issued_at: undefined })

  assert.equal(identity.isOver(), true)
  assert.equal((await identify(token)).kind, 'refused')
  pass(50_000)
  assert.equal((await identify(token)).kind, 'refused', 'the ending is remembered while the token lasts')
})

test('A stream ends at the `exp` of its token', async () => {
  const { identify, pass } = start('jwt')
  const identity = await identify()
  assert.ok(identity.kind === 'accepted')

  pass(59_999)
  assert.equal(identity.isOver(), false)
  pass(1)
  assert.equal(identity.isOver(), true)
})

for (const isRenewal of [true, false])
  test(`While it is unknown whether a session was renewed, requests wait and streams go on: ${isRenewal}`, async () => {
    let tell: (isRenewal: boolean) => void = () => {}
    const isRenewed = () => new Promise<boolean>((resolve) => (tell = resolve))
    const { identify, endings, say, pass } = start('jwt', { isRenewed })
    say({ sid: 'one', expiresAt: 1_060_000, issuedAt: 999_000 })
    const identity = await identify()
    assert.ok(identity.kind === 'accepted')
    pass(1)

    endings.noteEnded([keyOf('one')])
    const waiting = identify()
    assert.equal(identity.isOver(), false)
    tell(isRenewal)

    assert.equal((await waiting).kind, isRenewal ? 'accepted' : 'refused')
    assert.equal(identity.isOver(), !isRenewal)
  })

test('After an ending, a token is introspected again, because it may be a later one', async () => {
  const { identify, endings, say, asked, pass } = start('introspection')
  say({ sid: 'one' })
  assert.equal((await identify('opaque')).kind, 'accepted')
  endings.noteOrder({ tag: sidTag('orders', 'one'), at: 1_000_000, issued_at: undefined })
  pass(1)

  assert.equal((await identify('opaque')).kind, 'accepted', 'the provider says so after the ending')
  assert.equal(asked(), 2)
})

test('Claims of APIs that were not read are withheld, and the authentication is that of the token', async () => {
  const { identify, say } = start('jwt')
  say({ expiresAt: 1_060_000, claims: { own: 'here', acr: 'mfa', auth_time: 1_030 } })
  const identity = await identify()
  assert.ok(identity.kind === 'accepted')

  assert.deepEqual(Object.keys(identity.record.claims['_claim_names'] as object), ['api'])
  assert.deepEqual(identity.record.authentication, { acr: 'mfa', auth_time: 1_030_000 })
  say({ expiresAt: 1_060_000, claims: { auth_time: 1_031 } })
  const later = await identify(jwt({ iss, other: true }))
  assert.deepEqual(later.kind === 'accepted' && later.record.authentication, {}, 'a time in the future')
})

test('A token that the provider does not accept any more has ended, unless it has expired', async () => {
  const { identify, say, pass } = start('introspection')
  const accepted = async () => {
    const found = await identify('opaque')
    return found.kind === 'accepted' ? found : assert.fail()
  }
  const first = await accepted()
  pass(10_000)
  const second = await accepted()
  say({ refuses: 'ERR_PROVIDER_UNAVAILABLE' })
  pass(10_000)
  assert.equal((await identify('opaque')).kind, 'unavailable')
  assert.deepEqual([first.hasEnded?.(), second.hasEnded?.()], [false, false])

  say({ refuses: 'ERR_TOKEN_INVALID' })
  assert.equal((await identify('opaque')).kind, 'refused')
  assert.deepEqual([first.hasEnded?.(), second.hasEnded?.(), first.isOver()], [true, true, true])

  say({ expiresAt: 1_060_000 })
  const again = await accepted()
  assert.equal(again.hasEnded?.(), false)
  // The clocks may differ, so a refusal that is near `exp` may be due to it.
  pass(10_000)
  say({ refuses: 'ERR_TOKEN_INVALID' })
  assert.equal((await identify('opaque')).kind, 'refused')
  assert.equal(again.hasEnded?.(), false)
})

test('A JWT that is refused because it has expired has not ended', async () => {
  const { identify, say, pass } = start('jwt')
  const found = await identify()
  pass(60_000)
  say({ refuses: 'ERR_TOKEN_INVALID' })

  assert.equal((await identify()).kind, 'refused')

  assert.ok(found.kind === 'accepted')
  assert.deepEqual([found.hasEnded?.(), found.isOver()], [false, true])
})
