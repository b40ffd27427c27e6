import type { TestContext } from 'node:test'
import { KeySet } from '../../src/provider/key-set.ts'
import { createOutbound } from '../../src/provider/outbound.ts'
import { client_id, now, paths, silent, type SigningProvider } from '../support/signing-provider.ts'

export interface MovableClock {
  now(): number
  move(ms: number): void
}

export function movableClock(): MovableClock {
  let at = now
  return { now: () => at, move: (ms) => void (at += ms) }
}

/** The keys of a provider, asked for over a real socket. */
export function keysOf(t: TestContext, provider: SigningProvider, clock: MovableClock = movableClock()): KeySet {
  const outbound = createOutbound({ timeoutMs: 60_000, ca: undefined })
  t.after(() => outbound.close())
  return new KeySet({ jwksUri: async () => `${provider.issuer}${paths.jwks}`, outbound, clock, log: silent })
}

/** What a token of this provider is held against. */
export function expectationsOf(t: TestContext, provider: SigningProvider) {
  return {
    issuer: provider.issuer,
    client_id,
    algorithm: 'RS256',
    keys: keysOf(t, provider),
    clockToleranceMs: 30_000,
    now,
  } as const
}
