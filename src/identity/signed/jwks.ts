import type { EndpointRequest } from '../../http/endpoint-request.ts'
import { json, type Response } from '../../http/response.ts'
import type { SigningKeys } from './signing-keys.ts'

export interface JwksParts {
  readonly signingKeys: Pick<SigningKeys, 'published'>
}

/**
 * How long verifiers may keep the keys, in seconds. This is shorter than the time for which a key
 * is published before it signs.
 */
const maxAge = 300

/**
 * `GET jwks.json`: the keys that verify signed identities (RFC 7517 §5). They are public.
 * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
 */
export async function jwks(_request: EndpointRequest, { signingKeys }: JwksParts): Promise<Response> {
  return json(200, await signingKeys.published(), { 'Cache-Control': `public, max-age=${maxAge}` })
}
