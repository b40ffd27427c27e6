import assert from 'node:assert/strict'
import { test } from 'node:test'
import { authorizationRequest, callbackWithCode, clientOf, systemClock, validNow } from '../provider/a-client.ts'
import { bearer, paths, sendJson, startSigningProvider } from '../support/signing-provider.ts'

const tokens = { access_token: 'at', obtained_at: 0, id_token: 'it', refresh_token: 'rt' }

for (const token_type of ['DPoP', 'dpop', 'mac', 'N_A'])
  test(`An access token of the type ${token_type} is rejected because the gateway cannot use it`, async (t) => {
    const provider = await startSigningProvider(t)
    provider.respond(paths.token, (_req, res) =>
      sendJson(res, { ...bearer(), token_type, id_token: provider.idToken(validNow()) }),
    )
    const client = clientOf(t, provider, systemClock)

    await assert.rejects(client.exchangeCode(callbackWithCode(), authorizationRequest), {
      code: 'ERR_SIGN_IN_RESPONSE',
    })
    await assert.rejects(client.refresh(tokens, 'jane'), { code: 'ERR_SIGN_IN_RESPONSE' })
  })

test('The type of an access token is case-insensitive', async (t) => {
  const provider = await startSigningProvider(t)
  provider.respond(paths.token, (_req, res) => sendJson(res, { ...bearer(), token_type: 'bEARER' }))

  assert.equal((await clientOf(t, provider, systemClock).refresh(tokens, 'jane')).kind, 'refreshed')
})

test('A refresh token that is null counts as absent, at the sign-in and at a refresh', async (t) => {
  const provider = await startSigningProvider(t)
  provider.respond(paths.token, (_req, res) => {
    const nulls = { refresh_token: null, scope: null, expires_in: null }
    sendJson(res, { ...bearer(), ...nulls, id_token: provider.idToken(validNow()) })
  })
  const client = clientOf(t, provider, systemClock)

  const signedIn = await client.exchangeCode(callbackWithCode(), authorizationRequest)
  const refreshed = await client.refresh(tokens, 'jane')

  assert.equal(signedIn.tokens.refresh_token, undefined)
  assert.equal(refreshed.kind === 'refreshed' && refreshed.tokens.refresh_token, 'rt')
})
