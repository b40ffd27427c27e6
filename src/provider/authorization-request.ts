import * as client from 'openid-client'
import type { ProviderConfig } from '../config/model/provider.ts'
import { harmOfOfflineAccess, offlineAccess, providerKind, type ProviderKind } from '../config/provider-kind.ts'
import { algorithmOf, type ClientSigner, privateKeyOf } from './client-auth.ts'
import { throwProviderError } from './provider-errors.ts'

/** The scopes and parameters of an authorization request. */
export interface RequestedAccess {
  readonly scopes: readonly string[]
  /** `provider.authorization_params`, and further ones that this provider needs. */
  readonly params: Readonly<Record<string, string>>
}

const basicScopes = ['openid', 'profile', 'email']

/**
 * The scopes and parameters of an authorization request. Unless scopes are configured,
 * `offline_access` is requested, except at providers that do not list it, and at Keycloak, Google
 * and Amazon Cognito. At Keycloak it would create offline sessions, which get no Logout Token. The
 * APIs of `claims_from` add their scopes.
 */
export function requestedAccess(
  {
    issuer,
    scopes,
    authorizationParams,
    claimsFrom = [],
    oauth2,
  }: Pick<ProviderConfig, 'issuer' | 'scopes' | 'authorizationParams'> &
    Partial<Pick<ProviderConfig, 'claimsFrom' | 'oauth2'>>,
  metadata: Readonly<Record<string, unknown>>,
): RequestedAccess {
  const ofApis = claimsFrom.flatMap(({ sources }) =>
    sources.flatMap(({ token, scopes }) => (token === 'access_token' ? scopes : [])),
  )
  const all = (own: readonly string[]) => [...new Set([...own, ...ofApis])]
  if (scopes !== undefined || oauth2 !== undefined) return { scopes: all(scopes ?? []), params: authorizationParams }
  const kind = kindOf(issuer, metadata)
  // Without `prompt=consent` Google gives a refresh token at the first sign-in of a person only.
  if (kind === 'google')
    return { scopes: all(basicScopes), params: { access_type: 'offline', prompt: 'consent', ...authorizationParams } }
  const asksForIt = harmOfOfflineAccess(kind) === undefined && listsOfflineAccess(metadata)
  return { scopes: all(asksForIt ? [...basicScopes, offlineAccess] : basicScopes), params: authorizationParams }
}

/**
 * The same for tokens that outlive the session of the person (OpenID Connect Core §11): with
 * consent, without which a provider may ignore the scope. Providers that reject the scope, or do
 * not list it, are asked as for any sign-in.
 */
export function offlineAccessOf(
  { scopes, params }: RequestedAccess,
  { issuer }: Pick<ProviderConfig, 'issuer'>,
  metadata: Readonly<Record<string, unknown>>,
): RequestedAccess {
  const kind = kindOf(issuer, metadata)
  if (kind === 'google') return { scopes, params: { ...params, access_type: 'offline', prompt: 'consent' } }
  if (kind === 'cognito' || !listsOfflineAccess(metadata)) return { scopes, params }
  return { scopes: [...new Set([...scopes, offlineAccess])], params: { ...params, prompt: 'consent' } }
}

/** The list is optional (OpenID Connect Discovery 1.0 §3): without it, the scope may be known. */
function listsOfflineAccess({ scopes_supported }: Readonly<Record<string, unknown>>): boolean {
  return !Array.isArray(scopes_supported) || scopes_supported.includes(offlineAccess)
}

/** The kind of a provider. Keycloak behind a proxy is recognized by its token endpoint. */
export function kindOf(issuer: string, { token_endpoint }: Readonly<Record<string, unknown>>): ProviderKind {
  const kind = providerKind(issuer)
  const isKeycloak = typeof token_endpoint === 'string' && token_endpoint.includes('/protocol/openid-connect/')
  return kind === 'other' && isKeycloak ? 'keycloak' : kind
}

/** Whether a refresh token is requested explicitly. */
export function asksForRefreshToken({ scopes, params }: RequestedAccess): boolean {
  return scopes.includes(offlineAccess) || params['access_type'] === 'offline'
}

/** How authorization requests reach the provider. */
export interface AuthorizationRequestForm {
  readonly configuration: client.Configuration
  /** Signs each request (RFC 9101). Absent: requests are not signed. */
  readonly requestSigner: ClientSigner | undefined
  /** Whether the gateway pushes the request, so that the browser carries a reference (RFC 9126). */
  readonly isPushed: boolean
}

/**
 * The URL for the browser. A request that cannot be pushed is never sent in the URL instead: a
 * person in the middle could cause that, and change the request then.
 * @throws {GatewayError} `ERR_PROVIDER_UNAVAILABLE` or `ERR_SIGN_IN_RESPONSE` when it was not
 * pushed
 */
export async function authorizationUrlFor(
  { configuration, requestSigner, isPushed }: AuthorizationRequestForm,
  parameters: URLSearchParams,
): Promise<URL> {
  const request = requestSigner === undefined ? parameters : await signed(configuration, parameters, requestSigner)
  if (!isPushed) return client.buildAuthorizationUrl(configuration, request)
  return client
    .buildAuthorizationUrlWithPAR(configuration, request)
    .catch((cause: unknown) => throwProviderError('the authorization request was not pushed', cause))
}

async function signed(
  configuration: client.Configuration,
  parameters: URLSearchParams,
  signer: ClientSigner,
): Promise<URLSearchParams> {
  const url = await client.buildAuthorizationUrlWithJAR(configuration, parameters, privateKeyOf(signer), {
    [client.modifyAssertion]: (header) => void Object.assign(header, algorithmOf(signer)),
  })
  return new URLSearchParams({ request: url.searchParams.get('request') ?? '' })
}
