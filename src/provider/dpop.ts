import { exportJWK, generateKeyPair, importJWK, type CryptoKey } from 'jose'
import * as client from 'openid-client'
import { BoundedMap } from '../core/bounded-map.ts'
import type { DpopKey } from '../core/token-set.ts'

/** Every provider with DPoP knows ES256, and it has the shortest proofs. */
const alg = 'ES256'

/** A new key pair for the tokens of one session. */
export async function newDpopKey(): Promise<DpopKey> {
  const { privateKey } = await generateKeyPair(alg, { extractable: true })
  const { x, y, d } = await exportJWK(privateKey)
  return { kty: 'EC', crv: 'P-256', x: String(x), y: String(y), d: String(d) }
}

/**
 * The proofs of sessions in use. Each handle remembers the last nonces of the provider (RFC 9449
 * §8), so that most requests need no second attempt.
 */
export class DpopProofs {
  readonly #handles = new BoundedMap<string, client.DPoPHandle>(1_000)

  async of(key: DpopKey, configuration: client.Configuration): Promise<client.DPoPHandle> {
    const known = this.#handles.get(key.x)
    if (known !== undefined) return known
    const { d: _, ...publicJwk } = key
    const pair = {
      privateKey: (await importJWK({ ...key }, alg)) as CryptoKey,
      publicKey: (await importJWK(publicJwk, alg, { extractable: true })) as CryptoKey,
    }
    const handle = client.getDPoPHandle(configuration, pair)
    this.#handles.set(key.x, handle)
    return handle
  }
}
