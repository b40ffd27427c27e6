import { areValid } from '../document/report.ts'
import { fapiAlgorithms, type ProviderConfig } from '../model/provider.ts'
import { fixedClaims, harmOfOfflineAccess, offlineAccess, providerKind } from '../provider-kind.ts'
import type { At, ProviderCheck } from './check.ts'

/** The checks of a provider. */
export const providerChecks: readonly ProviderCheck[] = [
  offlineScope,
  groupsScope,
  secret,
  prompt,
  authorities,
  metadata,
  apis,
  profile,
]

function offlineScope({ scopes, issuer }: ProviderConfig, at: At): void {
  const harm = scopes?.includes(offlineAccess) ? harmOfOfflineAccess(providerKind(issuer)) : undefined
  if (harm !== undefined && areValid(at('scopes'), at('issuer')))
    at('scopes', scopes?.indexOf(offlineAccess) ?? 0)[harm.isFatal ? 'error' : 'warning'](
      `must not be requested from this provider: ${harm.what}`,
      'remove offline_access: this provider issues refresh tokens without it',
    )
}

function groupsScope({ scopes, issuer, setting, idTokenClaims }: ProviderConfig, at: At): void {
  const index = scopes?.indexOf('groups') ?? -1
  const fixed = fixedClaims(issuer)
  if (index < 0 || fixed === undefined || !areValid(at('scopes'), at('issuer'))) return
  at('scopes', index).warning(
    `is no scope of ${fixed.provider}, which rejects it (${fixed.scopeGroups})`,
    `remove it, and ${fixed.todo('groups', setting, idTokenClaims)}`,
  )
}

function secret({ client_secret, token_endpoint_auth_method: method }: ProviderConfig, at: At): void {
  const secretAt = at('client_secret')
  if (!areValid(secretAt, at('token_endpoint_auth_method')) || !method.startsWith('client_secret')) return
  if (client_secret.length < 16) secretAt.warning('is shorter than 16 characters, so it can be guessed')
  // RFC 7518 §3.2: the key of HS256 has 256 bits or more.
  else if (method === 'client_secret_jwt' && client_secret.length < 32)
    secretAt.warning('is shorter than 32 characters, which HS256 needs', 'generate a longer secret at the provider')
}

function prompt({ authorizationParams }: ProviderConfig, at: At): void {
  const paramsAt = at('authorization_params')
  if (paramsAt.isValid && authorizationParams['prompt'] === 'none')
    at('authorization_params', 'prompt').warning(
      'is none: only people who are already signed in at the provider can sign in',
    )
}

function authorities({ issuer, metadata, signals, ca }: ProviderConfig, at: At): void {
  if (ca === undefined || !areValid(at('issuer'), at('ca_file'), at('signals'))) return
  const urls = [issuer, signals?.transmitter, ...Object.values(metadata ?? {})]
  if (!urls.some((url) => typeof url === 'string' && url.startsWith('https:')))
    at('ca_file').error('has no effect: the issuer is http')
}

function metadata({ metadata, pushedAuthorizationRequests: par, signedRequests }: ProviderConfig, at: At): void {
  const metadataAt = at('metadata')
  if (metadata === undefined || !metadataAt.isValid) return
  const isRequired = metadata['require_pushed_authorization_requests'] === true
  if (par === 'never' && isRequired)
    at('pushed_authorization_requests').error('is never, but metadata says that the provider requires them')
  if ((par === 'always' || isRequired) && metadata['pushed_authorization_request_endpoint'] === undefined)
    metadataAt.errorAtKey('has no pushed_authorization_request_endpoint, which pushed authorization requests need')
  if (metadata['require_signed_request_object'] === true && !signedRequests)
    at('metadata', 'require_signed_request_object').error(
      'is true, but the gateway does not sign its requests',
      'set signed_requests: true and client_key',
    )
}

/** Known APIs that respond without values, or with 403, unless the access token has a scope. */
const scopesOfApis: readonly (readonly [host: string, scopes: RegExp, example: string])[] = [
  [
    'graph.microsoft.com',
    /^(?:https:\/\/graph\.microsoft\.com\/)?(?:User|Group|GroupMember|Directory)\.Read/i,
    'User.Read',
  ],
  ['api.github.com', /^(?:read|write|admin):org$|^user/, 'read:org'],
  ['gitlab.com', /^(?:read_)?api$/, 'read_api'],
  [
    'cloudidentity.googleapis.com',
    /\/cloud-(?:identity|platform)/,
    'https://www.googleapis.com/auth/cloud-identity.groups.readonly',
  ],
  [
    'admin.googleapis.com',
    /\/admin\.directory\.group/,
    'https://www.googleapis.com/auth/admin.directory.group.readonly',
  ],
]

