import assert from 'node:assert/strict'
import { test } from 'node:test'
import { offlineAccessOf, requestedAccess } from '../../src/provider/authorization-request.ts'

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
  ['Amazon Cognito', 'https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_AbCdEfGhI', {}, false],
  ['Entra ID', 'https://login.microsoftonline.com/6f1b0a3c-7d42-4c1e-9f0a-000000000000/v2.0', {}, true],
] as const)
  test(`without configured scopes, offline_access is ${expected ? '' : 'not '}requested from ${what}`, () => {
    const access = requestedAccess({ issuer, scopes: undefined, authorizationParams: { ui_locales: 'de' } }, metadata)

    assert.deepEqual(access.scopes, expected ? [...basic, 'offline_access'] : basic)
    assert.equal(access.params['ui_locales'], 'de')
  })

test('without configured scopes, Google is asked for a refresh token by parameters, which the configuration may replace', () => {
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
  test(`configured scopes are requested as they are: ${issuer}`, () => {
    const written = { scopes: ['openid', 'offline_access'], authorizationParams: { prompt: 'login' } }

    const access = requestedAccess({ issuer, ...written }, { scopes_supported: basic })

    assert.deepEqual(access, { scopes: written.scopes, params: written.authorizationParams })
  })

for (const [what, issuer, metadata, scopes, prompt] of [
  ['a provider', 'https://id.example.com', {}, [...basic, 'offline_access'], 'consent'],
  ['Keycloak', 'https://id.example.com/realms/main', {}, [...basic, 'offline_access'], 'consent'],
  ['a provider that does not list it', 'https://id.example.com', { scopes_supported: basic }, basic, 'login'],
  ['Amazon Cognito', 'https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_AbCdEfGhI', {}, basic, 'login'],
  ['Google', 'https://accounts.google.com', {}, basic, 'consent'],
] as const)
  test(`A key asks ${what} for a grant of its own, as it is possible there`, () => {
    const access = offlineAccessOf({ scopes: basic, params: { prompt: 'login' } }, { issuer }, metadata)

    assert.deepEqual([access.scopes, access.params['prompt']], [scopes, prompt])
    assert.equal(access.params['access_type'], what === 'Google' ? 'offline' : undefined)
  })
