import assert from 'node:assert/strict'
import { test } from 'node:test'
import { verifyLogoutToken } from '../../src/provider/logout-token.ts'
import { logoutEvent, now, startSigningProvider, type Json } from '../support/signing-provider.ts'
import { expectationsOf } from './expectations.ts'
import { forgeries, wrongClaims } from './forged-tokens.ts'

const at = now / 1000
const refused = { code: 'ERR_LOGOUT_TOKEN_INVALID' }

for (const [why, forge] of forgeries)
  test(`a Logout Token is rejected: ${why}`, async (t) => {
    const provider = await startSigningProvider(t)
    const events = { [logoutEvent]: {} }
    const claims = { iss: provider.issuer, aud: 'orders', sub: 'jane', jti: 'j', events, iat: at, exp: at + 120 }
    const token = forge(claims, provider)

    await assert.rejects(verifyLogoutToken(token, expectationsOf(t, provider)), refused)
  })

for (const [why, claims] of [
  ...wrongClaims,
  ['neither "sub" nor "sid" is present', () => ({ sub: undefined, sid: undefined })],
  ['"jti" is missing', () => ({ jti: undefined })],
  ['"jti" is empty', () => ({ jti: '' })],
  ['"jti" is a number', () => ({ jti: 1 })],
  ['it was issued hours ago, though it is good for days', () => ({ iat: at - 3700, exp: at + 86_400 })],
  ['"exp" is missing, and it was issued longer ago than two minutes', () => ({ iat: at - 150, exp: undefined })],
  ['"nonce" is present', () => ({ nonce: 'n' })],
  ['"nonce" is present, though it is nothing', () => ({ nonce: null })],
  ['"events" is missing', () => ({ events: undefined })],
  ['"events" is nothing', () => ({ events: null })],
  ['"events" is text', () => ({ events: logoutEvent })],
  ['"events" is a list', () => ({ events: [logoutEvent] })],
  ['"events" is empty', () => ({ events: {} })],
  ['"events" is of another kind', () => ({ events: { 'http://schemas.openid.net/event/other': {} } })],
  ['the event is spelt in capitals', () => ({ events: { [logoutEvent.toUpperCase()]: {} } })],
  ['the event is nothing', () => ({ events: { [logoutEvent]: null } })],
  ['the event is a list', () => ({ events: { [logoutEvent]: [] } })],
  ['the event is text', () => ({ events: { [logoutEvent]: '' } })],
  ['the event is "true"', () => ({ events: { [logoutEvent]: true } })],
] satisfies readonly (readonly [string, (at: number, issuer: string) => Json])[])
  test(`a Logout Token is rejected: ${why}`, async (t) => {
    const provider = await startSigningProvider(t)
    const token = provider.logoutToken(claims(at, provider.issuer))

    await assert.rejects(verifyLogoutToken(token, expectationsOf(t, provider)), refused)
  })

for (const typ of ['at+jwt', 'id_token+jwt', 'secevent+jwt', 'logout'])
  test(`a Logout Token is rejected: its "typ" is ${typ}`, async (t) => {
    const provider = await startSigningProvider(t)

    await assert.rejects(verifyLogoutToken(provider.logoutToken({}, { typ }), expectationsOf(t, provider)), refused)
  })

test('an ID Token is no Logout Token', async (t) => {
  const provider = await startSigningProvider(t)

  await assert.rejects(verifyLogoutToken(provider.idToken(), expectationsOf(t, provider)), refused)
})

for (const typ of ['logout+jwt', 'Logout+JWT', 'application/logout+jwt', 'JWT', undefined])
  test(`a Logout Token may have the "typ" ${typ}`, async (t) => {
    const provider = await startSigningProvider(t)
    const token = provider.logoutToken({ jti: 'j-1' }, { typ })

    const order = await verifyLogoutToken(token, expectationsOf(t, provider))

    assert.deepEqual(order, { iss: provider.issuer, jti: 'j-1', iat: at, exp: at + 120, sub: 'jane', sid: 's-1' })
  })

for (const [what, claims, expected] of [
  ['one session', { sub: undefined }, { sub: undefined, sid: 's-1' }],
  ['all sessions of a person', { sid: undefined }, { sub: 'jane', sid: undefined }],
] as const)
  test(`a Logout Token may be about ${what}`, async (t) => {
    const provider = await startSigningProvider(t)

    const { sub, sid } = await verifyLogoutToken(provider.logoutToken(claims), expectationsOf(t, provider))

    assert.deepEqual({ sub, sid }, expected)
  })

for (const seconds of [0, 120, 149])
  test(`a Logout Token without "exp" is accepted for two minutes: it was issued ${seconds} s ago`, async (t) => {
    const provider = await startSigningProvider(t)
    const iat = at - seconds

    const { exp } = await verifyLogoutToken(provider.logoutToken({ iat, exp: undefined }), expectationsOf(t, provider))

    assert.equal(exp, iat + 120)
  })

test('unknown members do not affect the event', async (t) => {
  const provider = await startSigningProvider(t)
  const events = { [logoutEvent]: { reason: 'revoked' }, 'https://id.example.com/other': {} }

  const { sid } = await verifyLogoutToken(provider.logoutToken({ events }), expectationsOf(t, provider))

  assert.equal(sid, 's-1')
})