/** The access token that an API of `claims_from` gets. */
function apis({ claimsFrom, dpop, scopes = [] }: ProviderConfig, at: At): void {
  const claimsAt = at('claims_from')
  const sources = claimsFrom.flatMap((claim) => claim.sources)
  if (!areValid(claimsAt, at('scopes'), at('dpop'))) return
  if (dpop && sources.some(({ token }) => token === 'access_token'))
    claimsAt.error(
      'cannot send the access token of the person, which dpop binds to a key',
      'write token: client_credentials, or remove dpop',
    )
  for (const [host, known, example] of scopesOfApis) {
    const ofHost = sources.filter(({ origin, token }) => origin === `https://${host}` && token === 'access_token')
    const all = [...scopes, ...sources.flatMap((source) => source.scopes)]
    if (ofHost.length > 0 && !all.some((scope) => known.test(scope)))
      claimsAt.warning(`has no scope for ${host}`, `write scopes: [${example}] in its entry`)
  }
}

/** What a security profile forbids: each rule with its clause. */
function profile(config: ProviderConfig, at: At): void {
  if (config.profile === undefined || !at('profile').isValid) return
  for (const rule of [...fapi2Rules, ...(config.profile === 'fapi2_message_signing' ? messageSigningRules : [])]) {
    const place = at(rule.setting)
    if (rule.isKept(config) || !place.isValid) continue
    place[place.isSet ? 'error' : 'missing'](
      `${rule.what} (${config.setting}.profile is ${config.profile}: ${rule.clause})`,
      rule.todo,
    )
  }
}

interface ProfileRule {
  readonly setting: string
  readonly isKept: (config: ProviderConfig) => boolean
  readonly what: string
  readonly clause: string
  readonly todo: string
}

const securityProfile = 'FAPI 2.0 Security Profile'

const fapi2Rules: readonly ProfileRule[] = [
  {
    setting: 'issuer',
    isKept: ({ issuer }) => issuer === '' || issuer.startsWith('https:'),
    what: 'must be https',
    clause: `${securityProfile} §5.2.1`,
    todo: 'also for a provider on this machine',
  },
  {
    setting: 'metadata',
    isKept: ({ metadata }) => metadata === undefined,
    what: 'must not be set: the metadata has to come from the provider',
    clause: `${securityProfile} §5.3.3.1`,
    todo: 'remove it, and enable the discovery document at the provider',
  },
  {
    setting: 'token_endpoint_auth_method',
    isKept: ({ token_endpoint_auth_method }) => !token_endpoint_auth_method.startsWith('client_secret'),
    what: 'must not be a method with a secret',
    clause: `${securityProfile} §5.3.3.1`,
    todo: 'use private_key_jwt, tls_client_auth or self_signed_tls_client_auth',
  },
  {
    setting: 'client_assertion_audience',
    isKept: ({ clientAssertionAudience }) => clientAssertionAudience === 'issuer',
    what: 'must be issuer',
    clause: `${securityProfile} §5.3.3.1`,
    todo: 'remove the setting',
  },
  {
    setting: 'client_key',
    isKept: ({ clientKey }) => clientKey === undefined || fapiAlgorithms.includes(clientKey.alg),
    what: `must sign with one of ${fapiAlgorithms.join(', ')}`,
    clause: `${securityProfile} §5.4.1`,
    todo: 'set alg: PS256 for an RSA key, or use a key on P-256 or Ed25519',
  },
  {
    setting: 'id_token_signed_response_alg',
    isKept: ({ id_token_signed_response_alg: alg }) => alg === undefined || fapiAlgorithms.includes(alg),
    what: `must be one of ${fapiAlgorithms.join(', ')}`,
    clause: `${securityProfile} §5.4.1`,
    todo: 'register the client with one of them',
  },
  {
    setting: 'userinfo_signed_response_alg',
    isKept: ({ userinfo_signed_response_alg: alg }) => alg === undefined || fapiAlgorithms.includes(alg),
    what: `must be one of ${fapiAlgorithms.join(', ')}`,
    clause: `${securityProfile} §5.4.1`,
    todo: 'register the client with one of them',
  },
  {
    setting: 'pushed_authorization_requests',
    isKept: ({ pushedAuthorizationRequests }) => pushedAuthorizationRequests === 'always',
    what: 'must be always',
    clause: `${securityProfile} §5.3.3.2`,
    todo: 'write pushed_authorization_requests: always',
  },
  {
    setting: 'dpop',
    isKept: ({ dpop, clientCertificate }) => dpop || clientCertificate !== undefined,
    what: 'must be true, unless access tokens are bound to a client_certificate',
    clause: `${securityProfile} §5.3.3.1`,
    todo: 'write dpop: true, or set client_certificate',
  },
]

const messageSigning = 'FAPI 2.0 Message Signing'

const messageSigningRules: readonly ProfileRule[] = [
  {
    setting: 'signed_requests',
    isKept: ({ signedRequests }) => signedRequests,
    what: 'must be true',
    clause: `${messageSigning} §5.3.2`,
    todo: 'write signed_requests: true, and set client_key',
  },
  {
    setting: 'response_mode',
    isKept: ({ response_mode }) => response_mode.endsWith('jwt'),
    what: 'must be a mode with signed responses',
    clause: `${messageSigning} §5.4.2`,
    todo: 'write response_mode: jwt',
  },
]
