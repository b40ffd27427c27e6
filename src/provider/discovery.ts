import { setTimeout as wait } from 'node:timers/promises'
import * as client from 'openid-client'
import { proxyFor } from '../config/egress-proxy.ts'
import { fapiAlgorithms } from '../config/fapi.ts'
import { type ProviderConfig, type SigningAlgorithm, signingAlgorithms } from '../config/model/provider.ts'
import { portOf } from '../core/addresses.ts'
import { isWithin, type Clock } from '../core/clock.ts'
import { asHint, connectionAdvice } from '../core/connection-advice.ts'
import { GatewayError, reason } from '../core/errors.ts'
import { printable } from '../core/printable.ts'
import { BackOff, Repeating } from '../core/repeating.ts'
import { SingleFlight } from '../core/single-flight.ts'
import type { Log } from '../observe/log.ts'
import { schemeMismatch } from '../wire/scheme-mismatch.ts'
import type { AuthorizationRequestForm } from './authorization-url.ts'
import { clientAuth, importSigner } from './client-auth.ts'
import { lackForProfile } from './fapi.ts'
import type { Outbound } from './outbound.ts'
import { gatewayErrorIn } from './provider-errors.ts'
import { requestedAccess, type RequestedAccess } from './requested-access.ts'

/** How often the metadata is renewed, in ms. */
const renewAfterMs = 60 * 60 * 1000
/** The first and the longest pause after an error, in ms. */
const retryFirstMs = 1000
const retryMostMs = 30_000
/**
 * An error that comes within this time, in ms, may mean that the provider is starting. Requests
 * then wait for this time and try again.
 */
const quickMs = 150

/** A provider as its metadata describes it: OpenID Connect Discovery 1.0 §3. */
export interface DiscoveredProvider extends AuthorizationRequestForm {
  readonly algorithm: SigningAlgorithm
  /** The scopes and parameters of an authorization request. */
  readonly access: RequestedAccess
  readonly jwks_uri: string
  /** The names of the endpoints in metrics, by URL. */
  readonly endpoints: ReadonlyMap<string, string>
  readonly userinfo_endpoint: URL | undefined
  readonly end_session_endpoint: URL | undefined
  readonly revocation_endpoint: URL | undefined
}

export interface DiscoveryParts {
  readonly outbound: Outbound
  readonly clock: Clock
  readonly log: Log
}

/**
 * The metadata of the provider. It is fetched from the start until that succeeds, and renewed once
 * an hour. While the provider is unavailable, the last metadata stays in use.
 */
export class Discovery {
  readonly #config: ProviderConfig
  readonly #parts: DiscoveryParts
  readonly #fetching = new SingleFlight<'metadata', DiscoveredProvider>()
  #known: DiscoveredProvider | undefined
  #readAt: number | undefined
  #failedAt = -Infinity
  #pauseMs = retryFirstMs
  #failure: GatewayError | undefined
  readonly #renewing = new Repeating(() => this.#renew())
  readonly #backOff = new BackOff(retryFirstMs, retryMostMs)

  constructor(config: ProviderConfig, parts: DiscoveryParts) {
    this.#config = config
    this.#parts = parts
  }

  /** Fetches the metadata in the background until that succeeds, then once an hour. */
  start(): void {
    this.#renewing.wake()
  }

  /** The last metadata; `undefined` until the provider was found. */
  get known(): DiscoveredProvider | undefined {
    return this.#known
  }

