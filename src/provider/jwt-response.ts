// JWT Secured Authorization Response Mode for OAuth 2.0 (JARM).
import { decodeJwt } from 'jose'
import type { ProviderConfig } from '../config/model/provider.ts'
import { GatewayError, reason } from '../core/errors.ts'
import { type TokenExpectations, verifyJwt } from './signed-token.ts'

const code = 'ERR_SIGN_IN_RESPONSE'

/** Whether the provider sends authorization responses as signed JWTs. */
export function isJwtMode(response_mode: ProviderConfig['response_mode']): boolean {
  return response_mode.endsWith('jwt')
}

/**
 * The `state` of a response that is not verified yet. The gateway has sealed it: a wrong one does
 * not open.
 */
export function stateOf(response: URLSearchParams, response_mode: ProviderConfig['response_mode']): string | undefined {
  const [state, ...more] = response.getAll('state')
  if (!isJwtMode(response_mode) || !response.has('response')) return more.length === 0 ? state : undefined
  try {
    const claimed = decodeJwt(response.get('response') ?? '')['state']
    return typeof claimed === 'string' ? claimed : undefined
  } catch {
    return undefined
  }
}

/**
 * Verifies a JWT response: signature, `iss`, `aud` and `exp` (JARM §2.4), and returns its
 * parameters. A plain response is rejected, because nothing would protect it.
 * @throws {GatewayError} `ERR_SIGN_IN_RESPONSE`, or `ERR_PROVIDER_UNAVAILABLE` without keys
 */
export async function readJwtResponse(
  response: URLSearchParams,
  expected: TokenExpectations,
): Promise<URLSearchParams> {
  const [jwt, ...more] = response.getAll('response')
  if (jwt === undefined)
    throw new GatewayError(
      code,
      'the authorization response is not a JWT, although provider.response_mode asks for one',
    )
  if (more.length > 0) throw new GatewayError(code, 'the authorization response contains several JWTs')
  const { client_id: audience, algorithm } = expected
  const options = { audience, algorithms: [algorithm], requiredClaims: ['iss', 'aud', 'exp'] }
  const { payload } = await verifyJwt(jwt, expected, options, (cause) => {
    throw new GatewayError(code, `authorization response refused: ${reason(cause)}`, { cause })
  })
  // `iss` is also a parameter (RFC 9207 §2.4). The other registered claims are about the JWT.
  const parameters = Object.entries(payload).filter(
    (member): member is [string, string] => typeof member[1] === 'string' && !aboutJwt.has(member[0]),
  )
  return new URLSearchParams(parameters)
}

const aboutJwt: ReadonlySet<string> = new Set(['aud', 'exp', 'iat', 'nbf', 'jti', 'sub'])
