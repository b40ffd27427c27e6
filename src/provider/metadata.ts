import * as client from 'openid-client'
import { fapiAlgorithms, type ProviderConfig, type SigningAlgorithm } from '../config/model/provider.ts'
import { type Clock, systemClock } from '../core/clock.ts'
import { GatewayError, printable } from '../core/errors.ts'
import { isObject } from '../core/json.ts'
import { type AuthorizationRequestForm, requestedAccess, type RequestedAccess } from './authorization-request.ts'
import { clientAuth, type ClientSigner, importSigner } from './client-auth.ts'
import { isJwtMode } from './jwt-response.ts'
import type { Outbound } from './outbound.ts'
import { gatewayErrorIn, providerUnavailable } from './provider-errors.ts'
import { algorithmsFor } from './signed-token.ts'

type Requests = Pick<Outbound, 'fetch'>

/** A provider as its metadata describes it: OpenID Connect Discovery 1.0 §3. */
export interface DiscoveredProvider extends AuthorizationRequestForm {
  readonly algorithm: SigningAlgorithm
  readonly access: RequestedAccess
  /** Empty with `oauth2`, whose provider signs nothing. */
  readonly jwks_uri: string
  /** The names of the endpoints in metrics, by URL. */
  readonly endpoints: ReadonlyMap<string, string>
  readonly userinfo_endpoint: URL | undefined
  readonly end_session_endpoint: URL | undefined
  readonly revocation_endpoint: URL | undefined
}

/**
 * Fetches the metadata, unless `provider.metadata` has them, and checks them.
 * @throws the errors of openid-client, or a GatewayError `ERR_PROVIDER_UNAVAILABLE`
 */
export async function discover(
  config: ProviderConfig,
  outbound: Requests,
  clock: Clock = systemClock,
): Promise<DiscoveredProvider> {
  const metadata: client.ServerMetadata =
    config.metadata === undefined
      ? await fetchMetadata(config, outbound)
      : { ...config.metadata, issuer: config.issuer }
  return derive(config, metadata, { outbound, clock })
}

async function fetchMetadata(config: ProviderConfig, outbound: Requests): Promise<client.ServerMetadata> {
  const issuer = new URL(config.issuer)
  const options: client.DiscoveryRequestOptions = { [client.customFetch]: asFetch(outbound) }
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
  parts: { readonly outbound: Requests; readonly clock: Clock },
): Promise<DiscoveredProvider> {
  const onLoopback = config.issuer.startsWith('http:')
  // The issuer must be identical, also in a slash at the end (OpenID Connect Discovery 1.0 §4.3).
  if (metadata.issuer !== config.issuer) rejectIssuer(metadata.issuer)
  const urlOf = (name: string, value: unknown = metadata[name]): URL | undefined => {
    if (value === undefined) return undefined
    const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : undefined
    if (url?.protocol === 'https:' || (onLoopback && url?.protocol === 'http:')) return url
    return reject(`its ${name} is not an ${onLoopback ? 'http or ' : ''}https URL`)
  }
  const keys = config.oauth2 === undefined ? (['jwks_uri'] as const) : []
  for (const name of ['authorization_endpoint', 'token_endpoint', ...keys] as const)
    if (urlOf(name) === undefined) reject(`its metadata has no ${name}`)
  const userinfo_endpoint = urlOf('userinfo_endpoint')
  if (userinfo_endpoint === undefined && config.userinfoClaims.length > 0)
    reject(
      `its metadata has no userinfo_endpoint: add to provider.id_token_claims the claims that its ID Tokens contain: ${config.userinfoClaims.join(', ')}`,
    )
  // A client with a certificate uses these endpoints, if there are any (RFC 8705 §5).
  const aliases = config.clientCertificate === undefined ? {} : (metadata.mtls_endpoint_aliases ?? {})
  for (const [name, value] of Object.entries(aliases)) urlOf(`mtls_endpoint_aliases.${name}`, value)
  urlOf('introspection_endpoint')
  const isPushed = pushesRequests(config, metadata)
  if (isPushed && urlOf('pushed_authorization_request_endpoint') === undefined)
    reject(
      'its metadata has no pushed_authorization_request_endpoint, which provider.pushed_authorization_requests needs',
    )
  if (metadata.require_signed_request_object === true && !config.signedRequests)
    reject('it requires signed authorization requests: set provider.signed_requests and provider.client_key')
  const algorithm = chooseAlgorithm(config, metadata.id_token_signing_alg_values_supported)
  const lack = config.profile === undefined ? undefined : lackForProfile(config, metadata, algorithm)
  if (lack !== undefined) reject(lack)

  const signer = config.clientKey && (await importSigner(config.clientKey))
  return {
    configuration: configurationFor(config, metadata, { algorithm, signer, ...parts }),
    requestSigner: config.signedRequests ? signer : undefined,
    isPushed,
    algorithm,
    access: requestedAccess(config, metadata),
    jwks_uri: metadata.jwks_uri ?? '',
    endpoints: new Map([...endpointsOf(metadata), ...endpointsOf(aliases)]),
    userinfo_endpoint,
    end_session_endpoint: urlOf('end_session_endpoint'),
    revocation_endpoint: urlOf('revocation_endpoint'),
  }
}

