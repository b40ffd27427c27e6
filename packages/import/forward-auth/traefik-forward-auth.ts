import type { Options } from '../common/flat-toml.ts'
import { withoutIdTokens, withoutTranslationOf } from '../common/notes.ts'
import type { Dialect } from '../common/option-sources.ts'
import { type Outcome, outcomesFor, type TestRequest } from '../common/outcomes.ts'
import { folderPatterns, slashNote } from '../common/path-regions.ts'
import type { Translated } from '../common/translated-file.ts'
import { type Translation, translationOf } from '../common/translation.ts'
import { anyOf, type Requirement, type Rule } from '../common/written-config.ts'
import { domainRequirement, forwardAuthFile, type ForwardAuthSettings, peopleAt } from './forward-auth.ts'

const lists = new Set(['domain', 'whitelist', 'cookie_domain'])
/** Other options that are read. Those below `providers` and `rule` are known by their prefix. */
const read =
  `auth_host cookie_domain cookie_domains default_action default_provider domain lifetime match_whitelist_or_domain
  url_path whitelist port client_id prompt`.split(/\s+/)
const withoutTranslation = withoutTranslationOf({
  unneeded: {
    'secret cookie_secret csrf_cookie_name cookie_name log_level log_format insecure_cookie cookie_secure config':
      'the gateway has settings of its own for this; people sign in once more',
    'client_secret providers_google_client_secret providers_oidc_client_secret': 'it is replaced by CLIENT_SECRET',
  },
  lost: { 'logout_redirect providers_oidc_resource': 'it is not translated' },
  changed: {
    'providers_generic_oauth_auth_url providers_generic_oauth_token_url providers_generic_oauth_user_url providers_generic_oauth_client_id providers_generic_oauth_client_secret providers_generic_oauth_scope providers_generic_oauth_token_style providers_generic_oauth_resource':
      'write it in provider, with kind: oauth2 (docs/providers/oauth2.md)',
  },
})
const known = new Set([...withoutTranslation.keys(), ...read])

function named(name: string): string {
  return name.toLowerCase().replaceAll(/[.-]/g, '_')
}

/** Where its options are: see `readOptions`. */
export const traefikDialect: Dialect = {
  program: 'traefik-forward-auth',
  image: /traefik-forward-auth/i,
  // Its variables have no prefix, so only known names are its own.
  optionOf: (variable) => {
    const name = named(variable)
    return known.has(name) || name.startsWith('providers_') ? name : undefined
  },
  flagOf: (flag) => ({ option: named(flag), isList: lists.has(named(flag)) }),
  readFile: readIni,
  readDocument: () => {
    throw new SyntaxError('it is YAML, but neither a Compose file nor a Kubernetes manifest')
  },
}

