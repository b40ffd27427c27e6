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

/** The key that signs has to be one of a security profile. The schema has its other rules. */
function profile({ profile, clientKey }: ProviderConfig, at: At): void {
  if (profile === undefined || clientKey === undefined || !areValid(at('profile'), at('client_key'))) return
  if (!fapiAlgorithms.includes(clientKey.alg))
    at('client_key').error(
      `must sign with one of ${fapiAlgorithms.join(', ')} (profile is ${profile}: FAPI 2.0 Security Profile §5.4.1)`,
      'set alg: PS256 for an RSA key, or use a key on P-256 or Ed25519',
    )
}
