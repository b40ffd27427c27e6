import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { ProviderConfig } from '../../src/config/model/provider.ts'
import {
  bearer,
  paths,
  sendJson,
  startSigningProvider,
  type Json,
  type SigningProvider,
} from '../support/signing-provider.ts'
import {
  authorizationRequest,
  callbackWithCode,
  clientOf,
  recordedWarnings,
  systemClock,
  validNow,
} from './a-client.ts'

/** The warnings of two sign-ins at a provider. */
async function warningsOfTwoSignIns(t: TestContext, provider: SigningProvider) {
  const { log, warnings } = recordedWarnings()
  const client = clientOf(t, provider, systemClock, log)
  for (let signIns = 0; signIns < 2; signIns += 1) await client.exchangeCode(callbackWithCode(), authorizationRequest)
  return warnings
}

const offline = ['openid', 'email', 'offline_access']
const google = { access_type: 'offline' }

for (const [what, settings, response, warned] of [
  ['a refresh token was asked for, and none came', { scopes: offline }, {}, ['provider.no_refresh_token']],
  ['it came as null', { scopes: offline }, { refresh_token: null }, ['provider.no_refresh_token']],
  ['access_type=offline, and none came', { authorizationParams: google }, {}, ['provider.no_refresh_token']],
  ['a refresh token was asked for, and came', { scopes: offline }, { refresh_token: 'rt' }, []],
  ['none was asked for, and none came', {}, {}, []],
  [
    'fewer scopes were granted',
    { scopes: ['openid', 'email', 'groups'] },
    { scope: 'openid email' },
    ['provider.scope_narrowed'],
  ],
  ['no scope was granted', { scopes: ['openid', 'email'] }, { scope: '' }, ['provider.scope_narrowed']],
  ['openid and offline_access are left out', { scopes: offline }, { scope: 'email', refresh_token: 'rt' }, []],
  [
    'scopes have longer names',
    { scopes: ['openid', 'email'] },
    { scope: 'https://example.com/auth/userinfo.email openid' },
    [],
  ],
  ['more scopes were granted', { scopes: ['openid'] }, { scope: 'openid email' }, []],
  ['no scope is named', { scopes: ['openid', 'email'] }, {}, []],
] satisfies readonly (readonly [string, Partial<ProviderConfig>, Json, readonly string[]])[])
  test(`sign-ins warn of [${warned.join()}], once: ${what}`, async (t) => {
    const provider = await startSigningProvider(t, { scopes: ['openid'], ...settings })
    provider.respond(paths.token, (_req, res) =>
      sendJson(res, { ...bearer(), ...response, id_token: provider.idToken(validNow()) }),
    )

    const warnings = await warningsOfTwoSignIns(t, provider)

    assert.deepEqual(
      warnings.map(({ event }) => event),
      warned,
    )
    for (const { fields } of warnings) assert.ok(fields['reason'] !== undefined && fields['hint'] !== undefined)
  })

for (const [what, announced, claims, warned] of [
  ['Logout Tokens name sids', 'backchannel_logout_session_supported', { sid: undefined }, ['provider.no_sid']],
  ['frames name sids', 'frontchannel_logout_session_supported', { sid: undefined }, ['provider.no_sid']],
  ['no logout names a sid', 'backchannel_logout_supported', { sid: undefined }, []],
  ['the ID Token has one', 'backchannel_logout_session_supported', {}, []],
] satisfies readonly (readonly [string, string, Json, readonly string[]])[])
  test(`sign-ins warn of [${warned.join()}], once, about an ID Token without sid: ${what}`, async (t) => {
    const provider = await startSigningProvider(t, { scopes: ['openid'] })
    provider.metadata[announced] = true
    provider.respond(paths.token, (_req, res) =>
      sendJson(res, { ...bearer(), id_token: provider.idToken({ ...validNow(), ...claims }) }),
    )

    const warnings = await warningsOfTwoSignIns(t, provider)

    assert.deepEqual(
      warnings.map(({ event }) => event),
      warned,
    )
  })

test('fewer scopes at a refresh are logged too', async (t) => {
  const provider = await startSigningProvider(t, { scopes: ['openid', 'email'] })
  provider.respond(paths.token, (_req, res) => sendJson(res, { ...bearer(), scope: 'openid' }))
  const { log, warnings } = recordedWarnings()
  const tokens = { access_token: 'at', obtained_at: 0, id_token: 'it', refresh_token: 'rt' }

  await clientOf(t, provider, systemClock, log).refresh(tokens, 'jane')

  assert.deepEqual(
    warnings.map(({ event }) => event),
    ['provider.scope_narrowed'],
  )
})