  /** When the metadata was read last, in ms since the epoch, and the error since then. */
  get state(): { readonly readAt: number | undefined; readonly failure: string | undefined } {
    return { readAt: this.#readAt, failure: this.#failure?.message }
  }

  /** @throws {GatewayError} `ERR_PROVIDER_UNAVAILABLE` while the provider has not been found */
  async provider(): Promise<DiscoveredProvider> {
    if (this.#known !== undefined) return this.#known
    // During the pause after an error, requests do not reach the provider. After a quick error the
    // request waits and tries again, because the provider may be starting.
    if (this.#failure !== undefined && isWithin(this.#pauseMs, this.#failedAt, this.#parts.clock.now())) {
      if (this.#pauseMs === retryFirstMs) throw this.#failure
      await wait(this.#pauseMs)
    }
    return this.#known ?? this.#fetch()
  }

  close(): void {
    void this.#renewing.stop()
  }

  async #renew(): Promise<number> {
    try {
      await this.#fetch()
      this.#backOff.reset()
      return renewAfterMs
    } catch {
      return this.#backOff.next()
    }
  }

  #fetch(): Promise<DiscoveredProvider> {
    return this.#fetching.run('metadata', async () => {
      const began = performance.now()
      try {
        const found = await discover(this.#config, this.#parts.outbound)
        if (this.#known === undefined || this.#failure !== undefined)
          this.#parts.log.info('provider.found', { issuer: this.#config.issuer })
        this.#known = found
        this.#readAt = this.#parts.clock.now()
        this.#failure = undefined
        return found
      } catch (cause) {
        this.#failedAt = this.#parts.clock.now()
        this.#pauseMs = performance.now() - began < quickMs ? quickMs : retryFirstMs
        const before = this.#failure?.message
        this.#failure = unavailable(this.#config.issuer, cause)
        if (this.#failure.message !== before) {
          const wrongScheme = await issuerSchemeMismatch(this.#config, this.#failure.message)
          const problem = problemOf(cause)
          const advice = wrongScheme ?? (problem === 'no_document' ? issuerHint : adviceOn(this.#failure, problem))
          this.#parts.log.warn('provider.unavailable', {
            issuer: this.#config.issuer,
            reason: this.#failure.message,
            hint: `${asHint(advice)} The gateway retries. A sign-in gets 503 until the provider responds.`,
          })
        }
        throw this.#failure
      }
    })
  }
}

/** What to do about a provider that did not respond, or whose metadata cannot be used. */
function adviceOn({ message }: GatewayError, problem: DiscoveryProblem | undefined): string {
  if (problem !== undefined) return 'check provider.issuer'
  return connectionAdvice({ why: message }, 'provider.issuer', 'provider.ca_file')
}

/**
 * What to do when the port of the issuer speaks TLS although its scheme is http, or the reverse.
 * See {@link schemeMismatch}.
 * @returns `undefined` when the scheme is not the problem
 */
export async function issuerSchemeMismatch(
  { issuer, egressProxy }: Pick<ProviderConfig, 'issuer' | 'egressProxy'>,
  why: string,
): Promise<string | undefined> {
  const url = new URL(issuer)
  // Only the proxy may be able to connect to the port.
  if (proxyFor(url, egressProxy) !== undefined) return undefined
  const server = { host: url.hostname, port: portOf(url), isTls: url.protocol === 'https:', tlsScheme: 'https://' }
  const found = await schemeMismatch(why, server)
  return found === undefined ? undefined : `${found} in provider.issuer`
}

function unavailable(issuer: string, cause: unknown): GatewayError {
  // The errors of `Outbound` say more than those of openid-client, which wrap them.
  const ours = gatewayErrorIn(cause)
  const why = ours === undefined ? reason(cause) : ours.message
  return new GatewayError('ERR_PROVIDER_UNAVAILABLE', `the provider ${issuer} could not be discovered: ${why}`, {
    cause,
  })
}

/**
 * Fetches and checks the metadata of the provider. With `provider.metadata` nothing is fetched.
 * @throws the errors of openid-client, or a GatewayError `ERR_PROVIDER_UNAVAILABLE` that says what
 * is invalid
 */
export async function discover(config: ProviderConfig, outbound: Outbound): Promise<DiscoveredProvider> {
  const metadata: client.ServerMetadata =
    config.metadata === undefined
      ? await fetchMetadata(config, outbound)
      : { ...config.metadata, issuer: config.issuer }
  return derive(config, metadata, outbound)
}

async function fetchMetadata(config: ProviderConfig, outbound: Outbound): Promise<client.ServerMetadata> {
  const issuer = new URL(config.issuer)
  const options: client.DiscoveryRequestOptions = {
    [client.customFetch]: asFetch(outbound),
  }
  // The configuration allows http only for an issuer on loopback.
  if (issuer.protocol === 'http:') options.execute = [client.allowInsecureRequests]
  const discovered = await client
    .discovery(issuer, config.client_id, undefined, client.None(), options)
    .catch((error: unknown) => {
      const other = otherIssuer(error)
      if (other !== undefined) rejectIssuer(other)
      const response = unusableResponse(error)
      if (response === undefined) throw error
      return reject(`GET ${metadataUrl(config.issuer)}: ${response.why}`, response.problem)
    })
  return discovered.serverMetadata()
}

/** Checks the metadata, and derives from it how the gateway talks to the provider. */
async function derive(
  config: ProviderConfig,
  metadata: client.ServerMetadata,
  outbound: Outbound,
): Promise<DiscoveredProvider> {
  const onLoopback = config.issuer.startsWith('http:')
  // The issuer must be identical (OpenID Connect Discovery 1.0 §4.3). A slash at the end makes it
  // another issuer.
  if (metadata.issuer !== config.issuer) rejectIssuer(metadata.issuer)
  const urlIn = (value: unknown, name: string): URL | undefined => {
    if (value === undefined) return undefined
    const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : undefined
    if (url?.protocol === 'https:' || (onLoopback && url?.protocol === 'http:')) return url
    return reject(`its ${name} is not an ${onLoopback ? 'http or ' : ''}https URL`)
  }
  const endpoint = (name: keyof client.ServerMetadata) => urlIn(metadata[name], String(name))
  for (const name of ['authorization_endpoint', 'token_endpoint', 'jwks_uri'] as const)
    if (endpoint(name) === undefined) reject(`its metadata has no ${name}`)
  const userinfo_endpoint = endpoint('userinfo_endpoint')
  if (userinfo_endpoint === undefined && config.userinfoClaims.length > 0)
    reject(
      `its metadata has no userinfo_endpoint: add to provider.id_token_claims the claims that its ID Tokens contain: ${config.userinfoClaims.join(', ')}`,
    )

  // A client with a certificate uses these endpoints, if there are any (RFC 8705 §5).
  const aliases = config.clientCertificate === undefined ? {} : (metadata.mtls_endpoint_aliases ?? {})
  for (const [name, value] of Object.entries(aliases)) urlIn(value, `mtls_endpoint_aliases.${name}`)
  endpoint('introspection_endpoint')
  const isPushed = pushesRequests(config, metadata)
  if (isPushed && endpoint('pushed_authorization_request_endpoint') === undefined)
    reject(
      'its metadata has no pushed_authorization_request_endpoint, which provider.pushed_authorization_requests needs',
    )
  if (metadata.require_signed_request_object === true && !config.signedRequests)
    reject('it requires signed authorization requests: set provider.signed_requests and provider.client_key')

  const algorithm = chooseAlgorithm(config, metadata.id_token_signing_alg_values_supported)
  const lack = config.profile === undefined ? undefined : lackForProfile(config, metadata, algorithm)
  if (lack !== undefined) reject(lack)
  const signer = config.clientKey && (await importSigner(config.clientKey))
  const configuration = new client.Configuration(
    metadata,
    config.client_id,
    {
      id_token_signed_response_alg: algorithm,
      use_mtls_endpoint_aliases: config.clientCertificate !== undefined,
      [client.clockTolerance]: config.clockToleranceMs / 1000,
    },
    clientAuth(config, signer, metadata),
  )
  const tokenEndpoints = [metadata.token_endpoint, aliases.token_endpoint]
  configuration[client.customFetch] = withoutNulls(asFetch(outbound), (url) => tokenEndpoints.includes(url))
  // `Outbound` has a time limit. The timers of openid-client would continue after the response.
  configuration.timeout = 0
  if (onLoopback) client.allowInsecureRequests(configuration)
  return {
    configuration,
    requestSigner: config.signedRequests ? signer : undefined,
    isPushed,
    algorithm,
    access: requestedAccess(config, metadata),
    jwks_uri: metadata.jwks_uri as string,
    endpoints: new Map([...endpointsOf(metadata), ...endpointsOf(aliases)]),
    userinfo_endpoint,
    end_session_endpoint: endpoint('end_session_endpoint'),
    revocation_endpoint: endpoint('revocation_endpoint'),
  }
}

/**
 * Whether the gateway pushes authorization requests.
 * @throws {DiscoveryError} when the settings do not fit the provider
 */
function pushesRequests({ pushedAuthorizationRequests }: ProviderConfig, metadata: client.ServerMetadata): boolean {
  const isRequired = metadata.require_pushed_authorization_requests === true
  if (isRequired && pushedAuthorizationRequests === 'never')
    reject('it requires pushed authorization requests: remove provider.pushed_authorization_requests: never')
  return isRequired || pushedAuthorizationRequests === 'always'
}

function endpointsOf(metadata: Partial<client.ServerMetadata>): ReadonlyMap<string, string> {
  const { token_endpoint, userinfo_endpoint, jwks_uri, end_session_endpoint, revocation_endpoint } = metadata
  const named = {
    par: metadata.pushed_authorization_request_endpoint,
    revocation: revocation_endpoint,
    end_session: end_session_endpoint,
    jwks: jwks_uri,
    userinfo: userinfo_endpoint,
    introspection: metadata.introspection_endpoint,
    token: token_endpoint,
  }
  return new Map(Object.entries(named).flatMap(([name, url]) => (url === undefined ? [] : [[url, name]])))
}

/**
 * Why the gateway cannot use the response of a provider. `no_document`: a server responded, but not
 * with a discovery document. `issuer`: the document names another issuer. `metadata`: the document
 * lacks something, or has an invalid value.
 */
export type DiscoveryProblem = 'no_document' | 'issuer' | 'metadata'

class DiscoveryError extends GatewayError {
  readonly problem: DiscoveryProblem

  constructor(problem: DiscoveryProblem, why: string) {
    super('ERR_PROVIDER_UNAVAILABLE', why)
    this.problem = problem
  }
}

/** The problem behind an error of {@link discover}. `undefined`: the provider did not respond. */
export function problemOf(error: unknown): DiscoveryProblem | undefined {
  const found = gatewayErrorIn(error)
  return found instanceof DiscoveryError ? found.problem : undefined
}

function reject(why: string, problem: DiscoveryProblem = 'metadata'): never {
  throw new DiscoveryError(problem, why)
}

function rejectIssuer(issuer: string): never {
  // The issuer of Entra ID for any tenant is a template: no token has it.
  const todo = issuer.includes('{')
    ? `it stands for any tenant: set provider.issuer to this value with the ID of your tenant in place of ${/\{[^}]*\}?/.exec(issuer)?.[0] ?? '{'}`
    : 'set provider.issuer to this value'
  reject(`its issuer is "${issuer}": ${todo}`, 'issuer')
}

/**
 * The issuer in the metadata, when it is another one than the configured one. The message of
 * openid-client does not name it.
 */
function otherIssuer(error: unknown): string | undefined {
  const { attribute, body } = ((error as Error).cause ?? {}) as { attribute?: unknown; body?: { issuer?: unknown } }
  return attribute === 'issuer' && typeof body?.issuer === 'string' ? body.issuer : undefined
}

/** What the response was instead of a document. The message of openid-client does not say it. */
function unusableResponse(error: unknown): { readonly why: string; readonly problem: DiscoveryProblem } | undefined {
  const { code, cause } = error as { code?: unknown; cause?: unknown }
  if (code === 'OAUTH_INVALID_RESPONSE')
    return { why: 'it responded with JSON without an issuer', problem: 'no_document' }
  if (!(cause instanceof Response)) return undefined
  if (code === 'OAUTH_RESPONSE_IS_NOT_CONFORM')
    return {
      why: `it responded with status ${cause.status}`,
      problem: cause.status === 404 ? 'no_document' : 'metadata',
    }
  if (code !== 'OAUTH_RESPONSE_IS_NOT_JSON') return undefined
  const type = printable((cause.headers.get('content-type') ?? 'no content type').slice(0, 100))
  return { why: `it responded with ${type}, not JSON`, problem: 'no_document' }
}

/**
 * The URL of the metadata. A slash at the end of the issuer is removed (OpenID Connect Discovery
 * 1.0 §4).
 */
export function metadataUrl(issuer: string): string {
  return `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
}

/** What to do when the URL has no discovery document. */
export const issuerHint =
  'check provider.issuer: it is the URL up to /.well-known/openid-configuration (Keycloak: https://HOST/realms/REALM; Entra ID: https://login.microsoftonline.com/TENANT/v2.0)'

/**
 * The algorithm of ID Tokens. RS256 is the default of a client registration (OpenID Connect Dynamic
 * Client Registration 1.0 §2).
 */
function chooseAlgorithm(config: ProviderConfig, announced: readonly string[] | undefined): SigningAlgorithm {
  if (config.id_token_signed_response_alg !== undefined) return config.id_token_signed_response_alg
  const allowed = config.profile === undefined ? signingAlgorithms : fapiAlgorithms
  const usable = allowed.filter((algorithm) => announced?.includes(algorithm))
  const [only] = usable
  if (announced === undefined || usable.includes('RS256')) return 'RS256'
  // `lackForProfile` says what is missing.
  if (config.profile !== undefined && usable.length === 0) return 'RS256'
  if (only !== undefined && usable.length === 1) return only
  throw new GatewayError(
    'ERR_PROVIDER_UNAVAILABLE',
    usable.length > 0
      ? `${config.profile === undefined ? 'it does not sign with RS256' : 'it offers several algorithms'}: set provider.id_token_signed_response_alg to one of ${usable.join(', ')}`
      : `it signs with ${announced.join(', ')} only, which the gateway cannot verify: configure it to sign the tokens of this client with RS256`,
  )
}

/**
 * Removes members with the value `null` from token responses, because some providers send
 * `"refresh_token": null`.
 */
function withoutNulls(fetch: client.CustomFetch, isTokenEndpoint: (url: string) => boolean): client.CustomFetch {
  return async (url, options) => {
    const response = await fetch(url, options)
    if (!isTokenEndpoint(url)) return response
    const read = response.json.bind(response)
    const json = async (): Promise<unknown> => {
      const body: unknown = await read()
      if (typeof body !== 'object' || body === null || Array.isArray(body)) return body
      return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null))
    }
    return Object.assign(response, { json })
  }
}

function asFetch(outbound: Outbound): client.CustomFetch {
  return (url, { method, headers, body }) =>
    outbound.fetch(url, {
      method,
      headers,
      ...(body === undefined || body === null ? {} : { body: String(body) }),
    })
}
