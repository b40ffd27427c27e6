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

/** What a provider sends that has no other claims, and how to get one of them all the same. */
export interface FixedClaims {
  readonly provider: string
  /** The claims that UserInfo may have. */
  readonly claims: Pick<ReadonlySet<string>, 'has'>
  /** Why the gateway does not have another claim. */
  readonly why: string
  /** What it does when it is asked for the scope `groups`. */
  readonly scopeGroups: string
  /** How to get a claim. `claims`: those of `id_token_claims` so far. */
  readonly todo: (claim: string, setting: string, claims: readonly string[]) => string
}

const userinfo = ['sub', 'name', 'given_name', 'family_name', 'picture', 'email']

/** What a provider sends, where nobody can add claims to its UserInfo. */
export function fixedClaims(issuer: string): FixedClaims | undefined {
  const kind = providerKind(issuer)
  return kind === 'entra' || kind === 'google' || kind === 'cognito' ? fixed[kind] : undefined
}

const fixed: Readonly<Record<'entra' | 'google' | 'cognito', FixedClaims>> = {
  entra: {
    provider: 'Entra ID',
    claims: new Set(userinfo),
    why: 'Entra ID sends in the ID Token only, and the gateway reads UserInfo',
    scopeGroups: 'AADSTS650053',
    todo: (claim, setting, claims) =>
      claim === 'email_verified'
        ? 'Entra ID does not issue it: in place of email_domains, require a claim that it has, such as roles'
        : `write ${setting}.id_token_claims: [${[...new Set([...claims, claim])].join(', ')}]`,
  },
  cognito: {
    provider: 'Amazon Cognito',
    // UserInfo has all other attributes of a person.
    claims: { has: (claim) => !/^(?:cognito:)?groups$/.test(claim) },
    why: 'the UserInfo of Amazon Cognito does not have',
    scopeGroups: 'invalid_scope',
    todo: (_, setting, claims) =>
      `name cognito:groups in its place, and write ${setting}.id_token_claims: [${[...new Set([...claims, 'cognito:groups'])].join(', ')}]`,
  },
  google: {
    provider: 'Google',
    claims: new Set([...userinfo, 'email_verified', 'hd', 'locale', 'profile', 'gender', 'birthdate', 'link']),
    why: 'Google does not send',
    scopeGroups: 'invalid_scope',
    todo: (claim, setting) =>
      claim === 'groups'
        ? `write ${setting}.claims_from, which reads them from the Cloud Identity API (docs/providers/google.md)`
        : 'write one of the claims that it has, such as email, hd or sub',
  },
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
