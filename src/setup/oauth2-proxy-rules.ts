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

interface Requirement {
  readonly claim: string
  readonly any_of?: readonly string[]
  readonly none_of?: readonly string[]
}

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
  return [...[...own, ...forAnyMethod].map((rule) => ({ ...rule, path })), { path: '/*', require: [forNobody] }]
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
  if (!isForAll && (!isByHostedDomain || isByFileToo)) open.unshift('email_domains')

  const requirements = groupRequirements(from, open)
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

const groupOptions = ['allowed_groups', 'keycloak_groups', 'allowed_roles'] as const

/** Requirements for groups and roles. Adds options that rules cannot express to `open`. */
function groupRequirements(from: Translation, open: string[]): Requirement[] {
  const groups = [...from.list('allowed_groups'), ...from.list('keycloak_groups')]
  const roles = from.list('allowed_roles')
  const claim = claimPath(from.text('oidc_groups_claim') ?? 'groups')
  if (groups.length + roles.length === 0) return []
  const byRole = roles.length > 0 ? roleRequirement(roles) : undefined
  // oauth2-proxy allows a person with one of the groups or one of the roles.
  if (roles.length > 0 && (groups.length > 0 || byRole === undefined)) {
    open.push(...groupOptions.filter((option) => from.text(option) !== undefined))
    return []
  }
  from.note(
    groups.length > 0 ? 'allowed_groups' : 'allowed_roles',
    'changed',
    'the gateway reads claims from UserInfo; let the provider send them there, or name them in provider.id_token_claims',
  )
  return [byRole ?? { claim, any_of: groups }]
}

/** Roles of Keycloak: `role` is a role of the realm, `client:role` a role of a client. */
function roleRequirement(roles: readonly string[]): Requirement | undefined {
  const clients = new Set(roles.map((role) => (role.includes(':') ? role.slice(0, role.indexOf(':')) : '')))
  const [client = '', ...others] = clients
  if (others.length > 0) return undefined
  const any_of = roles.map((role) => role.slice(role.indexOf(':') + 1))
  const claim =
    client === ''
      ? 'realm_access.roles'
      : `resource_access.${/^[\w-]+$/.test(client) ? client : JSON.stringify(client)}.roles`
  return { claim, any_of }
}

/** The path of a claim; a name with special characters is quoted. */
export function claimPath(name: string): string {
  return /^[\w-]+(?:\.[\w-]+)*$/.test(name) ? name : JSON.stringify(name)
}
