import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import type { Configuration } from 'oidc-provider'

export interface ClientKeyPair {
  /** PKCS #8 */
  readonly pem: string
  readonly privateJwk: Readonly<Record<string, unknown>>
  /** What the provider knows. */
  readonly publicJwk: Readonly<Record<string, unknown>>
}

/** A key of a client that signs with this algorithm. */
export function clientKeyPair(alg: 'RS256' | 'PS256' | 'ES256' | 'EdDSA', kid = `key-${alg}`): ClientKeyPair {
  const { privateKey, publicKey } = generate(alg)
  const facts = { kid, alg, use: 'sig' }
  return {
    pem: String(privateKey.export({ type: 'pkcs8', format: 'pem' })),
    privateJwk: { ...privateKey.export({ format: 'jwk' }), ...facts },
    publicJwk: { ...publicKey.export({ format: 'jwk' }), ...facts },
  }
}

/** A JWT as a platform signs it for the client, valid until 2100, with a signature of nobody. */
export function platformJwt(claims: object = {}): string {
  const usual = { iss: 'https://cluster.example.com', sub: 'system:serviceaccount:orders:gatehouse' }
  const whole = { ...usual, aud: 'https://id.example.com', exp: Date.UTC(2100) / 1000, ...claims }
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  return `${part({ alg: 'RS256' })}.${part(whole)}.c2ln`
}

function generate(alg: string): { readonly privateKey: KeyObject; readonly publicKey: KeyObject } {
  if (alg === 'EdDSA') return generateKeyPairSync('ed25519')
  if (alg === 'ES256') return generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return generateKeyPairSync('rsa', { modulusLength: 2048 })
}

/** For `adjust` of a provider: switches features on, and changes the registration of the client. */
export function withFeatures(
  features: NonNullable<Configuration['features']>,
  client: Readonly<Record<string, unknown>> = {},
  others: Configuration = {},
): (base: Configuration) => Configuration {
  // The types of oidc-provider cannot express that some features are switched on.
  return (base) =>
    ({
      ...base,
      ...others,
      // An access token expires before the ID Token, so that a test can move the clock to a
      // refresh.
      ttl: { ...base.ttl, AccessToken: 600 },
      features: { ...base.features, ...features },
      clients: (base.clients ?? []).map((registered) => ({ ...registered, ...client })),
    }) as Configuration
}
