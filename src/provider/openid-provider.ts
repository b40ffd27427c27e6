import * as client from 'openid-client'
import type { ProviderConfig } from '../config/model/provider.ts'
import type { AccessTokensConfig, TokenExchangeConfig } from '../config/model/upstream.ts'
import type { Claims } from '../core/claims.ts'
import type { Clock } from '../core/clock.ts'
import { GatewayError, reason, printable } from '../core/errors.ts'
import { sha256 } from '../core/random.ts'
import { type StepUp, stepUpParameters } from '../core/step-up.ts'
import { type DpopKey, lifetimeMsOf, type TokenSet } from '../core/token-set.ts'
import type { Log } from '../observe/log.ts'
import type { Metrics } from '../observe/metrics.ts'
import { readIntrospection, verifyAccessToken, type VerifiedAccessToken } from './access-token.ts'
import { authorizationUrlFor } from './authorization-request.ts'
import { ClaimSources } from './claim-sources.ts'
import { ClaimsApi } from './claims-api.ts'
import { DpopProofs, newDpopKey } from './client-auth.ts'
import { ApiCredentials, type ClientToken, requestClientToken, transmitterPurpose } from './client-credentials.ts'
import { Discovery } from './discovery.ts'
import { Decryption, type DecryptionKeys } from './encrypted-token.ts'
import {
  endSessionOutcome,
  endSessionRequest,
  type EndSessionRequest,
  type EndSessionValues,
  sendsIdTokenHint,
} from './end-session.ts'
import { verifyIdToken, type IdToken } from './id-token.ts'
import { isJwtMode, readJwtResponse, withVerifiedJwts } from './jwt-response.ts'
import { KeySet, type KeySetState } from './key-set.ts'
import { rejectLogoutToken, verifyLogoutToken, type LogoutToken } from './logout-token.ts'
import type { DiscoveredProvider } from './metadata.ts'
import { createOutbound, measuredOutbound, type Outbound } from './outbound.ts'
import { readPerson } from './person-api.ts'
import {
  clockAdvice,
  gatewayErrorIn,
  throwProviderError,
  hintForRejectedAlgorithm,
  InvalidTokensError,
  isAboutTokens,
  isInvalidGrant,
  isUnauthorized,
} from './provider-errors.ts'
import { type RevocationToken, verifyRevocationToken } from './revocation-token.ts'
import { type SecurityEventToken, verifySecurityEvent } from './security-event.ts'
import type { TokenExpectations } from './signed-token.ts'
import { StreamClient } from './stream-client.ts'
import {
  type ExchangedToken,
  exchangeParameters,
  readExchanged,
  throwExchangeError,
  tokenExchangeGrant,
} from './token-exchange.ts'
import { TokenResponseWarnings } from './token-response-warnings.ts'
import { Transmitter } from './transmitter.ts'

export interface AuthorizationRequest {
  readonly redirect_uri: string
  readonly state: string
  readonly nonce: string
  readonly code_verifier: string
  /** The expected person (OpenID Connect Core §3.1.2.1). */
  readonly login_hint?: string | undefined
  /** `login`: the person must authenticate even with a session at the provider. */
  readonly prompt?: 'login' | undefined
  /** How the person has to authenticate. It adds to `authorization_params`. */
  readonly stepUp?: StepUp | undefined
  /** Parameters of a link that `link_params` allows. */
  readonly linkParams?: Readonly<Record<string, string>> | undefined
}

export interface SignedIn {
  readonly tokens: TokenSet
  readonly idToken: IdToken
}

/** The result of a refresh. For `invalid_grant` see RFC 6749 §5.2. */
export type Refreshed =
  | {
      readonly kind: 'refreshed'
      readonly tokens: TokenSet
      /** From the new ID Token: see {@link IdToken}. */
      readonly session_expires_at?: number | undefined
    }
  | { readonly kind: 'invalid_grant' }

