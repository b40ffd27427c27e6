import type { TestContext } from 'node:test'
import { OpenidProvider } from '../../src/provider/openid-provider.ts'
import { silent, type SigningProvider } from '../support/signing-provider.ts'
import { movableClock, type MovableClock } from './expectations.ts'

/** The provider as the gateway sees it. Tokens are checked by the clock of the test; nothing is asked before the test asks. */
export function clientOf(
  t: TestContext,
  provider: SigningProvider,
  clock: MovableClock = movableClock(),
): OpenidProvider {
  const client = new OpenidProvider(provider.config, { clock, log: silent })
  t.after(() => client.close())
  return client
}

export const authorizationRequest = {
  redirect_uri: 'https://orders.example.com/.gatehouse/callback',
  state: 'state-of-the-test',
  nonce: 'n-1',
  code_verifier: 'v'.repeat(43),
  begun_at: Date.UTC(2026, 0, 1),
}
