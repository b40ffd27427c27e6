import * as client from 'openid-client'
import type { ProviderConfig } from '../config/model/provider.ts'
import { type ClaimPath, type Claims, isExactScalar, readClaim } from '../core/claims.ts'
import { GatewayError } from '../core/errors.ts'
import { isObject } from '../core/json.ts'
import { bearerHeaders, unavailabilityOf } from './claims-api.ts'
import type { LogoutToken } from './logout-token.ts'
import type { Outbound } from './outbound.ts'
import { throwProviderError, providerUnavailable } from './provider-errors.ts'
import {
  type AccessToken,
  type CodeExchange,
  Provider,
  type ProviderParts,
  type SignedIn,
  type Userinfo,
} from './provider.ts'
import { rejectOtherTokenTypes, rejectSignIn, tokenSet } from './token-response.ts'

/** The longest identifier, in characters: that of `sub` (OpenID Connect Core §2). */
const longestSubject = 255
/** Members that would seem to come from an ID Token. The identity comes from `subject` alone. */
const reserved: ReadonlySet<string> = new Set([
  ...['sub', 'iss', 'sid', 'acr', 'amr', 'auth_time', '_claim_names', '_claim_sources', 'hasgroups'],
])

interface Person {
  readonly sub: string
  readonly claims: Claims
}

/** A provider without ID Tokens (`kind: oauth2`, RFC 6749 §4.1), whose API says who signs in. */
export class OAuth2Provider extends Provider {
  /** Where the API has the identifier of the person. */
  readonly #subject: ClaimPath

  constructor(config: ProviderConfig, { subject }: { readonly subject: ClaimPath }, parts: ProviderParts) {
    super(config, parts)
    this.#subject = subject
  }

  /** There is no `nonce`, because no ID Token returns it. */
  protected override signInParameters(): Readonly<Record<string, string>> {
    return {}
  }

  /** Nothing is signed, so no keys are needed. */
  protected override async ready(): Promise<void> {}

  override async exchangeCode(callback: URL, { state, code_verifier, stepUp }: CodeExchange): Promise<SignedIn> {
    // Without this error, the browser would return to the rule, and come here again.
    if (stepUp !== undefined)
      throw new GatewayError('ERR_STEP_UP_UNMET', 'the provider does not tell how a person signs in (kind: oauth2)')
    const found = await this.discovery.provider()
    const began = this.clock.now()
    const response = await client
      .authorizationCodeGrant(found.configuration, callback, { expectedState: state, pkceCodeVerifier: code_verifier })
      .catch((cause: unknown) => throwProviderError('the authorization code was not exchanged', cause))
    rejectOtherTokenTypes(response, undefined)
    const person = await this.#person(response.access_token)
    if (person === 'unauthorized') return rejectSignIn('the API rejects the access token that was just issued')
    this.warnings.reviewScope(response, found.access)
    const idToken = { iss: this.config.issuer, sub: person.sub, authentication: {} }
    return { tokens: tokenSet(response, { id_token: '', dpop_key: undefined }, began), idToken }
  }

  protected override async refreshedIdToken(response: client.TokenEndpointResponse): Promise<undefined> {
    rejectOtherTokenTypes(response, undefined)
  }

  override async userinfo({ access_token }: AccessToken, sub: string): Promise<Userinfo> {
    const person = await this.#person(access_token)
    if (person === 'unauthorized') return { kind: 'unauthorized' }
    if (person.sub !== sub) rejectSignIn('the response of the API is about another person')
    return { kind: 'claims', claims: person.claims }
  }

  override async verifyLogoutToken(): Promise<LogoutToken> {
    throw new GatewayError('ERR_LOGOUT_TOKEN_INVALID', 'logout token refused: provider.kind is oauth2')
  }

  async #person(access_token: string): Promise<Person | 'unauthorized'> {
    const { userinfo_endpoint } = await this.discovery.provider()
    return readPerson(userinfo_endpoint, access_token, this.#subject, this.outbound)
  }
}

/**
 * What the API says about the owner of the access token, whose identifier is at `subject`.
 * @throws {GatewayError} `ERR_PROVIDER_UNAVAILABLE`, or `ERR_SIGN_IN_RESPONSE`
 */
async function readPerson(
  endpoint: URL | undefined,
  access_token: string,
  subject: ClaimPath,
  outbound: Pick<Outbound, 'fetch'>,
): Promise<Person | 'unauthorized'> {
  if (endpoint === undefined) throw providerUnavailable('there is no userinfo_endpoint')
  const response = await outbound.fetch(endpoint.href, { headers: bearerHeaders(`Bearer ${access_token}`) })
  const { status } = response
  if (status === 401) return 'unauthorized'
  if (unavailabilityOf(response) !== undefined)
    throw providerUnavailable(`the API about the person responded with status ${status}`)
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
