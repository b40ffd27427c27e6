import { bearerChallenge, bearerToken } from '../core/credentials.ts'
import { GatewayError } from '../core/errors.ts'
import { isDeeperThan, isObject, type JsonObject, maxJsonDepth } from '../core/json.ts'
import type { EndpointRequest } from '../http/endpoint-request.ts'
import { empty, json, type Response } from '../http/response.ts'
import { pageContext, type Pages } from '../pages/pages.ts'
import type { Provider } from '../provider/provider.ts'
import type { RevocationToken } from '../provider/revocation-token.ts'
import { endNow, type SignalParts } from './carry-out.ts'
import { readSubject } from './events.ts'

const code = 'ERR_REVOCATION_INVALID'

type RevocationParts = SignalParts & { readonly provider: Pick<Provider, 'verifyRevocationToken'> }

/**
 * `POST global-token-revocation`: ends all sessions of a person
 * (draft-parecki-oauth-global-token-revocation-06 §3). Resolves when they have ended on every
 * replica, also when the person has none.
 * @throws {GatewayError} `ERR_REVOCATION_INVALID` (400 or 401), or `ERR_STORE_UNAVAILABLE` or
 * `ERR_PROVIDER_UNAVAILABLE` (503), for the sender to repeat it
 */
export async function globalTokenRevocation(request: EndpointRequest, parts: RevocationParts): Promise<Response> {
  const token = await authenticate(request, parts)
  const { issuer, globalTokenRevocation: config } = parts.provider.config
  const subject = readSubject(subjectIn(request.json), {
    issuers: [issuer, token.iss],
    trusted: config?.trustedSubjects ?? [],
  })
  if (subject.kind === 'unknown') throw new GatewayError(code, subject.why)
  await endNow(subject, token, parts, request.cause)
  return empty(204)
}

/** The response to a rejected request (§3.2): 401 for one that is not authenticated. */
export function rejectRevocation(
  error: GatewayError,
  request: EndpointRequest,
  { audit, pages }: Pick<SignalParts, 'audit'> & { readonly pages: Pages },
): Response {
  audit.record('signal.refused', { code: error.code, reason: error.message }, request.cause)
  if (error.status >= 500) return pages.refusal(error.code, pageContext(request))
  const isAuthenticated = !(error instanceof NotAuthenticated)
  const body = { error: isAuthenticated ? 'invalid_request' : 'invalid_token', error_description: error.publicText }
  const headers = isAuthenticated ? {} : { 'WWW-Authenticate': bearerChallenge({ error: 'invalid_token' }) }
  return { ...json(isAuthenticated ? error.status : 401, body, headers), code: error.code }
}

/** The request has no valid JWT. */
class NotAuthenticated extends GatewayError {
  constructor(why: string, cause?: unknown) {
    super(code, why, { cause })
  }
}

async function authenticate(request: EndpointRequest, { provider }: RevocationParts): Promise<RevocationToken> {
  const given = bearerToken(request.authorization)
  if (given === undefined || given === 'malformed') throw new NotAuthenticated('Authorization has no Bearer token')
  try {
    return await provider.verifyRevocationToken(given.token, new URL(request.url, request.externalUrl))
  } catch (error) {
    if (error instanceof GatewayError && error.code === code) throw new NotAuthenticated(error.message, error)
    throw error
  }
}

/** `sub_id`. Earlier drafts, and the examples of Okta, name it `subject`. */
function subjectIn(text: string | undefined): JsonObject {
  if (text === undefined) throw new GatewayError(code, 'Content-Type is not application/json')
  let content: unknown
  try {
    content = JSON.parse(text)
  } catch (cause) {
    throw new GatewayError(code, 'the content is not JSON', { cause })
  }
  if (!isObject(content) || isDeeperThan(maxJsonDepth, content))
    throw new GatewayError(code, 'the content is no object')
  const { sub_id, subject } = content
  if (sub_id !== undefined && subject !== undefined)
    throw new GatewayError(code, 'the content has both sub_id and subject')
  const found = sub_id ?? subject
  if (!isObject(found)) throw new GatewayError(code, 'the content has no sub_id that is an object')
  return found
}
