import { type CryptoKey, exportJWK, generateKeyPair, importJWK } from 'jose'
import * as client from 'openid-client'
import { type ClientAssertion, readClientAssertion } from '../config/client-assertion.ts'
import type { ClientKey, ProviderConfig, SigningAlgorithm } from '../config/model/provider.ts'
import { BoundedMap } from '../core/bounded-map.ts'
import type { Clock } from '../core/clock.ts'
import type { DpopKey } from '../core/token-set.ts'
import { providerUnavailable } from './provider-errors.ts'

export interface ClientSigner {
  readonly key: CryptoKey
  readonly kid: string | undefined
  readonly alg: SigningAlgorithm
}

export async function importSigner({ jwk, kid, alg }: ClientKey): Promise<ClientSigner> {
  return { key: (await importJWK({ ...jwk, kty: jwk['kty'] as string }, alg)) as CryptoKey, kid, alg }
}

export function privateKeyOf({ key, kid }: ClientSigner): CryptoKey | client.PrivateKey {
  return kid === undefined ? key : { key, kid }
}

/** How the client authenticates: RFC 6749 §2.3.1, RFC 7523 §2.2, RFC 8705 §2. */
export function clientAuth(
  config: ProviderConfig,
  signer: ClientSigner | undefined,
  metadata: Pick<client.ServerMetadata, 'token_endpoint'>,
  clock: Clock,
): client.ClientAuth {
  const { client_secret, token_endpoint_auth_method: method, clientAssertion, clientAssertionAudience } = config
  if (clientAssertion !== undefined) return assertionAuth(clientAssertion, clock)
  // openid-client writes the issuer, as FAPI 2.0 §5.3.3.1 requires. Older providers accept only the
  // token endpoint (RFC 7523 §3 (3)).
  const audience = clientAssertionAudience === 'token_endpoint' ? { aud: metadata.token_endpoint } : {}
  switch (method) {
    case 'client_secret_basic':
      return client.ClientSecretBasic(client_secret)
    case 'client_secret_post':
      return client.ClientSecretPost(client_secret)
    case 'client_secret_jwt':
      return client.ClientSecretJwt(client_secret, {
        [client.modifyAssertion]: (_header, payload) => void Object.assign(payload, audience),
      })
    case 'private_key_jwt':
      // The configuration has a key for this method.
      return client.PrivateKeyJwt(privateKeyOf(signer as ClientSigner), {
        [client.modifyAssertion]: (header, payload) => {
          Object.assign(header, algorithmOf(signer as ClientSigner))
          Object.assign(payload, audience)
        },
      })
    case 'tls_client_auth':
    case 'self_signed_tls_client_auth':
      return client.TlsClientAuth()
  }
}

/**
 * Sends the JWT of a file, which is read for each request. While the file has no valid one, the
 * last one is sent until it expires: a program may be writing the next one.
 * @throws {GatewayError} `ERR_PROVIDER_UNAVAILABLE`, at a request
 */
function assertionAuth(file: string, clock: Clock): client.ClientAuth {
  let last: ClientAssertion | undefined
  return (_server, { client_id }, body) => {
    const now = clock.now()
    const found = readClientAssertion(file, now)
    if (!('why' in found)) last = found
    else if (last === undefined || now >= last.expiresAt)
      throw providerUnavailable(`the client has no JWT to authenticate with (client_assertion): ${file} ${found.why}`)
    body.set('client_id', client_id)
    // RFC 7523 §2.2.
    body.set('client_assertion_type', 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer')
    body.set('client_assertion', last.jwt)
  }
}

/** openid-client writes `Ed25519` (RFC 9864). Most providers know only `EdDSA` (RFC 8037 §3.1). */
export function algorithmOf({ alg }: ClientSigner): { readonly alg: SigningAlgorithm } {
  return { alg }
}

/** Every provider with DPoP knows ES256, and it has the shortest proofs. */
const alg = 'ES256'

/** A new key pair for the tokens of one session. */
export async function newDpopKey(): Promise<DpopKey> {
  const { privateKey } = await generateKeyPair(alg, { extractable: true })
  const { x, y, d } = await exportJWK(privateKey)
  return { kty: 'EC', crv: 'P-256', x: String(x), y: String(y), d: String(d) }
}

/**
 * The proofs of sessions in use. A handle has the last nonces of the provider (RFC 9449 §8), so
 * most requests need no second attempt.
 */
export class DpopProofs {
  readonly #handles = new BoundedMap<string, client.DPoPHandle>('dpop_nonces', 1_000)

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
