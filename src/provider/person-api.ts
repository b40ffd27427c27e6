// The API of a provider without ID Tokens that says who signs in (`provider.kind: oauth2`).
import { type ClaimPath, type Claims, isExactScalar, readClaim } from '../core/claims.ts'
import { GatewayError } from '../core/errors.ts'
import { isObject } from '../core/json.ts'
import { unavailabilityOf, bearerHeaders } from './claims-api.ts'
import type { Outbound } from './outbound.ts'

/** The longest identifier, in characters: that of `sub` (OpenID Connect Core §2). */
const longestSubject = 255
/** Members that would seem to come from an ID Token. The identity comes from `subject` alone. */
const reserved: ReadonlySet<string> = new Set([
  ...['sub', 'iss', 'sid', 'acr', 'amr', 'auth_time', '_claim_names', '_claim_sources', 'hasgroups'],
])

export interface Person {
  readonly sub: string
  readonly claims: Claims
}

/**
 * What the API says about the owner of the access token, whose identifier is at `subject`.
 * @throws {GatewayError} `ERR_PROVIDER_UNAVAILABLE`, or `ERR_SIGN_IN_RESPONSE`
 */
export async function readPerson(
  endpoint: URL | undefined,
  access_token: string,
  subject: ClaimPath,
  outbound: Pick<Outbound, 'fetch'>,
): Promise<Person | 'unauthorized'> {
  if (endpoint === undefined) throw new GatewayError('ERR_PROVIDER_UNAVAILABLE', 'there is no userinfo_endpoint')
  const response = await outbound.fetch(endpoint.href, { headers: bearerHeaders(`Bearer ${access_token}`) })
  const { status } = response
  if (status === 401) return 'unauthorized'
  if (unavailabilityOf(response) !== undefined)
    throw new GatewayError('ERR_PROVIDER_UNAVAILABLE', `the API about the person responded with status ${status}`)
  // A parser quotes what it cannot read, so its error is left out.
  const body: unknown = await response.json().catch((error: unknown) => {
    if (error instanceof SyntaxError) return undefined
    throw error
  })
  if (status !== 200 || !isObject(body))
    throw new GatewayError(
      'ERR_SIGN_IN_RESPONSE',
      `the API about the person responded with status ${status}, or not with a JSON object`,
    )
  const claims = Object.entries(body as Claims).filter(([name]) => !reserved.has(name))
  return { sub: subjectOf(body as Claims, subject), claims: Object.fromEntries(claims) }
}

/**
 * The identifier of the person. A number becomes text.
 * @throws {GatewayError} `ERR_SIGN_IN_RESPONSE`
 */
function subjectOf(claims: Claims, path: ClaimPath): string {
  const value = readClaim(claims, path)
  const isUsable = (typeof value === 'string' || typeof value === 'number') && isExactScalar(value)
  const text = String(value)
  if (!isUsable || text === '' || text.length > longestSubject)
    throw new GatewayError(
      'ERR_SIGN_IN_RESPONSE',
      `the API has no usable identifier at provider.subject (${path.join('.')})`,
    )
  return text
}
