import { fapiAlgorithms } from '../config/fapi.ts'
import type { ProviderConfig, SigningAlgorithm } from '../config/model/provider.ts'
import { isJwtMode } from './jwt-response.ts'

type Metadata = Readonly<Record<string, unknown>>

/**
 * What the metadata of a provider lacks for `provider.profile`, with the clause of the FAPI 2.0
 * Security Profile; `undefined` when nothing is missing.
 */
export function lackForProfile(
  { response_mode, dpop, clientCertificate }: Pick<ProviderConfig, 'response_mode' | 'dpop' | 'clientCertificate'>,
  metadata: Metadata,
  algorithm: SigningAlgorithm,
): string | undefined {
  // A JWT response always contains `iss` (RFC 9207 §2.4).
  if (metadata['authorization_response_iss_parameter_supported'] !== true && !isJwtMode(response_mode))
    return 'it does not announce iss in authorization responses (authorization_response_iss_parameter_supported), which FAPI 2.0 §5.3.3.2 requires'
  if (!fapiAlgorithms.includes(algorithm))
    return `it signs with ${algorithm}, but FAPI 2.0 §5.4.1 allows only ${fapiAlgorithms.join(', ')}: configure it so, and set provider.id_token_signed_response_alg`
  if (lacks(metadata, 'code_challenge_methods_supported', 'S256'))
    return 'it does not list S256 among its code_challenge_methods_supported, which FAPI 2.0 §5.3.3.2 requires'
  if (dpop && lacks(metadata, 'dpop_signing_alg_values_supported', 'ES256'))
    return 'it does not list ES256 among its dpop_signing_alg_values_supported'
  if (!dpop && clientCertificate !== undefined && metadata['tls_client_certificate_bound_access_tokens'] !== true)
    return 'it does not bind access tokens to client certificates (tls_client_certificate_bound_access_tokens), which FAPI 2.0 §5.3.3.1 requires'
  return undefined
}

/** Whether a list in the metadata does not contain a member. An absent list says nothing. */
function lacks(metadata: Metadata, name: string, member: string): boolean {
  const list = metadata[name]
  return Array.isArray(list) && !list.includes(member)
}
