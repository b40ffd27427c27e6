import { matchesPath, parsePathPattern } from '../../../src/entries/import.ts'
import type { Translation } from '../common/translation.ts'
import { anyOf, claimPath, denial, literal, type Requirement, type Rule, undecided } from '../common/written-config.ts'
import { withoutTranslation } from './oauth2-proxy-without.ts'

/**
 * Translates the settings about who has access. When rules cannot express a restriction of
 * oauth2-proxy, or an option is unknown, the rules deny all people until an operator decides.
 */
export function translateRules(from: Translation): readonly Rule[] {
  const routes = (option: string, rule: Omit<Rule, 'path'>) =>
    from.list(option).flatMap((route) => rulesFor(route, option, rule, from))
  const open = [
    ...routes('skip_auth_routes', { access: 'public' }),
    ...routes('skip_auth_regex', { access: 'public' }),
    ...(from.isOn('skip_auth_preflight')
      ? [{ path: '/*', methods: ['OPTIONS'], access: 'public' } satisfies Rule]
      : []),
  ]
  const apiRules = routes('api_routes', { unauthenticated: '401' })
  const requirements = requirementsOf(from)
  if (requirements.length === 0) return [...open, ...apiRules]
  return [...open, ...[...apiRules, { path: '/*' }].map((rule) => ({ ...rule, require: requirements }))]
}

/** The rules of an upstream for exactly one path, not the paths below it. */
export function onlyFor(path: string, rules: readonly Rule[]): readonly Rule[] {
  const segments = path.slice(1).split('/')
  const own = rules.filter((rule) => matchesPath(parsePathPattern(rule.path), segments))
  const forAnyMethod = own.some(({ methods }) => methods === undefined) ? [] : [{}]
  // The requirements of the one page are repeated, so that check sees no page that needs less.
  const required = own.flatMap(({ require = [] }) => require)
  return [
    ...[...own, ...forAnyMethod].map((rule) => ({ ...rule, path })),
    { path: '/*', require: [denial([`The upstream was only for ${path}.`]), ...new Set(required)] },
  ]
}

function rulesFor(route: string, option: string, rule: Omit<Rule, 'path'>, from: Translation): Rule[] {
  // oauth2-proxy reads a method in `skip_auth_routes` only. Elsewhere, it is a part of the pattern.
  const translated = option === 'skip_auth_routes' ? translateRoute(route) : translatePattern(route)
  if ('why' in translated) {
    from.lost(option, `${route}: ${translated.why}; these paths need a sign-in like all others`)
    return []
  }
  const { paths, difference, ...where } = translated
  if (difference !== undefined) from.changed(option, difference)
  return paths.map((path) => ({ path, ...where, ...rule }))
}

/** Restrictions of oauth2-proxy that query other services, or that rules cannot express. */
const withoutRule = [
  'authenticated_emails_file',
  'bitbucket_repository',
  'bitbucket_team',
  'entra_id_allowed_tenants',
  'github_org',
  'github_repo',
  'github_team',
  'github_users',
  'gitlab_group',
  'gitlab_groups',
  'gitlab_project',
  'gitlab_projects',
  'google_group',
  'google_groups',
] as const

function requirementsOf(from: Translation): readonly Requirement[] {
  const requirements = [...groupRequirements(from), ...addressRequirements(from)]
  reportRestrictions(from)
  return [...undecided(from.denials), ...requirements]
}

/** Notes each restriction that the requirements cannot express, or that may be elsewhere. */
function reportRestrictions(from: Translation): void {
  for (const option of withoutRule)
    if (from.text(option) !== undefined)
      from.deny(
        option,
        option === 'authenticated_emails_file'
          ? reasonOfAddressFile(from)
          : `rules cannot express this restriction (${from.list(option).join(', ')}); require a claim that only the allowed people have`,
      )
  const unmatched = from.list('email_domains').filter((domain) => domain !== domain.trim())
  if (unmatched.length > 0)
    from.lost(
      'email_domains',
      `oauth2-proxy keeps the spaces in ${unmatched.map((domain) => JSON.stringify(domain)).join(', ')}, which no address matches; write the domain without them if it is meant`,
    )
  if (emailDomains(from).length === 0 && from.text('authenticated_emails_file') === undefined)
    from.deny('email_domains', 'the file does not say who has access; require a claim of the allowed people')
  const elsewhere = needed.filter((names) => names.every((name) => from.isOff(name)))
  if (elsewhere.length > 0)
    from.deny(
      elsewhere.map(([name]) => name).join(', '),
      'this is not in the file, so flags or OAUTH2_PROXY_ variables set options too, and may restrict access; add their restrictions',
    )
  for (const option of from.rest.filter((name) => !withoutTranslation.has(name) && !from.isEmpty(name)))
    from.untranslated(option, undefined)
}

