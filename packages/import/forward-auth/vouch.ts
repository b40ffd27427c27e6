import { isObject, type JsonObject } from '../../../src/entries/import.ts'
import type { Options } from '../common/flat-toml.ts'
import { withoutIdTokens, withoutTranslationOf } from '../common/notes.ts'
import type { Dialect } from '../common/option-sources.ts'
import { type Claims, outcomesFor } from '../common/outcomes.ts'
import type { Translated } from '../common/translated-file.ts'
import { type Translation, translationOf } from '../common/translation.ts'
import { anyOf, claimPath, denyingRule, type Requirement, type Rule } from '../common/written-config.ts'
import { domainRequirement, forwardAuthFile, type ForwardAuthSettings, peopleAt } from './forward-auth.ts'

/** Where its options are: see `readOptions`. */
export const vouchDialect: Dialect = {
  program: 'vouch-proxy',
  image: /vouch/i,
  optionOf: (variable) => (/^(?:VOUCH|OAUTH)_/.test(variable) ? variable.toLowerCase() : undefined),
  flagOf: (flag) => ({ option: `vouch_${flag.replaceAll('-', '_')}`, isList: false }),
  readFile: () => {
    throw new SyntaxError('it is neither YAML nor lines of environment variables')
  },
  readDocument: (document) => [{ kind: 'file', options: new Map(flat('', document)) }],
}

/** `vouch: { cookie: { maxAge: 1 } }` is `vouch_cookie_maxage`, as its variable is. */
function flat(prefix: string, settings: JsonObject): (readonly [string, string | readonly string[]])[] {
  return Object.entries(settings).flatMap(([name, value]) => {
    const option = `${prefix}${name.toLowerCase()}`
    if (isObject(value)) return option === 'oauth_claims' ? [[option, 'given'] as const] : flat(`${option}_`, value)
    return [[option, Array.isArray(value) ? value.map(String) : String(value ?? '')] as const]
  })
}

/** Translates the options of Vouch Proxy to an upstream with `forward_auth`. */
export function translateVouch(options: Options, url: string | undefined): Translated {
  const from = translationOf(options)
  const provider = from.text('oauth_provider') ?? ''
  const isPublic = from.isOn('vouch_publicaccess')
  const policy = policyOf(from)
  const names = namesOf(provider)
  if (policy.kind === 'teams')
    from.deny(
      'vouch.teamWhitelist',
      'rules cannot express teams of another service; require a claim that only the allowed people have',
    )
  if (!['google', 'oidc', 'adfs', 'azure', ''].includes(provider))
    from.deny('oauth.provider', withoutIdTokens(provider))
  const [callback = ''] = [...from.list('oauth_callback_url'), ...from.list('oauth_callback_urls')]
  const hd = from.text('oauth_preferreddomain')
  const [cert_file, key_file] = [from.text('vouch_tls_cert'), from.text('vouch_tls_key')]
  const minutes = Number(from.text('vouch_jwt_maxage') ?? 240)
  const [first] = from.list('vouch_domains')
  const settings: ForwardAuthSettings = {
    program: 'Vouch Proxy',
    externalUrl: url ?? (URL.canParse(callback) ? new URL(callback).origin : undefined),
    callback,
    listenPort: from.text('vouch_port') ?? '9090',
    listenTls: cert_file === undefined || key_file === undefined ? undefined : { cert_file, key_file },
    issuer: provider === 'google' ? 'https://accounts.google.com' : undefined,
    clientId: from.text('oauth_client_id'),
    scopes: from.list('oauth_scopes').length === 0 ? undefined : from.list('oauth_scopes'),
    authorizationParams: hd === undefined ? undefined : { hd },
    absoluteMs: minutes * 60_000,
    cookieDomain: from.text('vouch_cookie_domain') ?? first,
    sameSite: from.text('vouch_cookie_samesite'),
    headers: headersOf(from),
    hosts: [],
    rules: () => rulesOf(policy, names, isPublic, from),
    outcomes: () =>
      outcomesFor({ paths: ['/', '/x'], methods: ['GET'], people: peopleOf(policy) }, ({ as }) =>
        as === undefined ? isPublic : admitsPerson(policy, names, as, isPublic),
      ),
  }
  for (const option of from.rest) from.untranslated(option, withoutTranslation.get(option))
  if (policy.kind === 'all' && !from.isOn('vouch_allowallusers'))
    from.decide(
      'vouch.domains',
      'neither domains nor whiteList is set: everybody who can sign in at the provider has access, as with Vouch Proxy',
    )
  return forwardAuthFile(settings, from)
}

/** The first of these that is set decides alone. */
interface Policy {
  readonly kind: 'all' | 'teams' | 'whitelist' | 'domains'
  readonly values: readonly string[]
}

function policyOf(from: Translation): Policy {
  const [whitelist, teams, domains] = [
    from.list('vouch_whitelist'),
    from.list('vouch_teamwhitelist'),
    from.list('vouch_domains'),
  ]
  if (from.isOn('vouch_allowallusers')) return { kind: 'all', values: [] }
  if (whitelist.length > 0) return { kind: 'whitelist', values: whitelist }
  if (teams.length > 0) return { kind: 'teams', values: [] }
  return domains.length > 0 ? { kind: 'domains', values: domains } : { kind: 'all', values: [] }
}