/** The claims, or that the access token is not accepted any more (RFC 6750 §3.1). */
export type Userinfo = { readonly kind: 'claims'; readonly claims: Claims } | { readonly kind: 'unauthorized' }

/** The access token, and the key that it is bound to. */
export type AccessToken = Pick<TokenSet, 'access_token' | 'dpop_key'>

export interface ProviderState {
  readonly issuer: string
  /** The signature algorithm of its tokens; absent until the provider was found. */
  readonly algorithm: string | undefined
  /** When the metadata was read last, in ms since the epoch. */
  readonly readAt: number | undefined
  /** The error of the last attempt to read the metadata. */
  readonly failure: string | undefined
  readonly keys: KeySetState
}

/**
 * One OpenID Provider, as its client sees it. Every method that sends a request rejects with a
 * `GatewayError`: `ERR_PROVIDER_UNAVAILABLE` without a usable response in time,
 * `ERR_SIGN_IN_RESPONSE` when the response must not be accepted.
 */
export class OpenidProvider {
  readonly config: ProviderConfig
  /** The streams of `signals`. Absent: the gateway sends no requests to the transmitter. */
  readonly streams: StreamClient | undefined
  /** The APIs of `claims_from`. */
  readonly apis: Pick<ClaimsApi, 'read'>
  readonly #clock: Clock
  readonly #outbound: Outbound
  readonly #discovery: Discovery
  readonly #keys: KeySet
  /** Those of `global_token_revocation`. */
  readonly #revocationKeys: KeySet
  readonly #transmitter: Transmitter | undefined
  readonly #claimSources: ClaimSources
  readonly #warnings: TokenResponseWarnings
  readonly #decryption: Decryption
  readonly #proofs = new DpopProofs()

