import assert from 'node:assert/strict'
import { test } from 'node:test'
import { requestedAccess } from '../../src/provider/requested-access.ts'

const basic = ['openid', 'profile', 'email']
const keycloakToken = 'https://sso.example.com/protocol/openid-connect/token'

for (const [what, issuer, metadata, expected] of [
  ['a provider that lists it', 'https://id.example.com', { scopes_supported: [...basic, 'offline_access'] }, true],
  ['a provider that lists no scopes', 'https://id.example.com', {}, true],
  ['a provider that lists its scopes without it', 'https://id.example.com', { scopes_supported: basic }, false],
  [
    'Keycloak, though it lists it',
    'https://id.example.com/realms/main',
    { scopes_supported: [...basic, 'offline_access'] },
    false,
  ],
  ['Keycloak before version 17', 'https://id.example.com/auth/realms/main', {}, false],
  ['Keycloak behind a proxy that hides the realm', 'https://sso.example.com', { token_endpoint: keycloakToken }, false],
  ['Google', 'https://accounts.google.com', { scopes_supported: basic }, false],
] as const)
  test(`without scopes, offline_access is ${expected ? '' : 'not '}asked of ${what}`, () => {
    const access = requestedAccess({ issuer, scopes: undefined, authorizationParams: { ui_locales: 'de' } }, metadata)

    assert.deepEqual(access.scopes, expected ? [...basic, 'offline_access'] : basic)
    assert.equal(access.params['ui_locales'], 'de')
  })

test('without scopes, a refresh token is asked of Google by its own parameters, which the file may replace', () => {
  const google = { issuer: 'https://accounts.google.com', scopes: undefined }

  assert.deepEqual(requestedAccess({ ...google, authorizationParams: {} }, {}).params, {
    access_type: 'offline',
    prompt: 'consent',
  })
  assert.deepEqual(requestedAccess({ ...google, authorizationParams: { prompt: 'select_account' } }, {}).params, {
    access_type: 'offline',
    prompt: 'select_account',
  })
})

for (const issuer of ['https://id.example.com', 'https://id.example.com/realms/main', 'https://accounts.google.com'])
  test(`scopes of the file are asked for as they stand there: ${issuer}`, () => {
    const written = { scopes: ['openid', 'offline_access'], authorizationParams: { prompt: 'login' } }

    const access = requestedAccess({ issuer, ...written }, { scopes_supported: basic })

    assert.deepEqual(access, { scopes: written.scopes, params: written.authorizationParams })
  })
