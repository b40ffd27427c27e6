import assert from 'node:assert/strict'
import { test } from 'node:test'
import { providerFindings } from '../../packages/doctor/provider.ts'
import { examineProvider } from '../../src/provider/examine.ts'
import {
  authorizationRequest,
  callbackWithCode,
  clientOf,
  recordedWarnings,
  systemClock,
  validNow,
} from '../provider/a-client.ts'
import { bearer, part, paths, sendJson, startSigningProvider, type Json } from '../support/signing-provider.ts'

test('The default scopes do not request an offline session of Keycloak', async (t) => {
  const provider = await startSigningProvider(t, { issuerPath: '/realms/main', scopes: undefined })

  const url = await clientOf(t, provider).authorizationUrl(authorizationRequest)

  assert.equal(url.searchParams.get('scope'), 'openid profile email')
})

for (const [scopes, level] of [
  [undefined, 'ok'],
  [['openid', 'email'], 'ok'],
  [['openid', 'offline_access'], 'warning'],
] as const)
  test(`For Keycloak and the scopes ${String(scopes)}, the doctor reports: ${level}`, async (t) => {
    const provider = await startSigningProvider(t, { issuerPath: '/realms/main', scopes })

    const findings = providerFindings(await examineProvider(provider.config, []), provider.config, [])

    assert.deepEqual(
      findings.filter(({ id }) => id === 'provider.scopes').map((finding) => finding.level),
      [level],
    )
  })

const offlineToken = `${part({ alg: 'HS512' })}.${part({ typ: 'Offline' })}.c2ln`
const ordinaryToken = `${part({ alg: 'HS512' })}.${part({ typ: 'Refresh' })}.c2ln`

for (const [what, response, isWarned] of [
  ['is an offline token', { refresh_token: offlineToken }, true],
  ['has a life of 0 seconds', { refresh_token: 'opaque', refresh_expires_in: 0 }, true],
  ['is an ordinary one', { refresh_token: ordinaryToken, refresh_expires_in: 1800 }, false],
  ['is opaque', { refresh_token: 'opaque' }, false],
  ['is absent, which Keycloak gives a life of 0 seconds too', { refresh_expires_in: 0 }, false],
] satisfies readonly (readonly [string, Json, boolean])[])
  test(`Sign-ins ${isWarned ? 'warn once' : 'do not warn'} of an offline session when the refresh token ${what}`, async (t) => {
    const provider = await startSigningProvider(t, { scopes: ['openid'] })
    provider.respond(paths.token, (_req, res) =>
      sendJson(res, { ...bearer(), ...response, id_token: provider.idToken(validNow()) }),
    )
    const { log, warnings } = recordedWarnings()
    const client = clientOf(t, provider, systemClock, log)

    for (let signIns = 0; signIns < 2; signIns += 1) await client.exchangeCode(callbackWithCode(), authorizationRequest)

    assert.deepEqual(
      warnings.map(({ event }) => event),
      isWarned ? ['provider.offline_session'] : [],
    )
  })
