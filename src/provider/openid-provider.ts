import * as client from 'openid-client'
import type { ProviderConfig } from '../config/model/provider.ts'
import type { Claims } from '../core/claims.ts'
import { GatewayError } from '../core/errors.ts'
import type { DpopKey } from '../core/token-set.ts'
import { ClaimSources } from './claim-sources.ts'
import { newDpopKey } from './client-auth.ts'
import { verifyIdToken, type IdToken } from './id-token.ts'
import { isJwtMode, readJwtResponse } from './jwt-response.ts'
import { rejectLogoutToken, verifyLogoutToken, type LogoutToken } from './logout-token.ts'
import type { DiscoveredProvider } from './metadata.ts'
import { clockAdvice, isUnauthorized, throwProviderError } from './provider-errors.ts'
import {
  type AccessToken,
  type AuthorizationRequest,
  type CodeExchange,
  Provider,
  type ProviderParts,
  type SignedIn,
  type Userinfo,
} from './provider.ts'
import { rejectOtherTokenTypes, rejectSignIn, tokenSet } from './token-response.ts'

/** A provider of OpenID Connect: an ID Token says who has signed in. */
export class OpenidProvider extends Provider {
  readonly #claimSources: ClaimSources
  readonly #sessionExpiryClaim: string

  constructor(config: ProviderConfig, parts: ProviderParts) {
    super(config, parts)
    this.#sessionExpiryClaim = sessionExpiryClaim(config)
    this.#claimSources = new ClaimSources(config, { ...parts, outbound: this.outbound })
  }

  protected override signInParameters({ nonce }: AuthorizationRequest): Readonly<Record<string, string>> {
    return { nonce }
  }

  protected override ready(): Promise<unknown> {
    return Promise.all([this.keys.ready(), this.decryption.ready()])
  }

  /**
   * Exchanges the code: `state`, `iss` (RFC 9207), PKCE, `nonce` and the ID Token are checked.
   */
  override async exchangeCode(callback: URL, request: CodeExchange): Promise<SignedIn> {
    const found = await this.discovery.provider()
    let redirect = callback
    if (isJwtMode(this.config.response_mode)) {
      const parameters = await readJwtResponse(callback.searchParams, this.expectations(found.algorithm))
      redirect = new URL(callback)
      redirect.search = parameters.toString()
    }
    await this.decryption.ready()
    const dpop_key = this.config.dpop ? await newDpopKey() : undefined
    const proof = await this.proofWith(dpop_key, found)
    const began = this.clock.now()
    const response = await client
      .authorizationCodeGrant(
        found.configuration,
        redirect,
        {
          expectedState: request.state,
          expectedNonce: request.nonce,
          pkceCodeVerifier: request.code_verifier,
          idTokenExpected: true,
        },
        this.resources(),
        proof,
      )
      .catch((cause: unknown) => throwProviderError('the authorization code was not exchanged', cause))
    rejectOtherTokenTypes(response, dpop_key)
    const id_token = response.id_token ?? rejectSignIn('there is no id_token in the token response')
    const { max_age } = this.authenticationFor(request)
    const idToken = await verifyIdToken(id_token, {
      ...this.expectations(found.algorithm),
      nonce: request.nonce,
      access_token: response.access_token,
      authenticatedSince: max_age === undefined ? undefined : request.begun_at - max_age * 1000,
      acr_values: request.stepUp?.acr_values,
      sessionExpiryClaim: this.#sessionExpiryClaim,
    })
    const { session_expires_at = Infinity } = idToken
    if (session_expires_at <= this.clock.now())
      throw new GatewayError(
        'ERR_SIGN_IN_ENDED',
        `the session has ended at the provider at ${new Date(session_expires_at).toISOString()} (${this.#sessionExpiryClaim}); if it should not have, ${clockAdvice}`,
      )
    // They are about the tokens of sessions.
    if (request.isOffline !== true) this.warnings.reviewSignIn(response, found.access)
    this.warnings.reviewIdToken(idToken, found.configuration.serverMetadata())
    return { tokens: tokenSet(response, { id_token, dpop_key }, began), idToken }
  }

  /**
   * The ID Token of a refresh; `undefined` without one, which is allowed (§12.2), or without keys.
   */
  protected override async refreshedIdToken(
    response: client.TokenEndpointResponse,
    { sub, dpop_key }: { readonly sub: string; readonly dpop_key: DpopKey | undefined },
    found: DiscoveredProvider,
  ): Promise<IdToken | undefined> {
    const { id_token, access_token } = response
    rejectOtherTokenTypes(response, dpop_key)
    if (id_token === undefined) return undefined
    const expected = { ...this.expectations(found.algorithm), access_token, sub }
    return verifyIdToken(id_token, { ...expected, sessionExpiryClaim: this.#sessionExpiryClaim }).catch(
      (error: unknown) => {
        if (error instanceof GatewayError && error.code === 'ERR_PROVIDER_UNAVAILABLE') return undefined
        throw error
      },
    )
  }

  /**
   * Reads UserInfo. Its `sub` must be that of the ID Token (OpenID Connect Core §5.3.2). Claims of
   * `claim_sources` are read too.
   */
  override async userinfo({ access_token, dpop_key }: AccessToken, sub: string): Promise<Userinfo> {
    const found = await this.discovery.provider()
    const { configuration, userinfo_endpoint } = found
    const { resource, userinfoClaims } = this.config
    // A token for a resource server may not be for UserInfo too. `id_token_claims` covers all
    // claims of headers and rules then, as it does without the endpoint: see `discover`.
    const isUnneeded = resource.length > 0 && userinfoClaims.length === 0
    if (userinfo_endpoint === undefined || isUnneeded) return { kind: 'claims', claims: { sub } }
    const proof = await this.proofWith(dpop_key, found)
    try {
      const claims = (await client.fetchUserInfo(configuration, access_token, sub, proof)) as Claims
      const hasSources = this.config.claimSources.length > 0
      return { kind: 'claims', claims: hasSources ? await this.#claimSources.resolve(claims, userinfoClaims) : claims }
    } catch (cause) {
      if (isUnauthorized(cause)) return { kind: 'unauthorized' }
      return throwProviderError('UserInfo could not be read', cause)
    }
  }

  /**
   * Decrypts and verifies a Logout Token. One that is not encrypted is accepted, against the
   * recommendation of Back-Channel Logout 1.0 §2.6 (1): Keycloak encrypts ID Tokens only. What was
   * sent unencrypted does not become secret again, and the session would go on.
   */
  override async verifyLogoutToken(logout_token: string): Promise<LogoutToken> {
    const expected = this.expectations((await this.discovery.provider()).algorithm)
    const signed = await this.decryption.open('id_token', logout_token, rejectLogoutToken, 'accept')
    return verifyLogoutToken(signed, expected)
  }
}

/** Another name of the claim is a short name: `claims: { session_expiry: NAME }`. */
function sessionExpiryClaim({ claims, renamedClaims }: ProviderConfig): string {
  const standard = 'session_expiry'
  const renamed = Object.entries(renamedClaims).find(([, short]) => short === standard)
  return claims[standard] ?? renamed?.[0] ?? standard
}
