import { matchesPath, parsePathPattern } from '../core/path-pattern.ts'
import { withoutTranslation } from './oauth2-proxy-without.ts'
import { translateRoute } from './routes.ts'
import type { Translation } from './translation.ts'

/** A rule as written in the file. */
export interface Rule {
  readonly path: string
  readonly methods?: readonly string[]
  readonly access?: 'public'
  readonly unauthenticated?: '401'
  readonly require?: readonly Requirement[]
}

type Requirement =
  | {
      readonly claim: string
      readonly any_of?: readonly string[]
      readonly none_of?: readonly string[]
      readonly matches?: string
    }
  | { readonly email_domains: readonly string[]; readonly verified?: false }
  | { readonly any: readonly Requirement[] }

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
    { path: '/*', require: [forNobody, ...new Set(required)] },
  ]
}

function rulesFor(route: string, option: string, rule: Omit<Rule, 'path'>, from: Translation): Rule[] {
  const translated = translateRoute(route)
  if ('why' in translated) {
    from.note(option, 'lost', `${route}: ${translated.why}; these paths need a sign-in like all others`)
    return []
  }
  const { paths, difference, ...where } = translated
  if (difference !== undefined) from.note(option, 'changed', difference)
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

const forNobody: Requirement = { claim: 'sub', any_of: ['nobody-until-this-is-decided'] }

function requirementsOf(from: Translation): readonly Requirement[] {
  const open: string[] = withoutRule.filter((option) => from.text(option) !== undefined)
  const domains = from.list('email_domains')
  const isForAll = domains.includes('*')
  const isByHostedDomain = (from.text('provider') ?? 'google') === 'google' && domains.length > 0
  // oauth2-proxy allows a person with an address in the file or with one of the domains.
  const isByFileToo = open.includes('authenticated_emails_file')
  if (isForAll && isByFileToo) open.splice(open.indexOf('authenticated_emails_file'), 1)
  const isByAddress = !isForAll && !isByHostedDomain && domains.length > 0 && !isByFileToo
  if (!isForAll && !isByAddress && (!isByHostedDomain || isByFileToo)) open.unshift('email_domains')

  const requirements = groupRequirements(from)
  if (isByAddress) requirements.push(domainRequirement(domains, from))
  if (!isForAll && isByHostedDomain && !isByFileToo) requirements.push({ claim: 'hd', any_of: domains })
  if (!from.isOn('insecure_oidc_allow_unverified_email'))
    requirements.push({ claim: 'email_verified', none_of: ['false'] })
  for (const option of new Set(open)) {
    const values = from.text(option) === undefined ? '' : ` (${from.list(option).join(', ')})`
    from.note(
      option,
      'decide',
      `rules cannot express this restriction${values}, so the file denies all people; in the rules, replace the requirement on sub with a claim of the allowed people`,
    )
  }
  const unknown = from.rest.filter((option) => !withoutTranslation.has(option) && !from.isOff(option))
  for (const option of unknown)
    from.note(
      option,
      'decide',
      'this option is unknown and may have restricted access, so the file denies all people; find out what it did, then replace the requirement on sub in the rules, or remove it',
    )
  return open.length + unknown.length === 0 ? requirements : [forNobody, ...requirements]
}

/** For oauth2-proxy, a domain that begins with a dot is each domain below it. */
function domainRequirement(domains: readonly string[], from: Translation): Requirement {
  const exact = domains.filter((domain) => !domain.startsWith('.'))
  const parents = domains.filter((domain) => domain.startsWith('.'))
  const isUnverified = from.isOn('insecure_oidc_allow_unverified_email')
  if (!isUnverified && exact.length > 0)
    from.note(
      'email_domains',
      'changed',
      'the provider must say that it has verified the address (email_verified: true); oauth2-proxy also admits people when it says nothing',
    )
  return anyOf([
    ...(exact.length > 0 ? [{ email_domains: exact, ...(isUnverified && { verified: false as const }) }] : []),
    ...parents.map((parent) => ({ claim: 'email', matches: `[^@]+@[^@]+${parent.replaceAll('.', '\\.')}` })),
  ])
}

function anyOf(requirements: readonly Requirement[]): Requirement {
  const [only] = requirements
  return requirements.length === 1 && only !== undefined ? only : { any: requirements }
}

/** Requirements for groups and roles: oauth2-proxy allows a person with one of them. */
function groupRequirements(from: Translation): Requirement[] {
  const groups = [...from.list('allowed_groups'), ...from.list('keycloak_groups')]
  const roles = from.list('allowed_roles')
  const claim = claimPath(from.text('oidc_groups_claim') ?? 'groups')
  if (groups.length + roles.length === 0) return []
  from.note(
    groups.length > 0 ? 'allowed_groups' : 'allowed_roles',
    'changed',
    'the gateway reads claims from UserInfo; let the provider send them there, or name them in provider.id_token_claims',
  )
  return [anyOf([...(groups.length > 0 ? [{ claim, any_of: groups }] : []), ...roleRequirements(roles)])]
}

/** Roles of Keycloak: `role` is a role of the realm, `client:role` a role of a client. */
function roleRequirements(roles: readonly string[]): Requirement[] {
  const named = roles.map((role) => {
    const [, client = '', name = role] = /^([^:]*):(.*)$/s.exec(role) ?? []
    return { client, name }
  })
  return [...new Set(named.map(({ client }) => client))].map((client) => ({
    claim:
      client === ''
        ? 'realm_access.roles'
        : `resource_access.${/^[\w-]+$/.test(client) ? client : JSON.stringify(client)}.roles`,
    any_of: named.filter((role) => role.client === client).map(({ name }) => name),
  }))
}

/** The path of a claim; a name with special characters is quoted. */
export function claimPath(name: string): string {
  return /^[\w-]+(?:\.[\w-]+)*$/.test(name) ? name : JSON.stringify(name)
}
