import type { ProviderConfig } from '../config/model.ts'
import { offlineAccess, providerKind, type ProviderKind } from '../config/provider-kind.ts'

/** What an authorization request asks for. */
export interface RequestedAccess {
  readonly scopes: readonly string[]
  /** `provider.authorization_params`, with what this provider needs beside them. */
  readonly params: Readonly<Record<string, string>>
}

const basicScopes = ['openid', 'profile', 'email']

/**
 * The scopes and parameters of an authorization request. Scopes that the configuration lists are
 * taken as they are. Otherwise `offline_access` is asked for where the provider's refresh tokens
 * depend on it and its sessions do not suffer from it: not at Keycloak, not at Google, and not at a
 * provider that lists its scopes without it.
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
  // The list is only recommended (OpenID Connect Discovery 1.0 §3): a provider without one may
  // still know the scope.
  const isKnown = !Array.isArray(scopes_supported) || scopes_supported.includes(offlineAccess)
  const asksForIt = kind === 'other' && isKnown
  return { scopes: asksForIt ? [...basicScopes, offlineAccess] : basicScopes, params: authorizationParams }
}

/** A Keycloak behind a proxy may have another issuer than usual, but not other endpoints. */
export function kindOf(issuer: string, { token_endpoint }: Readonly<Record<string, unknown>>): ProviderKind {
  const kind = providerKind(issuer)
  const isKeycloak = typeof token_endpoint === 'string' && token_endpoint.includes('/protocol/openid-connect/')
  return kind === 'other' && isKeycloak ? 'keycloak' : kind
}

/** Whether a refresh token was asked for explicitly. */
export function asksForRefreshToken({ scopes, params }: RequestedAccess): boolean {
  return scopes.includes(offlineAccess) || params['access_type'] === 'offline'
}
