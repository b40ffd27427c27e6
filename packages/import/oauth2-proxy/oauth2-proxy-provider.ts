import {
  harmOfOfflineAccess,
  offlineAccess,
  ownMember,
  parseClaimPath,
  placeholder,
  providerKind,
  signingAlgorithms,
} from '../../../src/entries/import.ts'
import { withoutIdTokens } from '../common/notes.ts'
import type { Translation } from '../common/translation.ts'
import { emailClaim, groupsClaim } from './oauth2-proxy-rules.ts'
import { discovered } from './oauth2-proxy-without.ts'

/** The issuers of providers that oauth2-proxy selects by name. */
const issuers: Readonly<Record<string, string>> = {
  google: 'https://accounts.google.com',
  gitlab: 'https://gitlab.com',
}

/** Services without a discovery document or without ID Tokens. */
const withoutOpenidConnect: ReadonlySet<string> = new Set([
  'bitbucket',
  'digitalocean',
  'facebook',
  'gitea',
  'github',
  'linkedin',
  'nextcloud',
  'sourcehut',
])

/** Translates the settings of the provider and the client to `provider:`. */
export function translateProvider(from: Translation): object {
  const provider = from.text('provider') ?? 'google'
  if (from.text('prompt')?.split(' ').includes('none'))
    from.changed(
      'prompt',
      'with prompt: none, only people who are signed in at the provider can sign in; remove it unless this is meant',
    )
  noteLoginUrl(from)
  const issuer = issuerOf(provider, from)
  const authorization_params = {
    // With a list of scopes, Gatehouse adds no access_type; oauth2-proxy requests a refresh token.
    access_type: provider === 'google' && from.text('scope') !== undefined ? 'offline' : undefined,
    prompt: from.text('prompt'),
    acr_values: from.text('acr_values'),
    resource: from.text('resource'),
  }
  return {
    issuer,
    client_id: clientId(from),
    client_secret: clientSecret(from),
    scopes: scopes(provider, issuer, from),
    ...(Object.values(authorization_params).some((value) => value !== undefined) && { authorization_params }),
    id_token_signed_response_alg: algorithm(from),
    response_mode: responseMode(from),
    id_token_claims: idTokenClaims(from),
    ca_file: authority(from),
  }
}

function noteLoginUrl(from: Translation): void {
  const url = from.text('login_url')
  if (url === undefined) return
  const names = [...new URLSearchParams(/\?(.*)/.exec(url)?.[1] ?? '').keys()]
  if (names.length === 0) from.unneeded('login_url', discovered)
  else
    from.changed(
      'login_url',
      `${discovered}; its parameters (${names.join(', ')}) are not sent: write those that are needed in provider.authorization_params`,
    )
}

const multiTenantNames = ['common', 'organizations', 'consumers']

function issuerOf(provider: string, from: Translation): string {
  // The provider google of oauth2-proxy ignores the issuer. Without a provider, flags may name one.
  const url = from.text('oidc_issuer_url')
  const given = from.text('provider') === 'google' ? undefined : url
  const tenant = from.text('azure_tenant')
  if (given !== undefined) {
    if (withoutOpenidConnect.has(provider) || provider === 'keycloak' || provider === 'login.gov')
      from.deny(
        'oidc_issuer_url',
        `with the provider ${provider}, oauth2-proxy ignores the issuer; decide whether people sign in there`,
      )
    if (multiTenantNames.some((name) => given.includes(`/${name}/`)))
      from.decide(
        'oidc_issuer_url',
        'the tokens of this multi-tenant endpoint have other issuers; write the issuer of one tenant',
      )
    return given
  }
  if (tenant !== undefined && !multiTenantNames.includes(tenant))
    return `https://login.microsoftonline.com/${tenant}/v2.0`
  const known = ownMember(issuers, provider)
  if (known !== undefined) return known
  from.decide(
    'provider',
    withoutOpenidConnect.has(provider)
      ? withoutIdTokens(provider)
      : `write the issuer of ${provider} as provider.issuer: the URL before /.well-known/openid-configuration`,
  )
  return `https://${placeholder}.example.com`
}

function clientId(from: Translation): string {
  const id = from.text('client_id')
  if (id === undefined || id === placeholder)
    from.decide('client_id', 'write the client ID of the gateway at the provider as provider.client_id')
  return id ?? placeholder
}

function clientSecret(from: Translation): object {
  const file = from.text('client_secret_file')
  if (from.text('client_secret') === undefined && file !== undefined) return { file }
  from.changed('client_secret', 'the file contains no secret; set the environment variable CLIENT_SECRET')
  return { env: 'CLIENT_SECRET' }
}

/** The list of scopes; `undefined`: the gateway requests the scopes that suit the provider. */
function scopes(provider: string, issuer: string, from: Translation): readonly string[] | undefined {
  const given = from.text('scope')?.split(/[\s,]+/)
  if (given !== undefined) {
    const harm = given.includes(offlineAccess) ? harmOfOfflineAccess(providerKind(issuer)) : undefined
    if (harm !== undefined) from.changed('scope', `offline_access is removed: ${harm.what}`)
    const left = harm === undefined ? given : given.filter((scope) => scope !== offlineAccess)
    return ['openid', ...left.filter((scope) => scope !== 'openid')]
  }
  if (provider === 'google' || from.list('allowed_groups').length === 0) return undefined
  // GitLab rejects scopes that it does not know, and gives a refresh token for every sign-in.
  const isHarmful = harmOfOfflineAccess(providerKind(issuer)) !== undefined
  const isOffline = !isHarmful && provider !== 'gitlab' && provider !== 'keycloak-oidc'
  return ['openid', 'profile', 'email', ...(isOffline ? [offlineAccess] : []), 'groups']
}

function algorithm(from: Translation): string | undefined {
  const wanted = from.list('oidc_enabled_signing_algs')
  const [only] = wanted
  if (only === undefined || (wanted.length === 1 && signingAlgorithms.some((known) => known === only))) return only
  from.lost(
    'oidc_enabled_signing_algs',
    'the gateway accepts one algorithm: RS256, or provider.id_token_signed_response_alg; it never accepts HS256',
  )
  return undefined
}

function responseMode(from: Translation): string | undefined {
  const mode = from.text('auth_request_response_mode')
  if (mode === 'form_post') return mode
  if (mode !== undefined && mode !== 'query')
    from.lost('auth_request_response_mode', 'the gateway supports query and form_post')
  return undefined
}

/** Without UserInfo, oauth2-proxy reads all claims from the ID Token. */
function idTokenClaims(from: Translation): readonly string[] | undefined {
  if (!from.isOn('skip_claims_from_profile_url')) return undefined
  const paths = [emailClaim(from), groupsClaim(from)].map((path) => String(parseClaimPath(path)[0]))
  return [...new Set([...paths, 'email_verified', 'preferred_username', 'realm_access', 'resource_access'])]
}

function authority(from: Translation): string | undefined {
  const [file, ...more] = from.list('provider_ca_files')
  if (file !== undefined && !from.isOn('use_system_trust_store'))
    from.changed('provider_ca_files', 'the CAs of Node.js are trusted too, so a public CA can vouch for the provider')
  if (more.length > 0)
    from.decide('provider_ca_files', 'put all certificates into one file and name it in provider.ca_file')
  return file
}
