import * as client from 'openid-client'
import type { ProviderConfig, SigningAlgorithm } from '../config/model/provider.ts'
import type { AccessTokensConfig, TokenExchangeConfig } from '../config/model/upstream.ts'
import type { Claims } from '../core/claims.ts'
import type { Clock } from '../core/clock.ts'
import { GatewayError, reason } from '../core/errors.ts'
import { sha256 } from '../core/random.ts'
import { type StepUp, stepUpParameters } from '../core/step-up.ts'
import { type DpopKey, type TokenSet } from '../core/token-set.ts'
import type { Log } from '../observe/log.ts'
import type { Metrics } from '../observe/metrics.ts'
import { readIntrospection, verifyAccessToken, type VerifiedAccessToken } from './access-token.ts'
import { authorizationUrlFor, offlineAccessOf } from './authorization-request.ts'
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
import type { IdToken } from './id-token.ts'
import { isJwtMode, withVerifiedJwts } from './jwt-response.ts'
import { KeySet, type KeySetState } from './key-set.ts'
import type { LogoutToken } from './logout-token.ts'
import type { DiscoveredProvider } from './metadata.ts'
import { createOutbound, measuredOutbound, type Outbound } from './outbound.ts'
import {
  gatewayErrorIn,
  throwProviderError,
  hintForRejectedAlgorithm,
  InvalidTokensError,
  isAboutTokens,
  isInvalidGrant,
  NotRevokedError,
  providerErrorIn,
  providerUnavailable,
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
import { tokenSet } from './token-response.ts'
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
  /** The tokens are for the time without the person, with a grant of their own. */
  readonly isOffline?: boolean
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

/** `begun_at` is when the browser was sent to the provider, in ms since the epoch. */
export type CodeExchange = Pick<AuthorizationRequest, 'state' | 'nonce' | 'code_verifier' | 'stepUp' | 'isOffline'> & {
  readonly begun_at: number
}

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

export interface ProviderParts {
  readonly clock: Clock
  readonly log: Log
  readonly metrics?: Metrics
  /** Absent: nothing is decrypted. */
  readonly decryptionKeys?: DecryptionKeys
}

/**
 * A provider as its client sees it. Every method that sends a request rejects with a
 * `GatewayError`: `ERR_PROVIDER_UNAVAILABLE` without a usable response in time,
 * `ERR_SIGN_IN_RESPONSE` when the response must not be accepted.
 */
export abstract class Provider {
  readonly config: ProviderConfig
  /** The streams of `signals`. Absent: the gateway sends no requests to the transmitter. */
  readonly streams: StreamClient | undefined
  /** The APIs of `claims_from`. */
  readonly apis: Pick<ClaimsApi, 'read'>
  protected readonly clock: Clock
  protected readonly outbound: Outbound
  protected readonly discovery: Discovery
  protected readonly keys: KeySet
  /** Those of `global_token_revocation`. */
  readonly #revocationKeys: KeySet
  readonly #transmitter: Transmitter | undefined
  protected readonly warnings: TokenResponseWarnings
  protected readonly decryption: Decryption
  readonly #proofs = new DpopProofs()

  constructor(config: ProviderConfig, parts: ProviderParts) {
    this.config = config
    this.decryption = new Decryption(config, parts.decryptionKeys)
    this.clock = parts.clock
    this.warnings = new TokenResponseWarnings(parts.log)
    const outbound = createOutbound(config)
    this.outbound =
      parts.metrics === undefined ? outbound : measuredOutbound(outbound, parts.metrics, (url) => this.#endpointOf(url))
    const expectationsFor = (url: string) => ({
      endpoint: this.#endpointOf(url),
      config,
      keys: this.keys,
      decryption: this.decryption,
      now: this.clock.now(),
    })
    this.discovery = new Discovery(config, { ...parts, outbound: withVerifiedJwts(this.outbound, expectationsFor) })
    const requests = { ...parts, outbound: this.outbound }
    this.keys = new KeySet({ ...requests, jwksUri: async () => (await this.discovery.provider()).jwks_uri })
    const { jwksUri } = config.globalTokenRevocation ?? {}
    this.#revocationKeys = jwksUri === undefined ? this.keys : new KeySet({ ...requests, jwksUri: async () => jwksUri })
    this.#transmitter = config.signals && new Transmitter(config.signals, requests)
    this.streams = this.#streamClient()
    this.apis = new ClaimsApi({
      ...requests,
      timeoutMs: config.timeoutMs,
      clientToken: (scopes) => this.#clientToken(scopes, 'an API (claims_from)'),
    })
  }

  async #clientToken(scopes: readonly string[], purpose: string): Promise<ClientToken> {
    return requestClientToken((await this.discovery.provider()).configuration, scopes, purpose)
  }

  /** Absent when the gateway sends no requests to the transmitter of `signals`. */
  #streamClient(): StreamClient | undefined {
    const { authorization } = this.config.signals ?? {}
    if (authorization === undefined || this.#transmitter === undefined) return undefined
    const credentials = new ApiCredentials(authorization, {
      clientToken: (scopes) => this.#clientToken(scopes, transmitterPurpose),
      clock: this.clock,
    })
    return new StreamClient({ transmitter: this.#transmitter, credentials, outbound: this.outbound })
  }

  /**
   * Exchanges the code, and finds out who signs in. `callback` is the *configured* redirect URI
   * with the parameters of the response, decrypted.
   */
  abstract exchangeCode(callback: URL, request: CodeExchange): Promise<SignedIn>

  /** Reads the claims of the person, who must be the one of the sign-in. */
  abstract userinfo(token: AccessToken, sub: string): Promise<Userinfo>

  /**
   * @throws {GatewayError} `ERR_LOGOUT_TOKEN_INVALID`, or `ERR_PROVIDER_UNAVAILABLE` without keys
   */
  abstract verifyLogoutToken(logout_token: string): Promise<LogoutToken>

  /** Parameters of an authorization request that only a provider of this kind gets. */
  protected abstract signInParameters(request: AuthorizationRequest): Readonly<Record<string, string>>

  /** Fetches the keys that ID Tokens need. */
  protected abstract ready(): Promise<unknown>

  /**
   * The verified ID Token of a refresh, if there is one.
   * @throws {GatewayError} when the response must not be accepted
   */
  protected abstract refreshedIdToken(
    response: client.TokenEndpointResponse,
    expected: { readonly sub: string; readonly dpop_key: DpopKey | undefined },
    found: DiscoveredProvider,
  ): Promise<IdToken | undefined>

  /** Fetches the metadata in the background. Until that succeeds, a sign-in gets 503. */
  start(): void {
    this.discovery.start()
  }

  get isKnown(): boolean {
    return this.discovery.known !== undefined
  }

  get state(): ProviderState {
    const { readAt, failure } = this.discovery.state
    return {
      issuer: this.config.issuer,
      algorithm: this.discovery.known?.algorithm,
      readAt,
      failure,
      keys: this.keys.state,
    }
  }

  /** The origin of the end-session endpoint; `undefined` until the provider was found. */
  get endSessionOrigin(): string | undefined {
    return this.discovery.known?.end_session_endpoint?.origin
  }

  /**
   * The origins that may embed the front-channel logout: of the issuer and the end-session
   * endpoint.
   */
  get frameOrigins(): readonly string[] {
    return [...new Set([new URL(this.config.issuer).origin, ...[this.endSessionOrigin ?? []].flat()])]
  }

  async close(): Promise<void> {
    this.discovery.close()
    await this.outbound.close()
  }

  #endpointOf(url: string): string {
    const ofTransmitter = this.#transmitter?.endpointOf(url)
    if (ofTransmitter !== undefined) return ofTransmitter
    const { known } = this.discovery
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
    const found = await this.discovery.provider()
    const metadata = found.configuration.serverMetadata()
    const access = request.isOffline === true ? offlineAccessOf(found.access, this.config, metadata) : found.access
    const parameters = new URLSearchParams({
      ...access.params,
      ...request.linkParams,
      ...stepUpParameters(this.authenticationFor(request)),
      ...(request.login_hint === undefined ? {} : { login_hint: request.login_hint }),
      ...(request.prompt === undefined ? {} : { prompt: request.prompt }),
      response_type: 'code',
      // "query" is the default for a code.
      ...(this.config.response_mode === 'query' ? {} : { response_mode: this.config.response_mode }),
      ...(access.scopes.length > 0 && { scope: access.scopes.join(' ') }),
      redirect_uri: request.redirect_uri,
      state: request.state,
      ...this.signInParameters(request),
      // RFC 7636 §4.2.
      code_challenge: sha256(request.code_verifier),
      code_challenge_method: 'S256',
    })
    for (const uri of this.config.resource) parameters.append('resource', uri)
    // They are there when the person returns. An error is logged, and the callback tries again.
    this.ready().catch(() => {})
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
    decrypted.set('response', await this.decryption.open('authorization', jwt, rejectResponse))
    return decrypted
  }

  /** The proof that this client has the key of its tokens (RFC 9449 §4). */
  protected async proofWith(
    dpop_key: DpopKey | undefined,
    { configuration }: Pick<DiscoveredProvider, 'configuration'>,
  ): Promise<client.DPoPOptions> {
    return dpop_key === undefined ? {} : { DPoP: await this.#proofs.of(dpop_key, configuration) }
  }

  /** The parameters of RFC 8707 §2.2. */
  protected resources(): URLSearchParams {
    return new URLSearchParams(this.config.resource.map((uri): [string, string] => ['resource', uri]))
  }

  /** What a step-up requires. A shorter `max_age` of `authorization_params` applies too. */
  protected authenticationFor({ stepUp = {} }: Pick<AuthorizationRequest, 'stepUp'>): StepUp {
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
    const found = await this.discovery.provider()
    await this.ready()
    // A session that began without DPoP gets its key here.
    const dpop_key = this.config.dpop ? (tokens.dpop_key ?? (await newDpopKey())) : undefined
    const proof = await this.proofWith(dpop_key, found)
    const began = this.clock.now()
    let response: client.TokenEndpointResponse
    try {
      response = await client.refreshTokenGrant(found.configuration, tokens.refresh_token, this.resources(), proof)
    } catch (cause) {
      if (isInvalidGrant(cause)) return { kind: 'invalid_grant' }
      if (isAboutTokens(cause))
        throw new InvalidTokensError(`${reason(cause)}${hintForRejectedAlgorithm(cause)}`, cause)
      return throwProviderError('the tokens were not refreshed', cause)
    }
    this.warnings.reviewScope(response, found.access)
    const idToken = await this.refreshedIdToken(response, { sub, dpop_key }, found).catch((error: unknown) => {
      throw error instanceof GatewayError ? new InvalidTokensError(error.message, error) : error
    })
    const id_token = (idToken && response.id_token) ?? tokens.id_token
    const { refresh_token } = tokens
    return {
      kind: 'refreshed',
      tokens: tokenSet(response, { id_token, refresh_token, dpop_key }, began),
      session_expires_at: idToken?.session_expires_at,
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
    const { end_session_endpoint } = await this.discovery.provider()
    if (end_session_endpoint === undefined) return undefined
    const id_token_hint = (await this.keys.stillHasKeyOf(values.id_token_hint)) ? values.id_token_hint : undefined
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
    const { end_session_endpoint } = await this.discovery.provider()
    if (end_session_endpoint === undefined || !sendsIdTokenHint(this.config)) return 'unsupported'
    return endSessionOutcome(await this.#postEndSession(end_session_endpoint, id_token_hint))
  }

  #postEndSession(endpoint: URL, id_token_hint: string): Promise<Response> {
    return this.outbound.fetch(endpoint.href, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ id_token_hint }).toString(),
    })
  }

  /**
   * Revokes a token (RFC 7009). `unsupported`: the provider cannot.
   * @throws {NotRevokedError}
   */
  async revoke(
    token: string,
    token_type_hint: 'refresh_token' | 'access_token' = 'refresh_token',
  ): Promise<'revoked' | 'unsupported'> {
    const { configuration, revocation_endpoint } = await this.discovery.provider()
    if (revocation_endpoint === undefined) return 'unsupported'
    try {
      await client.tokenRevocation(configuration, token, { token_type_hint })
      return 'revoked'
    } catch (cause) {
      // RFC 7009 §2.2.1. Some providers revoke no JWT.
      if (providerErrorIn(cause)?.error === 'unsupported_token_type') return 'unsupported'
      throw new NotRevokedError(cause)
    }
  }

  /**
   * Verifies the JWT of a request for Global Token Revocation, which was sent to `url`.
   * @throws {GatewayError} `ERR_REVOCATION_INVALID`, or `ERR_PROVIDER_UNAVAILABLE` without keys
   */
  async verifyRevocationToken(token: string, { origin, pathname }: URL): Promise<RevocationToken> {
    const { issuer, globalTokenRevocation: config } = this.config
    return verifyRevocationToken(token, {
      ...this.expectations(config?.signingAlg ?? (await this.discovery.provider()).algorithm),
      issuer: config?.issuer ?? issuer,
      audience: [origin + pathname],
      keys: this.#revocationKeys,
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
    const algorithm = signals.signingAlg ?? (await this.discovery.provider()).algorithm
    return verifySecurityEvent(token, {
      ...this.expectations(algorithm),
      issuer: signals.transmitter,
      audience: signals.audience,
      keys: this.#transmitter.keys,
    })
  }

  /** Verifies a JWT access token for an API: see {@link verifyAccessToken}. */
  async verifyAccessToken(token: string, accepts: AccessTokensConfig): Promise<VerifiedAccessToken> {
    return verifyAccessToken(token, { config: this.config, keys: this.keys, accepts, now: this.clock.now() })
  }

  /**
   * Asks the provider about an access token (RFC 7662). The response may be a JWT (RFC 9701).
   * @throws {GatewayError} `ERR_TOKEN_INVALID`, or `ERR_PROVIDER_UNAVAILABLE`
   */
  async introspect(token: string, accepts: AccessTokensConfig): Promise<VerifiedAccessToken> {
    const { configuration } = await this.discovery.provider()
    if (configuration.serverMetadata().introspection_endpoint === undefined)
      throw providerUnavailable('its metadata has no introspection_endpoint: use access_tokens.check: jwt')
    const response = await client
      .tokenIntrospection(configuration, token, { token_type_hint: 'access_token' })
      .catch((cause: unknown) => {
        const known = gatewayErrorIn(cause)
        if (known !== undefined) throw known
        throw providerUnavailable(`the introspection failed: ${reason(cause)}`, cause)
      })
    return readIntrospection(response as Record<string, unknown>, token, {
      config: this.config,
      accepts,
      now: this.clock.now(),
    })
  }

  /**
   * Exchanges an access token for one that is meant for an upstream (RFC 8693).
   * @throws {GatewayError} `ERR_PROVIDER_UNAVAILABLE`, or `ERR_TOKEN_EXCHANGE` when the provider
   * refuses, or issues a token that an upstream cannot use
   */
  async exchangeToken(subject_token: string, wanted: TokenExchangeConfig): Promise<ExchangedToken> {
    const { configuration } = await this.discovery.provider()
    const began = this.clock.now()
    const response = await client
      .genericGrantRequest(configuration, tokenExchangeGrant, exchangeParameters(subject_token, wanted))
      .catch(throwExchangeError)
    return readExchanged(response, began)
  }

  /** What tokens of the provider must have. */
  protected expectations(algorithm: SigningAlgorithm): TokenExpectations {
    const { issuer, client_id, clockToleranceMs } = this.config
    return { issuer, client_id, algorithm, keys: this.keys, clockToleranceMs, now: this.clock.now() }
  }
}

function rejectResponse(why: string, cause?: unknown): never {
  throw new GatewayError('ERR_SIGN_IN_RESPONSE', `authorization response refused: ${why}`, { cause })
}
