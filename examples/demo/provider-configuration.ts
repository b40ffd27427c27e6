import { generateKeyPairSync, type JsonWebKey } from 'node:crypto'
import type { Configuration, KoaContextWithOIDC, Provider } from 'oidc-provider'
import { randomToken } from '../../src/core/random.ts'
import type { Markup } from './html.ts'
import { demoPeople, fieldsClaim, type DemoPerson } from './people.ts'
import { messagePage, pageHeaders } from './provider-pages.ts'
import type { ProviderStore } from './provider-store.ts'
import type { EventReceiver } from './security-events.ts'

export interface DemoProviderOptions {
  /** An http origin. Default: the address on which the provider listens. */
  readonly issuer?: URL | undefined
  readonly client_id: string
  readonly client_secret: string
  readonly token_endpoint_auth_method?: 'client_secret_basic' | 'client_secret_post' | undefined
  readonly redirect_uris: readonly string[]
  readonly post_logout_redirect_uris: readonly string[]
  readonly backchannel_logout_uri: string
  /** Who receives the security events. Absent: no events are sent. */
  readonly eventReceiver?: EventReceiver | undefined
  /** Loopback only. */
  readonly host: string
  readonly port: number
  /**
   * The people who can sign in, read at each sign-in and UserInfo request. Default: `demoPeople`.
   */
  readonly people?: readonly DemoPerson[] | undefined
  /** Data that it shares with another provider of the same issuer. Default: its own. */
  readonly store?: ProviderStore | undefined
  /** Changes the configuration of oidc-provider, for tests. */
  readonly adjust?: ((configuration: Configuration) => Configuration) | undefined
  /** Adds to oidc-provider, such as a grant type, for tests. */
  readonly extend?: ((provider: Provider) => void) | undefined
}

export function personIn({ people = demoPeople }: DemoProviderOptions, sub: string): DemoPerson | undefined {
  return people.find((person) => person.sub === sub)
}

/**
 * Adds `prompt=consent` for `offline_access`, because oidc-provider ignores `offline_access`
 * without it (OIDC Core §11). The demo provider grants consent without a page.
 */
export function withConsent(url: URL): string {
  const scopes = url.searchParams.get('scope')?.split(' ') ?? []
  const prompts = url.searchParams.get('prompt')?.split(' ') ?? []
  if (scopes.includes('offline_access') && !prompts.includes('none') && !prompts.includes('consent'))
    url.searchParams.set('prompt', [...prompts, 'consent'].join(' '))
  return url.pathname + url.search
}

/** The one `acr` that the provider grants: to everybody who signs in when it is requested. */
const strongAcr = 'mfa'

/** The `acr` of a sign-in with these parameters of the authorization request. */
export function grantedAcr({ acr_values = '' }: { readonly acr_values?: string }): string | undefined {
  return acr_values.split(' ').includes(strongAcr) ? strongAcr : undefined
}

const lifetime = { hour: 60 * 60, session: 12 * 60 * 60 }

type Policy = NonNullable<NonNullable<Configuration['interactions']>['policy']>

