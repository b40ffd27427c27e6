import type { GatewayConfig } from '../config/model/gateway.ts'
import type { IdentityAlgorithm } from '../config/model/upstream.ts'
import { systemClock } from '../core/clock.ts'
import { SignedIdentities } from '../identity/signed/signed-identity.ts'
import { createSigningKey, type SigningKey } from '../identity/signed/signing-key.ts'

const keys = new Map<IdentityAlgorithm, SigningKey>()

/**
 * Signs identities as the gateway does, with keys that nobody publishes: `explain` and `check` have
 * no access to the store.
 */
export function trialIdentities(config: Pick<GatewayConfig, 'externalUrl' | 'providers'>): SignedIdentities {
  const inUse = (alg: IdentityAlgorithm): SigningKey => {
    const key = keys.get(alg) ?? createSigningKey(alg, 0)
    keys.set(alg, key)
    return key
  }
  return new SignedIdentities(config, { keys: { has: () => true, inUse }, clock: systemClock })
}
