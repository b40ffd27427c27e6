/** Providers that differ from the specifications in their refresh tokens or their sign-out. */
export type ProviderKind =
  /**
   * Issues a refresh token without `offline_access`. With it, an offline session replaces the
   * single sign-on session.
   */
  | 'keycloak'
  /** Rejects `offline_access`, and issues a refresh token for `access_type=offline`. */
  | 'google'
  /**
   * Rejects `offline_access`. Its end-session endpoint wants `client_id` and `logout_uri`, by GET,
   * and returns no `state`.
   */
  | 'cognito'
  /** Rejects an end-session request with a long query (AADSTS90015). */
  | 'entra'
  | 'other'

/**
 * The kind of provider that an issuer identifier belongs to. An issuer that is not a URL is
 * `other`.
 */
export function providerKind(issuer: string): ProviderKind {
  if (!URL.canParse(issuer)) return 'other'
  const { hostname, pathname } = new URL(issuer)
  if (hostname === 'accounts.google.com') return 'google'
  if (/^cognito-idp\.[a-z\d-]+\.amazonaws\.com(?:\.cn)?$/.test(hostname)) return 'cognito'
  if (/^(?:login\.microsoftonline\.(?:com|us)|login\.partner\.microsoftonline\.cn|sts\.windows\.net)$/.test(hostname))
    return 'entra'
  if (hostname.endsWith('.ciamlogin.com')) return 'entra'
  return pathname.includes('/realms/') ? 'keycloak' : 'other'
}

/** The scope that requests a refresh token (OpenID Connect Core §11). */
export const offlineAccess = 'offline_access'

/**
 * Why `offline_access` must not be requested from a provider of this kind; `undefined` when it may
 * be.
 */
export function harmOfOfflineAccess(
  kind: ProviderKind,
): { readonly what: string; /** Nobody can sign in. */ readonly isFatal: boolean } | undefined {
  switch (kind) {
    case 'keycloak':
      return {
        what: 'with offline_access Keycloak replaces the single sign-on session by an offline session: no Logout Token is sent for it, and single sign-on to other applications is lost',
        isFatal: false,
      }
    case 'google':
      return { what: 'Google rejects offline_access with invalid_scope: every sign-in fails', isFatal: true }
    case 'cognito':
      return { what: 'Amazon Cognito rejects offline_access with invalid_scope: every sign-in fails', isFatal: true }
    case 'entra':
    case 'other':
      return undefined
  }
}

/** What a provider without ID Tokens (`kind: oauth2`) does not have. */
export const lackOfOauth2 = 'no nonce, no sid, no Logout Tokens, no sign-out and no step-up'
