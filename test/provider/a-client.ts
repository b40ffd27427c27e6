import type { TestContext } from 'node:test'
import type { Log, LogFields } from '../../src/observe/log.ts'
import type { Metrics } from '../../src/observe/metrics.ts'
import { createProvider } from '../../src/provider/create-provider.ts'
import type { Provider } from '../../src/provider/provider.ts'
import { silent, type SigningProvider } from '../support/signing-provider.ts'
import { movableClock, type MovableClock } from './expectations.ts'

/**
 * The provider as the gateway sees it. Tokens are checked by the clock of the test; nothing is
 * asked before the test asks.
 */
export function clientOf(
  t: TestContext,
  provider: SigningProvider,
  clock: MovableClock = movableClock(),
  log: Log = silent,
  metrics?: Metrics,
): Provider {
  const client = createProvider(provider.config, { clock, log, ...(metrics && { metrics }) })
  t.after(() => client.close())
  return client
}

/** A log that keeps its warnings. */
export function recordedWarnings(): { readonly log: Log; readonly warnings: { event: string; fields: LogFields }[] } {
  const warnings: { event: string; fields: LogFields }[] = []
  return { warnings, log: { ...silent, warn: (event, fields = {}) => void warnings.push({ event, fields }) } }
}

/** The redirect of the provider that brings an authorization code. */
export function callbackWithCode(): URL {
  const { redirect_uri, state } = authorizationRequest
  return new URL(`?${new URLSearchParams({ code: 'c-1', state }).toString()}`, redirect_uri)
}

/** `iat` and `exp` that openid-client, which takes the time from the system, accepts too. */
export function validNow(): { readonly iat: number; readonly exp: number } {
  const iat = Math.floor(Date.now() / 1000)
  return { iat, exp: iat + 120 }
}

/** The clock of the system. */
export const systemClock: MovableClock = { now: () => Date.now(), move: () => {} }

export const authorizationRequest = {
  redirect_uri: 'https://orders.example.com/.gatehouse/callback',
  state: 'state-of-the-test',
  nonce: 'n-1',
  code_verifier: 'v'.repeat(43),
  begun_at: Date.UTC(2026, 0, 1),
}