/** Lines `name = value`, as go-flags reads them. An option of a list may be repeated. */
function readIni(text: string): Options {
  const options = new Map<string, string | readonly string[]>()
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (/^\s*(?:[;#]|\[.*\]\s*$|$)/.test(line)) continue
    const [, name, value = ''] = /^\s*([\w.-]+)\s*(?:=|\s)\s*(.*?)\s*$/.exec(line) ?? []
    if (name === undefined) throw new SyntaxError(`line ${index + 1} is invalid: write NAME = VALUE`)
    const option = named(name)
    const bare = /^"(.*)"$/.exec(value)?.[1] ?? value
    const earlier = options.get(option)
    options.set(option, lists.has(option) && earlier !== undefined ? [...[earlier].flat(), bare] : bare)
  }
  return options
}

interface People {
  readonly whitelist: readonly string[]
  readonly domains: readonly string[]
}

/** A rule decides about the requests that it matches; `isOpen` and `whole` about all others. */
interface Policy {
  readonly rules: readonly NamedRule[]
  /** Also for rules without people of their own. */
  readonly whole: People
  readonly isOpen: boolean
  /** Whether a domain also counts beside a whitelist. */
  readonly isEither: boolean
}

interface NamedRule extends People {
  readonly name: string
  readonly isOpen: boolean
  /** `undefined`: import does not know the matcher. */
  readonly matcher: Matcher | undefined
}

interface Matcher {
  readonly hosts: readonly string[]
  readonly methods: readonly string[]
  readonly paths: readonly string[]
  readonly prefixes: readonly string[]
}

/**
 * Translates the options of traefik-forward-auth (thomseddon) to an upstream with `forward_auth`.
 */
export function translateTraefik(options: Options, url: string | undefined): Translated {
  const from = translationOf(options)
  const provider = from.text('default_provider') ?? 'google'
  const isGoogle = provider === 'google'
  const names = [...from.names].flatMap(
    (option) => /^rule_(.+)_(?:action|rule|provider|whitelist|domains)$/.exec(option)?.[1] ?? [],
  )
  const policy: Policy = {
    rules: [...new Set(names)].map((name) => readRule(name, provider, from)),
    whole: { whitelist: from.list('whitelist'), domains: from.list('domain') },
    isOpen: from.text('default_action') === 'allow',
    isEither: from.isOn('match_whitelist_or_domain'),
  }
  if (!isGoogle && provider !== 'oidc') from.deny('default_provider', withoutIdTokens(provider))
  const callback = from.text('url_path') ?? '/_oauth'
  const host = from.text('auth_host')
  const [cookieDomain, ...more] = [...from.list('cookie_domain'), ...from.list('cookie_domains')]
  if (more.length > 0) from.lost('cookie_domain', `one session for several domains is not possible: ${more.join(', ')}`)
  const prompt = from.text('providers_google_prompt') ?? from.text('prompt')
  const hosts = [...new Set(policy.rules.flatMap(({ matcher }) => matcher?.hosts ?? []))]
  const settings: ForwardAuthSettings = {
    program: 'traefik-forward-auth',
    externalUrl: url ?? (host === undefined ? undefined : `https://${host}`),
    callback,
    listenPort: from.text('port') ?? '4181',
    issuer: isGoogle ? 'https://accounts.google.com' : from.text('providers_oidc_issuer_url'),
    clientId: isGoogle
      ? (from.text('providers_google_client_id') ?? from.text('client_id'))
      : from.text('providers_oidc_client_id'),
    scopes: ['openid', 'profile', 'email'],
    authorizationParams: prompt === undefined ? undefined : { prompt },
    absoluteMs: Number(from.text('lifetime') ?? 43_200) * 1000,
    cookieDomain,
    headers: { 'X-Forwarded-User': 'email' },
    hosts,
    rules: (at) => rulesFor(at, policy, from),
    outcomes: (at) => outcomesAt(at, policy, hosts.length > 0),
  }
  for (const option of from.rest) from.untranslated(option, withoutTranslation.get(option))
  return forwardAuthFile(settings, from)
}

function readRule(name: string, provider: string, from: Translation): NamedRule {
  const text = from.text(`rule_${name}_rule`) ?? ''
  const isOpen = from.text(`rule_${name}_action`) === 'allow'
  const own = from.text(`rule_${name}_provider`)
  const matcher = readMatcher(text)
  if (own !== undefined && own !== provider)
    from.deny(
      `rule.${name}.provider`,
      `people sign in at ${own} there; several providers are below providers (docs/several-providers.md)`,
    )
  if (matcher === undefined && isOpen)
    from.lost(
      `rule.${name}`,
      `${text}: rules of the gateway have hosts, methods and paths only; these requests need what the others need`,
    )
  else if (matcher === undefined)
    from.deny(
      `rule.${name}`,
      `${text}: rules of the gateway have hosts, methods and paths only, and it may restrict access`,
    )
  return {
    name,
    isOpen,
    matcher,
    whitelist: from.list(`rule_${name}_whitelist`),
    domains: from.list(`rule_${name}_domains`),
  }
}

/** Matchers of Traefik that `&&` joins. */
function readMatcher(text: string): Matcher | undefined {
  const found = Object.create(null) as Record<string, readonly string[]>
  for (const part of text.split('&&')) {
    const [, kind = '', list = ''] = /^\s*(Host|Method|PathPrefix|Path)\(([^()]*)\)\s*$/.exec(part) ?? []
    const values = [...list.matchAll(/[`'"]([^`'"]*)[`'"]/g)].map(([, value = '']) => value)
    if (kind === '' || values.length === 0 || found[kind] !== undefined) return undefined
    found[kind] = values
  }
  const { Host: hosts = [], Method: methods = [], PathPrefix: prefixes = [], Path: paths = [] } = found
  const isPlain = [...prefixes, ...paths].every((path) => /^(?:\/[\w.~-]+)*\/?$/.test(path) && path !== '')
  return isPlain ? { hosts, methods: methods.map((method) => method.toUpperCase()), prefixes, paths } : undefined
}

function patternsOf({ paths, prefixes }: Matcher): readonly string[] {
  const below = prefixes.flatMap((prefix) => (prefix.endsWith('/') ? folderPatterns(prefix) : [`${prefix}/*`]))
  return paths.length + prefixes.length === 0 ? ['/*'] : [...paths, ...below]
}

function rulesFor(host: string | undefined, policy: Policy, from: Translation): readonly Rule[] {
  const { rules, whole, isOpen } = policy
  const requirements = peopleRequirements(whole, policy, from)
  const require = requirements.length > 0 ? { require: requirements } : {}
  const own = rules.filter(
    ({ matcher }) => matcher !== undefined && (matcher.hosts.length === 0 || matcher.hosts.includes(host ?? '')),
  )
  const peopleOfRule = (rule: NamedRule) => (hasPeople(rule) ? peopleRequirements(rule, policy, from) : requirements)
  // A rule for a page with a slash at its end also matches it without, where the default decides.
  const requiring = (path: string, people: readonly Requirement[]) => {
    const all = /.\/$/.test(path) ? [...new Set([...people, ...requirements])] : people
    if (all.length > people.length) from.changed(path, slashNote)
    return all.length > 0 ? { require: all } : {}
  }
  const special = own.flatMap((rule): readonly (Rule & { readonly rank: number })[] => {
    const { matcher, name } = rule
    if (matcher === undefined) return []
    const people = peopleOfRule(rule)
    for (const prefix of matcher.prefixes.filter((each) => !each.endsWith('/') && !rule.isOpen)) {
      // Here, a wider rule or the default decides about longer names.
      const wider = own.filter(({ matcher: other }) =>
        other?.prefixes.some((each) => prefix !== each && isBelow(prefix, each)),
      )
      const isPublic = isOpen || wider.some((other) => other.isOpen)
      const isSame = [requirements, ...wider.map(peopleOfRule)].every(
        (each) => JSON.stringify(each) === JSON.stringify(people),
      )
      if (isPublic || !isSame)
        from.deny(
          `rule.${name}`,
          `it also matches longer names, such as ${prefix}-other, which ${isPublic ? 'are public' : 'other people may use'} here; write PathPrefix with a slash at its end`,
        )
    }
    return patternsOf(matcher).map((path) => ({
      path,
      rank: -path.length,
      ...(matcher.methods.length > 0 && { methods: matcher.methods }),
      ...(rule.isOpen ? { access: 'public' as const } : requiring(path, people)),
    }))
  })
  const ordered = special.toSorted((one, other) => one.rank - other.rank).map(({ rank: _, ...rule }) => rule)
  return [...ordered, isOpen ? { path: '/*', access: 'public' } : { path: '/*', ...require }]
}

/** Whether the paths that begin with a prefix are below another one. */
function isBelow(prefix: string, other: string): boolean {
  return prefix.startsWith(other.endsWith('/') ? other : `${other}/`)
}

function hasPeople({ whitelist, domains }: People): boolean {
  return whitelist.length + domains.length > 0
}

/** The whitelist counts alone, unless match-whitelist-or-domain is on. */
function peopleRequirements(
  { whitelist, domains }: People,
  { isEither }: Policy,
  from: Translation,
): readonly Requirement[] {
  const byAddress: readonly Requirement[] = whitelist.length > 0 ? [{ claim: 'email', any_of: whitelist }] : []
  const byDomain =
    domains.length > 0 && (isEither || whitelist.length === 0) ? [domainRequirement(domains, false, from)] : []
  const all = [...byAddress, ...byDomain]
  return all.length === 0 ? [] : [anyOf(all)]
}

function outcomesAt(host: string, policy: Policy, hasHosts: boolean): Outcome[] {
  const { rules, whole } = policy
  const paths = rules.flatMap(({ matcher }) => [
    ...(matcher?.paths ?? []),
    ...(matcher?.prefixes ?? []).flatMap((prefix) => [prefix, `${prefix.replace(/\/$/, '')}/x`]),
  ])
  const people = [whole, ...rules]
  const addresses = people.flatMap(({ whitelist, domains }) => [
    ...whitelist,
    ...domains.map((domain) => `person@${domain}`),
  ])
  return outcomesFor(
    {
      paths: ['/', ...paths],
      methods: rules.flatMap(({ matcher }) => matcher?.methods ?? []),
      people: peopleAt(addresses),
      ...(hasHosts && { host }),
    },
    (request) => admits({ ...request, host }, policy),
  )
}

/** What traefik-forward-auth decides; `undefined`: several rules match, or one is unknown. */
function admits(request: TestRequest, { rules, whole, isOpen, isEither }: Policy): boolean | undefined {
  const matches = ({ matcher }: NamedRule) => {
    if (matcher === undefined) return false
    const { hosts, methods, paths, prefixes } = matcher
    const isPath =
      paths.length + prefixes.length === 0 ||
      paths.includes(request.path) ||
      prefixes.some((prefix) => request.path.startsWith(prefix))
    return (
      isPath &&
      (hosts.length === 0 || hosts.includes(request.host ?? '')) &&
      (methods.length === 0 || methods.includes(request.method))
    )
  }
  const [rule, ...more] = rules.filter(matches)
  if (more.length > 0) return undefined
  // A rule with an unknown matcher may admit what the others deny; one that restricts denies all.
  const denied = rules.some(({ matcher }) => matcher === undefined) ? undefined : false
  if (rule?.isOpen ?? isOpen) return true
  if (request.as === undefined) return denied
  const { whitelist, domains } = rule !== undefined && hasPeople(rule) ? rule : whole
  const email = String(request.as['email'] ?? '')
  if (whitelist.length + domains.length === 0 || whitelist.includes(email)) return true
  const isByDomain = whitelist.length === 0 || isEither
  return (isByDomain && domains.includes(email.split('@')[1] ?? '')) || denied
}
