import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clientOf, systemClock, validNow } from '../provider/a-client.ts'
import { part, startSigningProvider } from '../support/signing-provider.ts'

// Keycloak 26.7.3 encrypts ID Tokens, and only signs Logout Tokens. The gateway refused them as
// Back-Channel Logout 1.0 §2.6 (1) recommends, and the sessions went on.
test('A Logout Token that is only signed is obeyed although ID Tokens are encrypted', async (t) => {
  const provider = await startSigningProvider(t, { id_token_encrypted_response_alg: 'RSA-OAEP-256' })
  const client = clientOf(t, provider, systemClock)
  const token = provider.logoutToken(validNow())

  assert.equal((await client.verifyLogoutToken(token)).sid, 's-1')

  const unsigned = `${part({ alg: 'none' })}.${token.split('.')[1] ?? ''}.`
  await assert.rejects(client.verifyLogoutToken(unsigned), { code: 'ERR_LOGOUT_TOKEN_INVALID' })
})
