import {
  type GatewayConfig,
  kindOf,
  type ProviderConfig,
  registrationOf,
  requestedAccess,
} from '../../src/entries/setup.ts'

/** The metadata of a client, or of a provider (RFC 7591 §2, RFC 8414 §2). */
export type Metadata = Readonly<Record<string, unknown>>

/** The URIs and lists that may have more members at the provider than the gateway needs. */
const lists = ['redirect_uris', 'post_logout_redirect_uris', 'grant_types', 'response_types']

/** The provider may choose a name, may not show keys, and is for the web by default. */
const notCompared = ['client_name', 'jwks', 'application_type']

/** Without these, each sign-in and each logout works. Keycloak does not keep the first one. */
const wishes = ['backchannel_logout_session_required', 'initiate_login_uri']

/**
 * The metadata with which the gateway registers as a client (RFC 7591 §2, OpenID Connect Dynamic
 * Client Registration 1.0 §2).
 * @param announced the metadata of the provider
 */
export function clientMetadata(provider: ProviderConfig, config: GatewayConfig, announced: Metadata): Metadata {
  const { issuer: _issuer, client_id: _id, ...registration } = registrationOf(provider, config)
  const { security_events_uri: _events, global_token_revocation_uri: _revocation, ...uris } = registration
  const { clientKey, clientCertificate, dpop, response_mode, signedRequests, token_endpoint_auth_method } = provider
  const isJarm = response_mode === 'jwt' || response_mode.endsWith('.jwt')
  const signing = clientKey?.alg
  const members: Metadata = {
    client_name: config.pages.name ?? config.externalUrl.hostname,
    application_type: 'web',
    response_types: ['code'],
    grant_types: grantTypes(provider, config, announced),
    token_endpoint_auth_method,
    token_endpoint_auth_signing_alg: token_endpoint_auth_method === 'private_key_jwt' ? signing : undefined,
    // Keycloak refuses a client that names scopes, and gives each client those of its realm.
    scope:
      kindOf(provider.issuer, announced) === 'keycloak'
        ? undefined
        : requestedAccess(provider, announced).scopes.join(' '),
    ...uris,
    // A provider accepts https only (OpenID Connect Dynamic Client Registration 1.0 §2).
    initiate_login_uri: config.externalUrl.protocol === 'https:' ? uris.initiate_login_uri : undefined,
    backchannel_logout_session_required: true,
    id_token_signed_response_alg: provider.id_token_signed_response_alg,
    userinfo_signed_response_alg: provider.userinfo_signed_response_alg,
    authorization_signed_response_alg: isJarm ? (provider.id_token_signed_response_alg ?? 'RS256') : undefined,
    request_object_signing_alg: signedRequests ? signing : undefined,
    require_pushed_authorization_requests: provider.pushedAuthorizationRequests === 'always' ? true : undefined,
    dpop_bound_access_tokens: dpop ? true : undefined,
    tls_client_certificate_bound_access_tokens: clientCertificate !== undefined && !dpop ? true : undefined,
    jwks: registration.jwks_uri === undefined && clientKey !== undefined ? { keys: [publicJwk(clientKey)] } : undefined,
  }
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined))
}

/** Those that the provider announces, of those that the gateway may use. */
function grantTypes(
  { signals, claimsFrom }: ProviderConfig,
  { upstreams }: GatewayConfig,
  announced: Metadata,
): readonly string[] {
  const asItself =
    signals?.authorization?.kind === 'client_credentials' ||
    claimsFrom.some(({ sources }) => sources.some(({ token }) => token === 'client_credentials'))
  const supported = announced['grant_types_supported']
  const isSupported = (type: string) => !Array.isArray(supported) || supported.includes(type)
  return [
    'authorization_code',
    ...(isSupported('refresh_token') ? ['refresh_token'] : []),
    ...(asItself ? ['client_credentials'] : []),
    ...(upstreams.some(({ tokenExchange }) => tokenExchange !== undefined)
      ? ['urn:ietf:params:oauth:grant-type:token-exchange']
      : []),
  ]
}

/** Without the private members (RFC 7518 §6). */
function publicJwk({ jwk, kid, alg }: NonNullable<ProviderConfig['clientKey']>): Metadata {
  const { d: _d, p: _p, q: _q, dp: _dp, dq: _dq, qi: _qi, ...members } = jwk
  return { ...members, ...(kid !== undefined && { kid }), alg, use: 'sig' }
}

/** A difference between what is registered and what the gateway needs. */
export interface Difference {
  readonly name: string
  /** Whether a sign-in or a logout may fail because of it. */
  readonly isFault: boolean
  readonly text: string
}

/**
 * Compares what the provider has registered with what the gateway needs. A provider may leave out
 * what it does not know.
 */
export function differences(wanted: Metadata, registered: Metadata): readonly Difference[] {
  return Object.entries(wanted).flatMap(([name, value]): Difference[] => {
    const found = registered[name]
    if (lists.includes(name)) return listDifferences(name, value as readonly string[], found)
    if (notCompared.includes(name) || isSame(name, value, found)) return []
    const isFault = !wishes.includes(name) && (found !== undefined || name === 'backchannel_logout_uri')
    const text = found === undefined ? 'is not registered' : `is registered as ${JSON.stringify(found)}`
    return [{ name, isFault, text: `${text}; the gateway needs ${JSON.stringify(value)}` }]
  })
}

function isSame(name: string, wanted: unknown, found: unknown): boolean {
  if (name !== 'scope') return JSON.stringify(wanted) === JSON.stringify(found)
  // An absent scope leaves the scopes to the provider (RFC 7591 §2).
  const registered = typeof found === 'string' ? found.split(' ') : undefined
  return (
    registered === undefined ||
    String(wanted)
      .split(' ')
      .every((scope) => registered.includes(scope))
  )
}

function listDifferences(name: string, wanted: readonly string[], found: unknown): Difference[] {
  const registered: readonly unknown[] = Array.isArray(found) ? found : []
  const missing = wanted.filter((one) => !registered.includes(one))
  const others = registered.filter((one) => !wanted.includes(String(one)))
  const isUri = name.endsWith('_uris')
  return [
    ...missing.map((one) => ({ name, isFault: true, text: `${one} is not registered` })),
    ...(isUri ? others : []).map((one) => ({
      name,
      isFault: false,
      text: `${String(one)} is registered, and the gateway does not use it`,
    })),
  ]
}