/** oauth2-proxy admits a person by the file or by a domain. */
function reasonOfAddressFile(from: Translation): string {
  if (isForAll(from))
    return 'oauth2-proxy ignores the file beside the e-mail domain "*" and admits all people; decide which of the two is meant'
  const file = from.list('authenticated_emails_file').join(', ')
  const domains = emailDomains(from).join(', ')
  const addresses = `{ claim: ${emailClaim(from)}, any_of: [ADDRESS, …] }`
  return domains === ''
    ? `rules cannot read the addresses in ${file}; write ${addresses}`
    : `oauth2-proxy admits the addresses in ${file} and those of the domains ${domains}; write { any: [{ email_domains: [${domains}] }, ${addresses}] }`
}

/** oauth2-proxy needs these options. Without a provider, it uses Google. */
const needed = [
  ['provider'],
  ['client_id'],
  ['client_secret', 'client_secret_file'],
  ['cookie_secret', 'cookie_secret_file'],
] as const

/** The domains that an address can match. */
function emailDomains(from: Translation): readonly string[] {
  return from.list('email_domains').filter((domain) => domain === domain.trim())
}

function isForAll(from: Translation): boolean {
  return emailDomains(from).includes('*')
}

function isGoogle(from: Translation): boolean {
  return (from.text('provider') ?? 'google') === 'google'
}

/**
 * The claim that oauth2-proxy uses as the e-mail address. The older option `user_id_claim` names it
 * too. The provider `google` uses `email` only.
 */
export function emailClaim(from: Translation): string {
  const names = [from.text('oidc_email_claim'), from.text('user_id_claim')]
  const name = names.find((each) => each !== undefined && each !== 'email') ?? 'email'
  return isGoogle(from) ? 'email' : claimPath(name)
}

export function groupsClaim(from: Translation): string {
  return claimPath(from.text('oidc_groups_claim') ?? 'groups')
}

/** What `strconv.ParseBool` of Go, and so oauth2-proxy, reads as false. */
const falses = ['false', 'False', 'FALSE', 'f', 'F', '0']

/** oauth2-proxy admits no person without an address, also with the domain `*`. */
function addressRequirements(from: Translation): readonly Requirement[] {
  const claim = emailClaim(from)
  const isUnverified = from.isOn('insecure_oidc_allow_unverified_email') && !isGoogle(from)
  const domains = emailDomains(from).map((domain) => domain.toLowerCase().replace(/^\*\./, '.'))
  const isByFileToo = from.text('authenticated_emails_file') !== undefined
  const isByDomain = domains.length > 0 && !isForAll(from) && !isByFileToo
  return [
    ...(isByDomain ? domainRequirements(domains, claim, isUnverified, from) : [{ claim, matches: '.+' }]),
    ...(isGoogle(from) ? [{ claim: 'email_verified', equals: 'true' }] : []),
    ...(!isGoogle(from) && !isUnverified && claim === 'email' ? [{ claim: 'email_verified', none_of: falses }] : []),
  ]
}

/** For oauth2-proxy, a domain that begins with a dot is each domain below it. */
function domainRequirements(
  domains: readonly string[],
  claim: string,
  isUnverified: boolean,
  from: Translation,
): readonly Requirement[] {
  const patterns = domains.map((domain) => (domain.startsWith('.') ? `[^@]+${literal(domain)}` : literal(domain)))
  const addresses = (pattern: string) => ({ claim, matches: `[^@]+@${pattern}` })
  if (claim !== 'email') {
    from.changed('email_domains', `letter case counts in the domain of the claim ${claim}`)
    return [anyOf(patterns.map(addresses))]
  }
  const exact = domains.filter((domain) => !domain.startsWith('.'))
  const parents = patterns.filter((_, index) => domains[index]?.startsWith('.'))
  const byDomain =
    exact.length === 0 ? [] : [{ email_domains: exact, ...(isUnverified && { verified: false as const }) }]
  const isByHostedDomain = isGoogle(from) && parents.length === 0
  if (isByHostedDomain)
    from.changed(
      'email_domains',
      'people also need a Google Workspace account of the domain (the claim hd); oauth2-proxy also admits other Google accounts with such an address',
    )
  else if (!isUnverified && exact.length > 0)
    from.changed(
      'email_domains',
      'the provider must say that it has verified the address (email_verified: true); oauth2-proxy also admits people when it says nothing',
    )
  return [
    ...(isByHostedDomain ? [{ claim: 'hd', any_of: exact }] : []),
    anyOf([...byDomain, ...parents.map(addresses)]),
  ]
}