export function configuration(options: DemoProviderOptions, store: ProviderStore, policy: Policy): Configuration {
  return {
    adapter: store.adapter,
    clients: [
      {
        client_id: options.client_id,
        client_secret: options.client_secret,
        token_endpoint_auth_method: options.token_endpoint_auth_method ?? 'client_secret_basic',
        grant_types: ['authorization_code', 'refresh_token'],
        redirect_uris: [...options.redirect_uris],
        post_logout_redirect_uris: [...options.post_logout_redirect_uris],
        backchannel_logout_uri: options.backchannel_logout_uri,
        // Makes oidc-provider add `sid` to every ID Token.
        backchannel_logout_session_required: true,
      },
    ],
    routes: {
      authorization: '/oauth/authorize',
      token: '/oauth/token',
      userinfo: '/oauth/userinfo',
      jwks: '/oauth/jwks',
      end_session: '/oauth/logout',
      revocation: '/oauth/revoke',
    },
    features: {
      devInteractions: { enabled: false },
      backchannelLogout: { enabled: true },
      rpInitiatedLogout: {
        enabled: true,
        postLogoutSuccessSource: (ctx) => render(ctx, messagePage('Signed out', 'You can close this window.')),
      },
      revocation: { enabled: true, allowedPolicy: (_ctx, client, token) => token.clientId === client.clientId },
      dPoP: { enabled: false },
      pushedAuthorizationRequests: { enabled: false },
      resourceIndicators: { enabled: false },
    },
    interactions: { policy, url: (_ctx, interaction) => `/sign-in/${interaction.uid}` },
    acrValues: [strongAcr],
    pkce: { required: () => true },
    responseTypes: ['code'],
    scopes: ['openid', 'profile', 'email', 'offline_access'],
    // UserInfo contains all these claims; findAccount() adds only `sub` to the ID Token.
    claims: {
      openid: ['sub', fieldsClaim],
      profile: ['given_name', 'family_name', 'preferred_username'],
      email: ['email'],
    },
    findAccount: (_ctx, sub) => {
      const person = personIn(options, sub)
      return person && { accountId: sub, claims: (use) => (use === 'userinfo' ? userinfoOf(person) : { sub }) }
    },
    loadExistingGrant: grantAll,
    issueRefreshToken: (_ctx, client, source) =>
      client.grantTypeAllowed('refresh_token') && source.scopes.has('offline_access'),
    rotateRefreshToken: true,
    // No token outlives its session, also with offline_access.
    expiresWithSession: () => true,
    ttl: {
      AccessToken: lifetime.hour,
      AuthorizationCode: 60,
      Grant: lifetime.session,
      IdToken: lifetime.hour,
      Interaction: lifetime.hour,
      RefreshToken: lifetime.session,
      Session: lifetime.session,
    },
    jwks: { keys: [signingKey()] },
    enabledJWA: { idTokenSigningAlgValues: ['RS256'] },
    cookies: {
      keys: [randomToken(32)],
      names: { session: 'demo_provider', interaction: 'demo_provider_sign_in', resume: 'demo_provider_resume' },
      // Browsers share cookies between the ports of a host. This path keeps the cookies of the
      // provider out of requests to the gateway.
      long: { httpOnly: true, sameSite: 'lax', path: '/oauth' },
      short: { httpOnly: true, sameSite: 'lax' },
    },
    clientBasedCORS: () => false,
    // oidc-provider passes a dispatcher that blocks loopback addresses; the demo uses only these.
    fetch: (url, { dispatcher: _dispatcher, ...init }: RequestInit & { dispatcher?: unknown } = {}) => fetch(url, init),
    renderError: (ctx, out) =>
      render(ctx, messagePage('The request failed', `${out.error}: ${out.error_description ?? 'no details'}`)),
  }
}

function render(ctx: KoaContextWithOIDC, markup: Markup): void {
  ctx.type = 'html'
  ctx.set(pageHeaders)
  ctx.body = markup.text
}

function userinfoOf({ sub, email, given_name, family_name, fields }: DemoPerson) {
  return { sub, email, given_name, family_name, preferred_username: sub, [fieldsClaim]: fields }
}

/** Grants all requested scopes, with one grant for each session. */
async function grantAll({ oidc }: KoaContextWithOIDC) {
  const { client, session, provider, account } = oidc
  if (!client || !session || !account) return undefined
  const grantId = session.grantIdFor(client.clientId)
  const existing = grantId === undefined ? undefined : await provider.Grant.find(grantId)
  const grant = existing ?? new provider.Grant({ clientId: client.clientId, accountId: account.accountId })
  grant.addOIDCScope([...oidc.requestParamScopes].join(' '))
  await grant.save()
  return grant
}

let processKey: JsonWebKey | undefined

/**
 * All demo providers of one process share a key pair, because generating one takes up to a second.
 */
function signingKey() {
  processKey ??= generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' })
  return { ...processKey, kty: 'RSA' as const, kid: randomToken(8), use: 'sig', alg: 'RS256' }
}