  constructor(
    config: ProviderConfig,
    parts: {
      readonly clock: Clock
      readonly log: Log
      readonly metrics?: Metrics
      /** Absent: nothing is decrypted. */
      readonly decryptionKeys?: DecryptionKeys
    },
  ) {
    this.config = config
    this.#decryption = new Decryption(config, parts.decryptionKeys)
    this.#clock = parts.clock
    this.#warnings = new TokenResponseWarnings(parts.log)
    const outbound = createOutbound(config)
    this.#outbound =
      parts.metrics === undefined ? outbound : measuredOutbound(outbound, parts.metrics, (url) => this.#endpointOf(url))
    const expectationsFor = (url: string) => ({
      ...{ endpoint: this.#endpointOf(url), config, keys: this.#keys, decryption: this.#decryption },
      now: this.#clock.now(),
    })
    this.#discovery = new Discovery(config, {
      ...parts,
      outbound: withVerifiedJwts(this.#outbound, expectationsFor),
    })
    this.#keys = new KeySet({
      ...parts,
      outbound: this.#outbound,
      jwksUri: async () => (await this.#discovery.provider()).jwks_uri,
    })
    const { jwksUri } = config.globalTokenRevocation ?? {}
    this.#revocationKeys =
      jwksUri === undefined
        ? this.#keys
        : new KeySet({ ...parts, outbound: this.#outbound, jwksUri: async () => jwksUri })
    this.#transmitter = config.signals && new Transmitter(config.signals, { ...parts, outbound: this.#outbound })
    this.#claimSources = new ClaimSources(config, { ...parts, outbound: this.#outbound })
    this.streams = this.#streamClient()
    this.apis = new ClaimsApi({
      ...{ outbound: this.#outbound, clock: parts.clock, log: parts.log, timeoutMs: config.timeoutMs },
      clientToken: (scopes) => this.#clientToken(scopes, 'an API (claims_from)'),
    })
  }

  async #clientToken(scopes: readonly string[], purpose: string): Promise<ClientToken> {
    return requestClientToken((await this.#discovery.provider()).configuration, scopes, purpose)
  }

  /** Absent when the gateway sends no requests to the transmitter of `signals`. */
  #streamClient(): StreamClient | undefined {
    const { authorization } = this.config.signals ?? {}
    if (authorization === undefined || this.#transmitter === undefined) return undefined
    const credentials = new ApiCredentials(authorization, {
      clientToken: (scopes) => this.#clientToken(scopes, transmitterPurpose),
      clock: this.#clock,
    })
    return new StreamClient({ transmitter: this.#transmitter, credentials, outbound: this.#outbound })
  }

  /** Fetches the metadata in the background. Until that succeeds, a sign-in gets 503. */
  start(): void {
    this.#discovery.start()
  }

  get isKnown(): boolean {
    return this.#discovery.known !== undefined
  }

  get state(): ProviderState {
    const { readAt, failure } = this.#discovery.state
    return {
      issuer: this.config.issuer,
      algorithm: this.#discovery.known?.algorithm,
      ...{ readAt, failure },
      keys: this.#keys.state,
    }
  }

  /** The origin of the end-session endpoint; `undefined` until the provider was found. */
  get endSessionOrigin(): string | undefined {
    return this.#discovery.known?.end_session_endpoint?.origin
  }

  /**
   * The origins that may embed the front-channel logout: of the issuer and the end-session
   * endpoint.
   */
  get frameOrigins(): readonly string[] {
    return [...new Set([new URL(this.config.issuer).origin, ...[this.endSessionOrigin ?? []].flat()])]
  }

  async close(): Promise<void> {
    this.#discovery.close()
    await this.#outbound.close()
  }

  #endpointOf(url: string): string {
    const ofTransmitter = this.#transmitter?.endpointOf(url)
    if (ofTransmitter !== undefined) return ofTransmitter
    const { known } = this.#discovery
    if (known === undefined || url.includes('/.well-known/')) return 'discovery'
    const ofProvider = known.endpoints.get(url)
    if (ofProvider !== undefined) return ofProvider
    const isAt = (origin: string) => url === origin || url.startsWith(`${origin}/`) || url.startsWith(`${origin}?`)
    const { claimsFrom, claimSources } = this.config
    if (claimsFrom.some(({ sources }) => sources.some(({ origin }) => isAt(origin)))) return 'claims_api'
    const isOfSource = claimSources.some(({ jwks_uri, endpoints }) => url === jwks_uri || endpoints.some(isAt))
    return isOfSource ? 'claim_source' : 'other'
  }

  /**
   * The URL of an authorization request (OpenID Connect Core §3.1.2.1), always with PKCE and S256
   * (RFC 9700 §2.1.1). The request may be signed, and the gateway may push it.
   */
  async authorizationUrl(request: AuthorizationRequest): Promise<URL> {
    const found = await this.#discovery.provider()
    const { access } = found
    const parameters = new URLSearchParams({
      ...access.params,
      ...request.linkParams,
      ...stepUpParameters(this.#authenticationFor(request)),
      ...(request.login_hint === undefined ? {} : { login_hint: request.login_hint }),
      ...(request.prompt === undefined ? {} : { prompt: request.prompt }),
      response_type: 'code',
      // "query" is the default for a code.
      ...(this.config.response_mode === 'query' ? {} : { response_mode: this.config.response_mode }),
      ...(access.scopes.length > 0 && { scope: access.scopes.join(' ') }),
      redirect_uri: request.redirect_uri,
      state: request.state,
      ...(this.config.oauth2 === undefined && { nonce: request.nonce }),
      // RFC 7636 §4.2.
      code_challenge: sha256(request.code_verifier),
      code_challenge_method: 'S256',
    })
    for (const uri of this.config.resource) parameters.append('resource', uri)
    return authorizationUrlFor(found, parameters)
  }

  /**
   * The parameters of an authorization response, decrypted where it is encrypted. It is still to be
   * verified.
   * @throws {GatewayError} `ERR_SIGN_IN_RESPONSE`, or `ERR_STORE_UNAVAILABLE`
   */
  async decryptResponse(response: URLSearchParams): Promise<URLSearchParams> {
    const [jwt, ...more] = response.getAll('response')
    // `readJwtResponse` rejects several, and none.
    if (jwt === undefined || more.length > 0 || !isJwtMode(this.config.response_mode)) return response
    const decrypted = new URLSearchParams(response)
    decrypted.set('response', await this.#decryption.open('authorization', jwt, rejectResponse))
    return decrypted
  }

  /**
   * Exchanges the code. `callback` is the *configured* redirect URI with the parameters of the
   * response, decrypted: `state`, `iss` (RFC 9207), PKCE, `nonce` and the ID Token are checked.
   * `begun_at` is when the browser was sent to the provider, in ms since the epoch.
   */
  async exchangeCode(
    callback: URL,
    request: Pick<AuthorizationRequest, 'state' | 'nonce' | 'code_verifier' | 'stepUp'> & {
      readonly begun_at: number
    },
  ): Promise<SignedIn> {
    if (this.config.oauth2 !== undefined) return this.#exchangeWithoutIdToken(callback, request, this.config.oauth2)
    const found = await this.#discovery.provider()
    let redirect = callback
    if (isJwtMode(this.config.response_mode)) {
      const parameters = await readJwtResponse(callback.searchParams, this.#expectations(found))
      redirect = new URL(callback)
      redirect.search = parameters.toString()
    }
    await this.#decryption.ready()
    const dpop_key = this.config.dpop ? await newDpopKey() : undefined
    const proof = await this.#proofWith(dpop_key, found)
    const began = this.#clock.now()
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
        this.#resources(),
        proof,
      )
      .catch((cause: unknown) => throwProviderError('the authorization code was not exchanged', cause))
    rejectOtherTokenTypes(response, dpop_key)
    const id_token = response.id_token ?? reject('there is no id_token in the token response')
    const { max_age } = this.#authenticationFor(request)
    const idToken = await verifyIdToken(id_token, {
      ...this.#expectations(found),
      nonce: request.nonce,
      access_token: response.access_token,
      authenticatedSince: max_age === undefined ? undefined : request.begun_at - max_age * 1000,
      acr_values: request.stepUp?.acr_values,
      sessionExpiryClaim: sessionExpiryClaim(this.config),
    })
    const { session_expires_at = Infinity } = idToken
    if (session_expires_at <= this.#clock.now())
      throw new GatewayError(
        'ERR_SIGN_IN_ENDED',
        `the session has ended at the provider at ${new Date(session_expires_at).toISOString()} (${sessionExpiryClaim(this.config)}); if it should not have, ${clockAdvice}`,
      )
    this.#warnings.reviewSignIn(response, found.access)
    this.#warnings.reviewIdToken(idToken, found.configuration.serverMetadata())
    return { tokens: tokenSet(response, { id_token, dpop_key }, began), idToken }
  }

  /** The same at a provider without ID Tokens (RFC 6749 §4.1), whose API says who signs in. */
  async #exchangeWithoutIdToken(
    callback: URL,
    { state, code_verifier, stepUp }: Pick<AuthorizationRequest, 'state' | 'code_verifier' | 'stepUp'>,
    { subject }: NonNullable<ProviderConfig['oauth2']>,
  ): Promise<SignedIn> {
    // Without this error, the browser would return to the rule, and come here again.
    if (stepUp !== undefined)
      throw new GatewayError('ERR_STEP_UP_UNMET', 'the provider does not tell how a person signs in (kind: oauth2)')
    const found = await this.#discovery.provider()
    const began = this.#clock.now()
    const response = await client
      .authorizationCodeGrant(found.configuration, callback, { expectedState: state, pkceCodeVerifier: code_verifier })
      .catch((cause: unknown) => throwProviderError('the authorization code was not exchanged', cause))
    rejectOtherTokenTypes(response, undefined)
    const person = await readPerson(found.userinfo_endpoint, response.access_token, subject, this.#outbound)
    if (person === 'unauthorized') return reject('the API rejects the access token that was just issued')
    this.#warnings.reviewScope(response, found.access)
    const idToken = { iss: this.config.issuer, sub: person.sub, authentication: {} }
    return { tokens: tokenSet(response, { id_token: '', dpop_key: undefined }, began), idToken }
  }

  /** The proof that this client has the key of its tokens (RFC 9449 §4). */
  async #proofWith(
    dpop_key: DpopKey | undefined,
    { configuration }: Pick<DiscoveredProvider, 'configuration'>,
  ): Promise<client.DPoPOptions> {
    return dpop_key === undefined ? {} : { DPoP: await this.#proofs.of(dpop_key, configuration) }
  }

  /** The parameters of RFC 8707 §2.2. */
  #resources(): URLSearchParams {
    return new URLSearchParams(this.config.resource.map((uri): [string, string] => ['resource', uri]))
  }

  /** What a step-up requires. A shorter `max_age` of `authorization_params` applies too. */
  #authenticationFor({ stepUp = {} }: Pick<AuthorizationRequest, 'stepUp'>): StepUp {
    const configured = this.config.authorizationParams['max_age']
    const ages = [stepUp.max_age, configured === undefined ? undefined : Number(configured)]
    const known = ages.filter((age) => age !== undefined)
    return known.length === 0 ? stepUp : { ...stepUp, max_age: Math.min(...known) }
  }

  /**
   * Refreshes the tokens. A rotated refresh token replaces the old one, and a new ID Token must
   * have the same `sub`. The keys are fetched first, because a refresh token can be used only once.
   */
  async refresh(tokens: TokenSet & { readonly refresh_token: string }, sub: string): Promise<Refreshed> {
    const found = await this.#discovery.provider()
    if (this.config.oauth2 === undefined) await Promise.all([this.#keys.ready(), this.#decryption.ready()])
    // A session that began without DPoP gets its key here.
    const dpop_key = this.config.dpop ? (tokens.dpop_key ?? (await newDpopKey())) : undefined
    const proof = await this.#proofWith(dpop_key, found)
    const began = this.#clock.now()
    let response: client.TokenEndpointResponse
    try {
      response = await client.refreshTokenGrant(found.configuration, tokens.refresh_token, this.#resources(), proof)
    } catch (cause) {
      if (isInvalidGrant(cause)) return { kind: 'invalid_grant' }
      if (isAboutTokens(cause))
        throw new InvalidTokensError(`${reason(cause)}${hintForRejectedAlgorithm(cause)}`, cause)
      return throwProviderError('the tokens were not refreshed', cause)
    }
    this.#warnings.reviewScope(response, found.access)
    const idToken = await this.#refreshedIdToken(response, { sub, dpop_key }, found)
    const id_token = (idToken && response.id_token) ?? tokens.id_token
    const { refresh_token } = tokens
    return {
      kind: 'refreshed',
      tokens: tokenSet(response, { id_token, refresh_token, dpop_key }, began),
      session_expires_at: idToken?.session_expires_at,
    }
  }

  /**
   * The ID Token of a refresh; `undefined` without one, which is allowed (§12.2), or without keys.
   * @throws {InvalidTokensError} when the response must not be accepted
   */
  async #refreshedIdToken(
    response: client.TokenEndpointResponse,
    { sub, dpop_key }: { readonly sub: string; readonly dpop_key: DpopKey | undefined },
    found: DiscoveredProvider,
  ): Promise<IdToken | undefined> {
    const { id_token } = response
    try {
      rejectOtherTokenTypes(response, dpop_key)
      if (id_token === undefined) return undefined
      return await verifyIdToken(id_token, {
        ...this.#expectations(found),
        access_token: response.access_token,
        sub,
        sessionExpiryClaim: sessionExpiryClaim(this.config),
      })
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      if (error.code === 'ERR_PROVIDER_UNAVAILABLE') return undefined
      throw new InvalidTokensError(error.message, error)
    }
  }

  /**
   * Reads UserInfo. Its `sub` must be that of the ID Token (OpenID Connect Core §5.3.2). Claims of
   * `claim_sources` are read too.
   */
  async userinfo({ access_token, dpop_key }: AccessToken, sub: string): Promise<Userinfo> {
    const found = await this.#discovery.provider()
    const { configuration, userinfo_endpoint } = found
    const { resource, userinfoClaims, oauth2 } = this.config
    if (oauth2 !== undefined) {
      const person = await readPerson(userinfo_endpoint, access_token, oauth2.subject, this.#outbound)
      if (person === 'unauthorized') return { kind: 'unauthorized' }
      if (person.sub !== sub) reject('the response of the API is about another person')
      return { kind: 'claims', claims: person.claims }
    }
    // A token for a resource server may not be for UserInfo too. `id_token_claims` covers all
    // claims of headers and rules then, as it does without the endpoint: see `discover`.
    const isUnneeded = resource.length > 0 && userinfoClaims.length === 0
    if (userinfo_endpoint === undefined || isUnneeded) return { kind: 'claims', claims: { sub } }
    const proof = await this.#proofWith(dpop_key, found)
    try {
      const claims = (await client.fetchUserInfo(configuration, access_token, sub, proof)) as Claims
      return { kind: 'claims', claims: await this.#claimSources.resolve(claims, userinfoClaims) }
    } catch (cause) {
      if (isUnauthorized(cause)) return { kind: 'unauthorized' }
      return throwProviderError('UserInfo could not be read', cause)
    }
  }

  /**
   * The logout request of the browser (RP-Initiated Logout 1.0 §2); `undefined` without an
   * end-session endpoint. A provider that has removed the key of the ID Token would show an error
   * page instead of verifying the hint, so it gets `client_id`.
   */
  async endSessionRequest(
    values: EndSessionValues & { readonly id_token_hint: string },
  ): Promise<EndSessionRequest | undefined> {
    const { end_session_endpoint } = await this.#discovery.provider()
    if (end_session_endpoint === undefined) return undefined
    const id_token_hint = (await this.#keys.stillHasKeyOf(values.id_token_hint)) ? values.id_token_hint : undefined
    return endSessionRequest(end_session_endpoint, { ...values, id_token_hint }, this.config, (hint) =>
      this.#postEndSession(end_session_endpoint, hint),
    )
  }

  /**
   * Ends the session at the provider without a browser, by POST with `id_token_hint` alone.
   * @returns `unknown` when the response does not show whether it has ended; `unsupported` when the
   * provider has no end-session endpoint, or reads no `id_token_hint`
   */
  async endSession(id_token_hint: string): Promise<'ended' | 'unknown' | 'unsupported'> {
    const { end_session_endpoint } = await this.#discovery.provider()
    if (end_session_endpoint === undefined || !sendsIdTokenHint(this.config)) return 'unsupported'
    return endSessionOutcome(await this.#postEndSession(end_session_endpoint, id_token_hint))
  }

  #postEndSession(endpoint: URL, id_token_hint: string): Promise<Response> {
    return this.#outbound.fetch(endpoint.href, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ id_token_hint }).toString(),
    })
  }

  /** Revokes a refresh token (RFC 7009). `unsupported`: there is no revocation endpoint. */
  async revoke(refresh_token: string): Promise<'revoked' | 'unsupported'> {
    const { configuration, revocation_endpoint } = await this.#discovery.provider()
    if (revocation_endpoint === undefined) return 'unsupported'
    await client
      .tokenRevocation(configuration, refresh_token, { token_type_hint: 'refresh_token' })
      .catch((cause: unknown) => {
        throw new GatewayError('ERR_PROVIDER_UNAVAILABLE', `the refresh token was not revoked: ${reason(cause)}`, {
          cause,
        })
      })
    return 'revoked'
  }

  /**
   * Decrypts and verifies a Logout Token. One that is not encrypted is accepted, against the
   * recommendation of Back-Channel Logout 1.0 §2.6 (1): Keycloak encrypts ID Tokens only. What was
   * sent unencrypted does not become secret again, and the session would go on.
   */
  async verifyLogoutToken(logout_token: string): Promise<LogoutToken> {
    if (this.config.oauth2 !== undefined)
      throw new GatewayError('ERR_LOGOUT_TOKEN_INVALID', 'logout token refused: provider.kind is oauth2')
    const expected = this.#expectations(await this.#discovery.provider())
    const signed = await this.#decryption.open('id_token', logout_token, rejectLogoutToken, 'accept')
    return verifyLogoutToken(signed, expected)
  }

  /**
   * Verifies the JWT of a request for Global Token Revocation, which was sent to `url`.
   * @throws {GatewayError} `ERR_REVOCATION_INVALID`, or `ERR_PROVIDER_UNAVAILABLE` without keys
   */
  async verifyRevocationToken(token: string, { origin, pathname }: URL): Promise<RevocationToken> {
    const { issuer, globalTokenRevocation: config } = this.config
    return verifyRevocationToken(token, {
      issuer: config?.issuer ?? issuer,
      client_id: this.config.client_id,
      audience: [origin + pathname],
      algorithm: config?.signingAlg ?? (await this.#discovery.provider()).algorithm,
      keys: this.#revocationKeys,
      clockToleranceMs: this.config.clockToleranceMs,
      now: this.#clock.now(),
    })
  }

  /**
   * Verifies a Security Event Token of the transmitter in `signals`.
   * @throws {GatewayError} `ERR_SECURITY_EVENT_INVALID`, or `ERR_PROVIDER_UNAVAILABLE` without keys
   */
  async verifySecurityEvent(token: string): Promise<SecurityEventToken> {
    const { signals } = this.config
    if (signals === undefined || this.#transmitter === undefined)
      throw new GatewayError('ERR_SECURITY_EVENT_INVALID', 'the provider has no signals')
    const algorithm = signals.signingAlg ?? (await this.#discovery.provider()).algorithm
    return verifySecurityEvent(token, {
      issuer: signals.transmitter,
      client_id: this.config.client_id,
      audience: signals.audience,
      algorithm,
      keys: this.#transmitter.keys,
      clockToleranceMs: this.config.clockToleranceMs,
      now: this.#clock.now(),
    })
  }

  /** Verifies a JWT access token for an API: see {@link verifyAccessToken}. */
  async verifyAccessToken(token: string, accepts: AccessTokensConfig): Promise<VerifiedAccessToken> {
    return verifyAccessToken(token, { config: this.config, keys: this.#keys, accepts, now: this.#clock.now() })
  }

  /**
   * Asks the provider about an access token (RFC 7662). The response may be a JWT (RFC 9701).
   * @throws {GatewayError} `ERR_TOKEN_INVALID`, or `ERR_PROVIDER_UNAVAILABLE`
   */
  async introspect(token: string, accepts: AccessTokensConfig): Promise<VerifiedAccessToken> {
    const { configuration } = await this.#discovery.provider()
    if (configuration.serverMetadata().introspection_endpoint === undefined)
      throw new GatewayError(
        'ERR_PROVIDER_UNAVAILABLE',
        'its metadata has no introspection_endpoint: use access_tokens.check: jwt',
      )
    const response = await client
      .tokenIntrospection(configuration, token, { token_type_hint: 'access_token' })
      .catch((cause: unknown) => {
        const known = gatewayErrorIn(cause)
        if (known !== undefined) throw known
        throw new GatewayError('ERR_PROVIDER_UNAVAILABLE', `the introspection failed: ${reason(cause)}`, { cause })
      })
    return readIntrospection(response as Record<string, unknown>, token, {
      ...{ config: this.config, accepts, now: this.#clock.now() },
    })
  }

  /**
   * Exchanges an access token for one that is meant for an upstream (RFC 8693).
   * @throws {GatewayError} `ERR_PROVIDER_UNAVAILABLE`, or `ERR_TOKEN_EXCHANGE` when the provider
   * refuses, or issues a token that an upstream cannot use
   */
  async exchangeToken(subject_token: string, wanted: TokenExchangeConfig): Promise<ExchangedToken> {
    const { configuration } = await this.#discovery.provider()
    const began = this.#clock.now()
    const response = await client
      .genericGrantRequest(configuration, tokenExchangeGrant, exchangeParameters(subject_token, wanted))
      .catch(throwExchangeError)
    return readExchanged(response, began)
  }

  #expectations(found: DiscoveredProvider): TokenExpectations {
    return {
      issuer: this.config.issuer,
      client_id: this.config.client_id,
      algorithm: found.algorithm,
      keys: this.#keys,
      clockToleranceMs: this.config.clockToleranceMs,
      now: this.#clock.now(),
    }
  }
}

/** Another name of the claim is a short name: `claims: { session_expiry: NAME }`. */
function sessionExpiryClaim({ claims, renamedClaims }: ProviderConfig): string {
  const standard = 'session_expiry'
  const renamed = Object.entries(renamedClaims).find(([, short]) => short === standard)
  return claims[standard] ?? renamed?.[0] ?? standard
}

function reject(why: string): never {
  throw new GatewayError('ERR_SIGN_IN_RESPONSE', why)
}

function rejectResponse(why: string, cause?: unknown): never {
  throw new GatewayError('ERR_SIGN_IN_RESPONSE', `authorization response refused: ${why}`, { cause })
}

/**
 * Rejects other access tokens than requested: without a key the gateway cannot use a bound one, and
 * with a key it must not accept one that anybody can use (RFC 9449 §5).
 */
function rejectOtherTokenTypes({ token_type }: client.TokenEndpointResponse, dpop_key: DpopKey | undefined): void {
  const [type, remedy] =
    dpop_key === undefined
      ? (['Bearer', 'set provider.dpop when the provider binds tokens with DPoP'] as const)
      : (['DPoP', 'enable DPoP for this client at the provider, or remove provider.dpop'] as const)
  if (token_type.toLowerCase() !== type.toLowerCase())
    reject(`the access token is of the type ${printable(token_type)}, and not ${type}: ${remedy}`)
}

/**
 * The assumed lifetime of an access token with a refresh token, in seconds, because `expires_in`
 * may be left out (RFC 6749 §5.1).
 */
const usualAccessTokenSeconds = 60 * 60

/**
 * Builds the token set. `kept` has what the response may lack. `began` is when the request was
 * sent, so that the computed expiry is never too late.
 */
function tokenSet(
  response: client.TokenEndpointResponse,
  kept: Pick<TokenSet, 'id_token'> & { readonly refresh_token?: string; readonly dpop_key: DpopKey | undefined },
  began: number,
): TokenSet {
  const { id_token, dpop_key } = kept
  const { access_token, refresh_token = kept.refresh_token } = response
  const { expires_in = refresh_token === undefined ? undefined : usualAccessTokenSeconds } = response
  const lifetime = expires_in === undefined ? undefined : lifetimeMsOf(expires_in)
  return {
    access_token,
    obtained_at: began,
    id_token,
    ...(lifetime === undefined ? {} : { access_token_expires_at: began + lifetime }),
    ...(refresh_token === undefined ? {} : { refresh_token }),
    ...(dpop_key === undefined ? {} : { dpop_key }),
  }
}
