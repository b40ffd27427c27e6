import type { ProviderConfig } from '../config/model/provider.ts'
import { harmOfOfflineAccess, offlineAccess, providerKind, type ProviderKind } from '../config/provider-kind.ts'

/** The scopes and parameters of an authorization request. */
export interface RequestedAccess {
  readonly scopes: readonly string[]
  /** `provider.authorization_params`, and further ones that this provider needs. */
  readonly params: Readonly<Record<string, string>>
}

const basicScopes = ['openid', 'profile', 'email']

/**
 * The scopes and parameters of an authorization request. Configured scopes are used as they are.
 * Otherwise `offline_access` is requested, except at Keycloak, Google and Amazon Cognito, and at a
 * provider that does not list it. At Keycloak it would create offline sessions, which get no Logout
 * Token.
 */
export function requestedAccess(
  { issuer, scopes, authorizationParams }: Pick<ProviderConfig, 'issuer' | 'scopes' | 'authorizationParams'>,
  metadata: Readonly<Record<string, unknown>>,
): RequestedAccess {
  if (scopes !== undefined) return { scopes, params: authorizationParams }
  const kind = kindOf(issuer, metadata)
  // Without `prompt=consent` Google gives a refresh token at the first sign-in of a person only.
  if (kind === 'google')
    return { scopes: basicScopes, params: { access_type: 'offline', prompt: 'consent', ...authorizationParams } }
  const { scopes_supported } = metadata
  // The list is optional (OpenID Connect Discovery 1.0 §3), so a provider without a list may know
  // the scope.
  const isKnown = !Array.isArray(scopes_supported) || scopes_supported.includes(offlineAccess)
  const asksForIt = harmOfOfflineAccess(kind) === undefined && isKnown
  return { scopes: asksForIt ? [...basicScopes, offlineAccess] : basicScopes, params: authorizationParams }
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