/** Requirements for groups and roles: oauth2-proxy allows a person with one of them. */
function groupRequirements(from: Translation): Requirement[] {
  const provider = from.text('provider')
  // oauth2-proxy reads keycloak_groups with the provider keycloak only, which ignores
  // allowed_groups. What it ignores restricts access here only if nothing else does.
  const names = ['allowed_groups', 'keycloak_groups']
  const [read = [], ignored = []] = (provider === 'keycloak' ? names.toReversed() : names).map((name) =>
    from.list(name),
  )
  // Only with this provider, oauth2-proxy admits a person with a role instead of a group.
  const given = from.list('allowed_roles')
  const roles = provider === 'keycloak-oidc' || read.length + ignored.length === 0 ? given : []
  const groups = read.length + roles.length > 0 ? read : ignored
  const claim = groupsClaim(from)
  if (groups.length + roles.length === 0) return []
  from.changed(
    groups.length > 0 ? 'allowed_groups' : 'allowed_roles',
    'the gateway reads claims from UserInfo; let the provider send them there, or name them in provider.id_token_claims',
  )
  return [anyOf([...(groups.length > 0 ? [{ claim, any_of: groups }] : []), ...roleRequirements(roles)])]
}

/**
 * The claim of a role of Keycloak: `role` is a role of the realm, `client:role` one of a client.
 */
export function roleOf(role: string): { readonly claim: string; readonly name: string } {
  const [, client = '', name = role] = /^([^:]*):(.*)$/s.exec(role) ?? []
  const member = /^[\w-]+$/.test(client) ? client : JSON.stringify(client)
  return { claim: client === '' ? 'realm_access.roles' : `resource_access.${member}.roles`, name }
}

function roleRequirements(roles: readonly string[]): Requirement[] {
  const named = roles.map(roleOf)
  return [...new Set(named.map(({ claim }) => claim))].map((claim) => ({
    claim,
    any_of: named.filter((role) => role.claim === claim).map(({ name }) => name),
  }))
}

/** The paths of the rules that replace a pattern, or the reason why rules cannot express it. */
type TranslatedRoute =
  | { readonly paths: readonly string[]; readonly methods?: readonly string[]; readonly difference?: string }
  | { readonly why: string }

/**
 * Translates `METHOD=^/regular-expression` to paths of rules. Only patterns that are paths are
 * translated, because a rule that is too wide would make protected paths public.
 */
export function translateRoute(route: string): TranslatedRoute {
  const [, method, negated, pattern = ''] = /^(?:([A-Za-z]+)?(!)?=)?([^]*)$/.exec(route) ?? []
  if (negated !== undefined) return { why: 'it matches all paths except one, which rules cannot express' }
  const translated = translatePattern(pattern)
  return method === undefined || 'why' in translated ? translated : { ...translated, methods: [method.toUpperCase()] }
}

/** Translates `^/regular-expression` in the same way. */
function translatePattern(pattern: string): TranslatedRoute {
  if (!pattern.startsWith('^')) return { why: 'it matches anywhere in a path, but rules match from the start' }
  // "^/a$" matches that path. "^/a/" and "^/a/.*" match the paths below it. "^/a(/.*)?$" matches
  // both.
  const [, literal = '', below, end] = /^\^(.*?)(\/\.\*|\(\/\.\*\)\?)?(\$)?$/.exec(pattern) ?? []
  // In a regular expression a dot matches any character; the rule matches a dot only.
  const path = literal.replaceAll(/\\([./_-])/g, '$1')
  if (!/^(?:\/[\w.~-]*)+$|^$/.test(path) || path.includes('//'))
    return { why: 'rules use paths, not regular expressions' }
  if (below === undefined && end !== undefined && path === '') return { why: 'it matches no path' }
  if (below === undefined && end !== undefined) return { paths: [path] }
  const itself = path.replace(/\/$/, '')
  if (itself === '' || below === '(/.*)?') return { paths: [`${itself}/*`] }
  // "/a/*" would also match "/a".
  if (below !== undefined || path !== itself) return { paths: [`${itself}/`, `${itself}/*/*`] }
  const difference = `${pattern} also matched paths with a longer name, such as ${path}-other; the rule matches ${path} and the paths below it`
  return { paths: [`${path}/*`], difference }
}
