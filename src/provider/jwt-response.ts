// Responses that are JWTs: to authorization requests (JARM), to introspections (RFC 9701), and
// UserInfo; and what a provider may encrypt.
import { decodeJwt } from 'jose'
import type { ProviderConfig } from '../config/model/provider.ts'
import { GatewayError, reason } from '../core/errors.ts'
import { isObject } from '../core/json.ts'
import { type Decryption, longestToken } from './encrypted-token.ts'
import type { KeySet } from './key-set.ts'
import type { Outbound } from './outbound.ts'
import { EncryptedIdTokenError, providerUnavailable } from './provider-errors.ts'
import { algorithmsFor, type TokenExpectations, verifyJwt } from './signed-token.ts'

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

const mediaType = 'application/token-introspection+jwt'
/** The age of a response above the clock tolerance: an older one may be a copy. */
const maxAge = '5m'

export interface JwtResponseExpectations {
  /** The name of the endpoint that the response is from. */
  readonly endpoint: string
  readonly config: Pick<
    ProviderConfig,
    'issuer' | 'client_id' | 'clockToleranceMs' | 'profile' | 'userinfo_signed_response_alg'
  >
  readonly keys: Pick<KeySet, 'verify'>
  readonly decryption: Decryption
  /** In ms since the epoch. */
  readonly now: number
}

/**
 * Verifies a JWT response that is not encrypted: signature, `typ`, `iss`, `aud` and `iat` (RFC 9701
 * §5, §8.1).
 * @returns the claims about the token
 * @throws {GatewayError} `ERR_PROVIDER_UNAVAILABLE`, because it says nothing about the token
 */
export async function readIntrospectionJwt(
  jwt: string,
  { endpoint, config, keys, now }: JwtResponseExpectations,
): Promise<Readonly<Record<string, unknown>>> {
  if (endpoint !== 'introspection') reject('it is from another endpoint')
  if (jwt.length > longestToken) reject(`it is longer than ${longestToken} characters`)
  if (jwt.split('.', 6).length === 5) reject('it is encrypted: register this client for signed responses only')
  const options = {
    typ: 'token-introspection+jwt',
    audience: config.client_id,
    algorithms: [...algorithmsFor(config)],
    maxTokenAge: maxAge,
    requiredClaims: ['iss', 'aud', 'iat', 'token_introspection'],
  }
  const { payload } = await verifyJwt(jwt.trim(), { ...config, keys, now }, options, (cause) =>
    reject(reason(cause), cause),
  )
  const about: unknown = payload['token_introspection']
  return isObject(about) ? about : reject('"token_introspection" is not an object')
}

/**
 * Verifies signed UserInfo: signature, `iss` and `aud`, and `exp` if there is one (OpenID Connect
 * Core §5.3.2). The algorithm is the registered one (RFC 8725 §3.1).
 * @returns the claims, without those about the JWT
 * @throws {GatewayError} `ERR_SIGN_IN_RESPONSE`, or `ERR_PROVIDER_UNAVAILABLE` without keys
 */
export async function readUserinfoJwt(
  jwt: string,
  { endpoint, config, keys, decryption, now }: JwtResponseExpectations,
): Promise<Readonly<Record<string, unknown>>> {
  const { userinfo_signed_response_alg: algorithm } = config
  if (endpoint !== 'userinfo') rejectUserinfo(`the endpoint ${endpoint} responded with a JWT instead of JSON`)
  if (algorithm === undefined)
    rejectUserinfo(
      'it is a JWT instead of JSON: set provider.userinfo_signed_response_alg to the algorithm that the client is registered with',
    )
  const signed = await decryption.open('userinfo', jwt.trim(), rejectUserinfo)
  const options = { audience: config.client_id, algorithms: [algorithm], requiredClaims: ['iss', 'aud', 'sub'] }
  const { payload } = await verifyJwt(signed, { ...config, keys, now }, options, (cause) =>
    rejectUserinfo(reason(cause), cause),
  )
  const { sub, iss: _, ...others } = payload
  return { sub, ...Object.fromEntries(Object.entries(others).filter(([name]) => !aboutJwt.has(name))) }
}

/**
 * Replaces each response that is a JWT by its verified claims, because openid-client does not
 * verify their signatures. UserInfo that should be signed is refused when it is not. Decrypts the
 * ID Tokens of token responses.
 * @param expectationsFor the URL of a request
 */
export function withVerifiedJwts(
  outbound: Outbound,
  expectationsFor: (url: string) => JwtResponseExpectations,
): Outbound {
  return {
    ...outbound,
    fetch: async (url, options) => {
      const response = await outbound.fetch(url, options)
      const type = response.headers.get('content-type')?.split(';', 1)[0]?.trim().toLowerCase()
      const read = { [mediaType]: readIntrospectionJwt, 'application/jwt': readUserinfoJwt }[type ?? '']
      const expected = expectationsFor(url)
      if (response.status !== 200) return response
      if (expected.endpoint === 'token') return withDecryptedIdToken(response, expected)
      if (read !== undefined) return Response.json(await read(await response.text(), expected))
      if (expected.endpoint === 'userinfo' && expected.config.userinfo_signed_response_alg !== undefined)
        rejectUserinfo('it is not signed, although provider.userinfo_signed_response_alg is set')
      return response
    },
  }
}

async function withDecryptedIdToken(response: Response, { decryption }: JwtResponseExpectations): Promise<Response> {
  // openid-client reports what cannot be read.
  const body: unknown = await response.json().catch(() => undefined)
  if (!isObject(body) || typeof body['id_token'] !== 'string') return response
  const id_token = await decryption.open('id_token', body['id_token'], (why, cause) => {
    throw new EncryptedIdTokenError(why, cause)
  })
  return Object.assign(response, { json: async (): Promise<unknown> => ({ ...body, id_token }) })
}

function rejectUserinfo(why: string, cause?: unknown): never {
  throw new GatewayError('ERR_SIGN_IN_RESPONSE', `UserInfo is refused: ${why}`, { cause })
}

function reject(why: string, cause?: unknown): never {
  throw providerUnavailable(`the JWT response to an introspection is refused: ${why}`, cause)
}