function configurationFor(
  config: ProviderConfig,
  metadata: client.ServerMetadata,
  {
    algorithm,
    signer,
    outbound,
    clock,
  }: Pick<DiscoveredProvider, 'algorithm'> & {
    readonly signer: ClientSigner | undefined
    readonly outbound: Requests
    readonly clock: Clock
  },
): client.Configuration {
  const settings = {
    id_token_signed_response_alg: algorithm,
    use_mtls_endpoint_aliases: config.clientCertificate !== undefined,
    [client.clockTolerance]: config.clockToleranceMs / 1000,
  }
  const auth = clientAuth(config, signer, metadata, clock)
  const configuration = new client.Configuration(metadata, config.client_id, settings, auth)
  const tokenEndpoints = [metadata.token_endpoint, metadata.mtls_endpoint_aliases?.token_endpoint]
  configuration[client.customFetch] = withTokenResponses(asFetch(outbound), {
    isTokenEndpoint: (url) => tokenEndpoints.includes(url),
    left: config.oauth2 === undefined ? [] : ['id_token'],
  })
  // `Outbound` has a time limit. The timers of openid-client would continue after the response.
  configuration.timeout = 0
  if (config.issuer.startsWith('http:')) client.allowInsecureRequests(configuration)
  return configuration
}

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
 * Why a response cannot be used. `no_document`: it is no discovery document. `issuer`: the document
 * names another issuer. `metadata`: the document lacks something, or has an invalid value.
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

/** Another issuer than the configured one, which the message of openid-client does not name. */
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

/** The URL of the metadata, without a slash after the issuer (OpenID Connect Discovery 1.0 §4). */
export function metadataUrl(issuer: string): string {
  return `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
}

/** What to do when the URL has no discovery document. */
export const issuerHint =
  'check provider.issuer: it is the URL up to /.well-known/openid-configuration (Keycloak: https://HOST/realms/REALM; Entra ID: https://login.microsoftonline.com/TENANT/v2.0)'

/** The algorithm of ID Tokens: RS256 by default (OpenID Connect Client Registration 1.0 §2). */
function chooseAlgorithm(config: ProviderConfig, announced: readonly string[] | undefined): SigningAlgorithm {
  if (config.id_token_signed_response_alg !== undefined) return config.id_token_signed_response_alg
  const usable = algorithmsFor(config).filter((algorithm) => announced?.includes(algorithm))
  const [only] = usable
  if (announced === undefined || usable.includes('RS256')) return 'RS256'
  // `lackForProfile` says what is missing.
  if (config.profile !== undefined && usable.length === 0) return 'RS256'
  if (only !== undefined && usable.length === 1) return only
  throw providerUnavailable(
    usable.length > 0
      ? `${config.profile === undefined ? 'it does not sign with RS256' : 'it offers several algorithms'}: set provider.id_token_signed_response_alg to one of ${usable.join(', ')}`
      : `it signs with ${announced.join(', ')} only, which the gateway cannot verify: configure it to sign the tokens of this client with RS256`,
  )
}

/**
 * Removes `null` from token responses, because some providers send `"refresh_token": null`, and
 * the members that are `left` out: with `kind: oauth2`, no ID Token is read, as nothing verifies
 * it. GitHub sends errors with the status 200, instead of 400 (RFC 6749 §5.2).
 */
function withTokenResponses(
  fetch: client.CustomFetch,
  { isTokenEndpoint, left }: { isTokenEndpoint: (url: string) => boolean; left: readonly string[] },
): client.CustomFetch {
  return async (url, options) => {
    const response = await fetch(url, options)
    if (!isTokenEndpoint(url)) return response
    const read = response.json.bind(response)
    const json = async (): Promise<unknown> => {
      const body: unknown = await read()
      if (!isObject(body)) return body
      return Object.fromEntries(Object.entries(body).filter(([name, value]) => value !== null && !left.includes(name)))
    }
    if (response.status === 200) {
      const body = await json().catch(() => undefined)
      if (isObject(body) && typeof body['error'] === 'string' && body['access_token'] === undefined)
        return Response.json(body, { status: 400 })
    }
    return Object.assign(response, { json })
  }
}

function asFetch(outbound: Requests): client.CustomFetch {
  return (url, { method, headers, body }) =>
    outbound.fetch(url, { method, headers, ...(body === undefined || body === null ? {} : { body: String(body) }) })
}

type Metadata = Readonly<Record<string, unknown>>

/** What the metadata lack for `provider.profile`, with the clause of FAPI 2.0. */
function lackForProfile(
  { response_mode, dpop, clientCertificate }: Pick<ProviderConfig, 'response_mode' | 'dpop' | 'clientCertificate'>,
  metadata: Metadata,
  algorithm: SigningAlgorithm,
): string | undefined {
  // A JWT response always contains `iss` (RFC 9207 §2.4).
  if (metadata['authorization_response_iss_parameter_supported'] !== true && !isJwtMode(response_mode))
    return 'it does not announce iss in authorization responses (authorization_response_iss_parameter_supported), which FAPI 2.0 §5.3.3.2 requires'
  if (!fapiAlgorithms.includes(algorithm))
    return `it signs with ${algorithm}, but FAPI 2.0 §5.4.1 allows only ${fapiAlgorithms.join(', ')}: configure it so, and set provider.id_token_signed_response_alg`
  if (lacks(metadata, 'code_challenge_methods_supported', 'S256'))
    return 'it does not list S256 among its code_challenge_methods_supported, which FAPI 2.0 §5.3.3.2 requires'
  if (dpop && lacks(metadata, 'dpop_signing_alg_values_supported', 'ES256'))
    return 'it does not list ES256 among its dpop_signing_alg_values_supported'
  if (!dpop && clientCertificate !== undefined && metadata['tls_client_certificate_bound_access_tokens'] !== true)
    return 'it does not bind access tokens to client certificates (tls_client_certificate_bound_access_tokens), which FAPI 2.0 §5.3.3.1 requires'
  return undefined
}

/** Whether a list in the metadata does not contain a member. An absent list says nothing. */
function lacks(metadata: Metadata, name: string, member: string): boolean {
  const list = metadata[name]
  return Array.isArray(list) && !list.includes(member)
}