/** The claims of which Vouch Proxy takes the name of a person: it admits no person without one. */
function namesOf(provider: string): readonly string[] {
  if (provider === 'adfs') return ['upn']
  if (provider === 'azure') return ['username', 'upn', 'preferred_username', 'email']
  return provider === 'google' ? ['email'] : ['username', 'email']
}

function rulesOf(policy: Policy, names: readonly string[], isPublic: boolean, from: Translation): readonly Rule[] {
  if (policy.kind === 'teams') return [denyingRule('/*', 'Decide which people the teams of vouch.teamWhitelist were.')]
  if (isPublic && policy.kind === 'all') return [{ path: '/*', access: 'optional' }]
  if (isPublic)
    from.lost(
      'vouch.publicAccess',
      'people who are not signed in must sign in here: access: optional permits no requirement',
    )
  const named = anyOf(names.map((claim) => ({ claim, matches: '.+' })))
  // An address that the policy compares is a name too.
  const hasName = policy.kind !== 'all' && names.includes('email')
  return [{ path: '/*', require: [...requirementsOf(policy, from), ...(hasName ? [] : [named])] }]
}

function requirementsOf(policy: Policy, from: Translation): readonly Requirement[] {
  if (policy.kind === 'whitelist') {
    from.changed(
      'vouch.whiteList',
      'its names are compared with the claim email; for another claim, change the requirement',
    )
    return [{ claim: 'email', any_of: policy.values }]
  }
  return policy.kind === 'domains' ? [domainRequirement(policy.values, true, from)] : []
}

function peopleOf(policy: Policy) {
  const addresses = policy.values.map((value) => (value.includes('@') ? value : `person@${value}`))
  const below = policy.kind === 'domains' ? [`person@sub.${policy.values[0] ?? ''}`] : []
  return peopleAt([...addresses, ...below])
}

/** With publicAccess, a person without access gets the page without a name. */
function admitsPerson(
  policy: Policy,
  names: readonly string[],
  person: Claims,
  isPublic: boolean,
): boolean | undefined {
  if (policy.kind === 'teams' || isPublic) return policy.kind === 'all' ? true : undefined
  if (!names.some((name) => person[name] !== undefined)) return false
  const email = String(person['email'] ?? '')
  if (policy.kind === 'all') return true
  if (policy.kind === 'whitelist') return policy.values.includes(email)
  const [, domain = ''] = email.split('@')
  return policy.values.some((value) => domain === value || domain.endsWith(`.${value}`))
}

function headersOf(from: Translation): object {
  const prefix = from.text('vouch_headers_claimheader') ?? 'X-Vouch-IdP-Claims-'
  const user = from.text('vouch_headers_user') ?? 'X-Vouch-User'
  const claims = from.list('vouch_headers_claims').map((claim) => {
    const name = claim
      .replaceAll(/[^A-Za-z0-9_]+/g, '-')
      .split('_')
      .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
      .join('-')
    return [`${prefix}${name}`, { claim: claimPath(claim), join: ',' }] as const
  })
  return { [user]: 'email', ...Object.fromEntries(claims) }
}

const withoutTranslation = withoutTranslationOf({
  unneeded: {
    'vouch_loglevel vouch_testing vouch_test_url vouch_test_urls vouch_listen vouch_socket_mode vouch_socket_group':
      'log and listen have other settings',
    'vouch_jwt_secret vouch_jwt_signing_method vouch_jwt_issuer vouch_jwt_private_key_file vouch_jwt_public_key_file vouch_jwt_compress vouch_session_name vouch_session_key vouch_session_maxage vouch_cookie_maxage vouch_cookie_name vouch_cookie_secure vouch_cookie_httponly':
      'the cookie is a random value, Secure and HttpOnly; people sign in once more',
    'vouch_headers_jwt vouch_headers_querystring vouch_headers_redirect vouch_headers_success vouch_headers_error':
      'the proxy asks with the fields of docs/forward-auth.md',
    oauth_client_secret: 'it is replaced by CLIENT_SECRET',
    oauth_code_challenge_method: 'PKCE with S256 is always used',
    'vouch_tls_profile vouch_writetimeout vouch_readtimeout vouch_idletimeout': 'the gateway has limits of its own',
    'oauth_auth_url oauth_token_url oauth_user_info_url oauth_end_session_endpoint':
      'the gateway discovers it from the issuer',
  },
  lost: {
    'vouch_headers_accesstoken vouch_headers_idtoken':
      'if the application accepts a bearer token, write headers: { Authorization: { bearer: … } }',
    'vouch_post_logout_redirect_uris vouch_document_root oauth_claims oauth_relying_party_id': 'it is not available',
    'oauth_user_team_url oauth_user_org_url': 'groups come from a claim, not from another service',
  },
})
