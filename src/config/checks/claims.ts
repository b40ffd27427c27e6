import { authenticationClaims, type ClaimPath } from '../../core/claims.ts'
import { claimsIn, claimsNeeded, claimsOfRule } from '../claims-in-use.ts'
import { didYouMean } from '../document/did-you-mean.ts'
import { areValid, type Setting } from '../document/report.ts'
import type { GatewayConfig } from '../model/gateway.ts'
import type { HeaderConfig } from '../model/header.ts'
import type { ProviderConfig } from '../model/provider.ts'
import { conditionsOf, type RequirementConfig } from '../model/requirement.ts'
import type { UpstreamConfig } from '../model/upstream.ts'
import { fixedClaims, providerKind } from '../provider-kind.ts'
import type { At, Check } from './check.ts'

/** The checks of the names of claims. */
export const claimChecks: readonly Check[] = [
  misspeltClaims,
  entriesOfLists,
  absentClaims,
  scopeForGroups,
  groupsOfEntra,
  addressEndings,
  unreadSources,
]

/** The claims that are often in use: OpenID Connect Core §5.1, and those of many providers. */
const usualClaims: readonly string[] = [
  ...[
    'sub',
    'name',
    'given_name',
    'family_name',
    'middle_name',
    'nickname',
    'preferred_username',
    'profile',
    'picture',
  ],
  ...['website', 'email', 'email_verified', 'gender', 'birthdate', 'zoneinfo', 'locale', 'phone_number'],
  ...['phone_number_verified', 'address', 'updated_at', 'auth_time', 'groups', 'roles', 'scope', 'entitlements'],
  ...[
    'permissions',
    'realm_access',
    'resource_access',
    'department',
    'organization',
    'tenant',
    'username',
    'certificate',
  ],
]

/** Claims of some providers whose names resemble others. */
const otherClaims: readonly string[] = [
  'nick_name',
  'user_name',
  'unique_name',
  'organisation',
  'first_name',
  'last_name',
]

/** Shorter names have too many neighbours. */
const minLength = 5

/** A claim that an upstream reads, and where. `isMap`: it may be a map there. */
type Use = readonly [path: ClaimPath, at: Setting, isMap?: boolean | undefined]

/** The claims that headers, rules and other settings of an upstream read. */
function usesOf({ name, headers, rules, signedIdentity, authorizeWith }: UpstreamConfig, at: At): readonly Use[] {
  const own: At = (...names) => at('upstreams', name, ...names)
  return [
    ...headers.flatMap((header) =>
      claimsIn(header).map((path): Use => [path, own('headers', header.name), header.json]),
    ),
    ...rules.flatMap((rule, index) => [
      ...claimsOfRule(rule).map((path): Use => [path, own('rules', index, rule.respond ? 'respond' : 'require')]),
      ...(rule.headers ?? []).flatMap((header) =>
        headers.includes(header)
          ? []
          : claimsIn(header).map((path): Use => [path, own('rules', index, 'headers', header.name), header.json]),
      ),
    ]),
    ...(signedIdentity?.claims ?? []).map(({ path }): Use => [path, own('signed_identity', 'claims'), true]),
    ...(authorizeWith?.claims ?? []).map(({ path }): Use => [path, own('authorize_with', 'claims'), true]),
  ]
}

/** A claim whose name resembles a usual one, or one that the file names elsewhere. */
function misspeltClaims({ upstreams, providers }: GatewayConfig, at: At): void {
  const named = namedClaims(providers)
  const reported = new Set<string>()
  for (const [path, useAt, isMap = false] of upstreams.flatMap((upstream) => usesOf(upstream, at))) {
    const key = `${useAt.pointer} ${path[0]}`
    if (!useAt.isValid || reported.has(key)) continue
    reported.add(key)
    const meant = meantClaim(path[0], named)
    const member = meantMember(path, isMap)
    if (meant !== undefined)
      useAt.warning(
        `reads the claim ${path.join('.')}, which looks like a typing mistake`,
        `did you mean "${meantMember([meant, ...path.slice(1)], isMap) ?? [meant, ...path.slice(1)].join('.')}"? If the provider has this claim, name it in id_token_claims or claims of the provider`,
      )
    else if (member !== undefined)
      useAt.warning(
        `reads ${path.join('.')}, which is ${path.length < member.split('.').length ? 'a map, and a text or a list is needed here' : 'no member of this claim of Keycloak'}`,
        `write ${member}`,
      )
    else if (/^urn:zitadel:iam:org:project:.*roles$/.test(String(path[0])) && path.length < 3 && !isMap)
      useAt.warning(
        `reads ${String(path[0])}, which is a map of organizations, and a text or a list is needed here`,
        'let an Action of Zitadel add a list as the claim groups (docs/providers/zitadel.md), and write groups',
      )
  }
}

/** The claims that the providers of a file name. */
function namedClaims(providers: readonly ProviderConfig[]): readonly string[] {
  return providers.flatMap(({ claims, renamedClaims, idTokenClaims, claimsFrom }) => [
    ...Object.entries({ ...claims, ...renamedClaims }).flat(),
    ...[...idTokenClaims, ...claimsFrom.map(({ name }) => name)],
  ])
}

/** Claims that are lists without an order. */
const lists: ReadonlySet<unknown> = new Set(['groups', 'roles', 'permissions', 'entitlements'])

/** A rule or header that gets one group, which may be another one at the next sign-in. */
function entriesOfLists({ upstreams }: GatewayConfig, at: At): void {
  const reported = new Set<string>()
  for (const [path, useAt] of upstreams.flatMap((upstream) => usesOf(upstream, at))) {
    const [list, index] = path.slice(-2)
    // Names such as URLs are those of one provider.
    if (path.some((name) => typeof name === 'string' && !/^[\w-]+$/.test(name))) continue
    if (typeof index !== 'number' || !lists.has(list) || !useAt.isValid || reported.has(useAt.pointer)) continue
    reported.add(useAt.pointer)
    useAt.warning(
      `reads one entry of the list ${String(list)}, and the provider may change their order`,
      `write ${path.slice(0, -1).join('.')}, without [${index}], which reads all entries`,
    )
  }
}

/** The claim that was probably meant. `named`: those that the file names elsewhere. */
function meantClaim(name: unknown, named: readonly string[]): string | undefined {
  const singular = (text: string) => text.replace(/s$/, '')
  // Names such as URLs are those of one provider.
  if (typeof name !== 'string' || !/^[\w-]+$/.test(name)) return undefined
  if (usualClaims.includes(name) || otherClaims.includes(name) || named.includes(name)) return undefined
  const meant = didYouMean(name, [...usualClaims, ...named])
  if (meant === undefined || meant === name.toLowerCase()) return meant
  // Providers have both `role` and `roles`, and `mail` besides `email`.
  const isOther = singular(meant) === singular(name) || (name.length < minLength && name[0] !== meant[0])
  return isOther || meant.length < minLength ? undefined : meant
}

/** The member that was probably meant in claims of Keycloak, which are maps. */
function meantMember([name, member, ...rest]: ClaimPath, isMap: boolean): string | undefined {
  if (name === 'realm_access' && member !== 'roles' && (member !== undefined || !isMap)) return 'realm_access.roles'
  if (name !== 'resource_access' || rest[0] === 'roles' || (rest.length === 0 && isMap)) return undefined
  return `resource_access.${member ?? 'CLIENT_ID'}.roles`
}

/** The claims of the ID Token that the gateway keeps with any provider, and those it makes. */
const claimsOfGateway: ReadonlySet<unknown> = new Set(['iss', 'sid', ...authenticationClaims, 'certificate'])

/** Whether a provider takes a claim from somewhere else than UserInfo. */
function isFromElsewhere({ idTokenClaims, claimsFrom }: ProviderConfig, claim: unknown): boolean {
  return idTokenClaims.some((name) => name === claim) || claimsFrom.some(({ name }) => name === claim)
}

/** What an upstream reads of people who sign in, without what has an alternative. */
function ofPeople(upstream: UpstreamConfig): UpstreamConfig {
  const surely = (list: readonly HeaderConfig[]) => list.filter(({ source }) => source.kind !== 'first_of')
  const rules = upstream.rules.map((rule) => ({
    ...rule,
    headers: surely(rule.headers ?? []),
    ...((rule.accessTokens ?? rule.serviceAccounts ?? rule.clientCertificates) !== undefined && { require: [] }),
  }))
  return { ...upstream, headers: surely(upstream.headers), rules }
}

/** A claim that the UserInfo of a provider does not have. */
function absentClaims({ upstreams, providers }: GatewayConfig, at: At): void {
  const reported = new Set<string>()
  for (const upstream of upstreams) {
    const own = providers.filter(({ name }) => upstream.providers.includes(name))
    const [first] = own
    const fixed = first && fixedClaims(first.issuer)
    if (first === undefined || fixed === undefined || !own.every(({ issuer }) => fixedClaims(issuer) === fixed))
      continue
    const settings = own.flatMap(({ setting }) =>
      ['id_token_claims', 'claims_from', 'claims'].map((name) => at(...setting.split('.'), name)),
    )
    if (!areValid(...settings)) continue
    const named = namedClaims(own)
    for (const [[name = ''], useAt] of usesOf(ofPeople(upstream), at)) {
      const isRead = own.some((provider) => {
        const claim = provider.renamedClaims[name] ?? name
        const isSent = claimsOfGateway.has(claim) || fixed.claims.has(String(claim))
        // A scope of this name has a diagnostic of its own, and so has a typing mistake.
        const isReported =
          (claim === 'groups' && provider.scopes?.includes(claim) === true) || meantClaim(name, named) !== undefined
        return isSent || isReported || isFromElsewhere(provider, claim)
      })
      if (isRead || reported.has(String(name)) || !useAt.isSet || !useAt.isValid) continue
      reported.add(String(name))
      useAt.warning(`reads ${name}, which ${fixed.why}`, fixed.todo(String(name), first.setting, first.idTokenClaims))
    }
  }
}

/** Providers that send groups with the scope of this name only. */
const scopesForGroups = [
  ['Okta', /^https:\/\/[\w-]+\.okta(?:preview|-emea)?\.com$/, ', and a groups claim filter in the application at Okta'],
  ['Dex', /\/dex$/, ' to them'],
] as const

function scopeForGroups({ upstreams, providers }: GatewayConfig, at: At): void {
  for (const provider of providers) {
    const { name, setting, issuer, scopes } = provider
    const scopesAt = at(...setting.split('.'), 'scopes')
    const [product, , todo] = scopesForGroups.find(([, pattern]) => pattern.test(issuer)) ?? []
    if (scopes === undefined || scopes.includes('groups') || isFromElsewhere(provider, 'groups')) continue
    if (product === undefined || !scopesAt.isValid) continue
    const own = upstreams.filter((upstream) => upstream.providers.includes(name))
    if (own.flatMap(claimsNeeded).some(([claim]) => claim === 'groups'))
      scopesAt.warning(
        `lack groups, which rules or headers read: ${product} sends them only with the scope of this name`,
        `add groups${todo}`,
      )
  }
}

/** Names of groups in rules, where the ID Token of Entra ID has their object IDs. */
function groupsOfEntra({ upstreams, providers }: GatewayConfig, at: At): void {
  for (const { name, providers: own, rules } of upstreams) {
    const used = providers.filter((each) => own.includes(each.name))
    const isEntra = (each: ProviderConfig) =>
      providerKind(each.issuer) === 'entra' && each.idTokenClaims.includes('groups')
    if (used.length === 0 || !used.every(isEntra)) continue
    for (const [index, { require }] of rules.entries()) {
      const requireAt = at('upstreams', name, 'rules', index, 'require')
      const values = require
        .flatMap(conditionsOf)
        .filter((condition) => condition.kind === 'claim')
        .flatMap(({ claim, equals = [], anyOf = [], allOf = [], noneOf = [] }) =>
          claim.join('.') === 'groups' ? [equals, anyOf, allOf, noneOf].flat() : [],
        )
      // Groups of a domain on premises may come as DOMAIN\\name.
      const named = values.find((value) => !/^[\da-f]{8}(?:-[\da-f]{4,12}){4}$|\\/i.test(value))
      if (named !== undefined && requireAt.isValid)
        requireAt.warning(
          `compares groups with "${named}", and Entra ID sends the object IDs of groups, unless the application there is set to send names`,
          'write the object ID of the group, or require roles, which have names (docs/providers/entra-id.md)',
        )
    }
  }
}

/** A rule that compares the end of `email`, which some providers let people choose. */
function addressEndings({ upstreams, providers }: GatewayConfig, at: At): void {
  for (const { name, providers: own, rules } of upstreams) {
    // Entra ID does not say whether an address is verified.
    if (
      providers.some(
        (each) => own.includes(each.name) && fixedClaims(each.issuer)?.claims.has('email_verified') === false,
      )
    )
      continue
    for (const [index, { require }] of rules.entries()) {
      const requireAt = at('upstreams', name, 'rules', index, 'require')
      const domains = requireAt.isValid ? require.flatMap(domainsOf) : []
      if (domains.length > 0)
        requireAt.warning(
          'compares the end of email, which the provider may not have verified',
          `write email_domains: [${domains.join(', ')}], which reads email_verified too and compares the whole domain, in place of claim`,
        )
    }
  }
}

/** The domains that a requirement for the claim `email` is about. Not what excludes people. */
function domainsOf(requirement: RequirementConfig): readonly string[] {
  if (requirement.kind === 'all') return requirement.all.flatMap(domainsOf)
  if (requirement.kind === 'any') return requirement.any.flatMap(domainsOf)
  if (requirement.kind !== 'claim' || requirement.claim.join('.') !== 'email') return []
  const { equals, anyOf = [], contains, endsWith, matches } = requirement
  return [
    equals,
    ...anyOf,
    contains,
    endsWith,
    matches?.text.replace(/^.*@/, '@').replaceAll(/\\(?=\.)|\$$/g, ''),
  ].flatMap((text = '') => /^@?([a-z\d-]+(?:\.[a-z\d-]+)+)$/i.exec(text)?.[1] ?? [])
}

/** An API that is asked for a claim at each sign-in, which nothing reads. */
function unreadSources({ upstreams, providers, admin }: GatewayConfig, at: At): void {
  if (!areValid(at('upstreams'), at('admin'))) return
  for (const { name: provider, setting, claimsFrom } of providers) {
    const own = upstreams.filter((upstream) => upstream.providers.includes(provider))
    const sourcesAt = at(...setting.split('.'), 'claims_from')
    const read = new Set([
      ...own.flatMap((upstream) => usesOf(upstream, at)).map(([[name]]) => name),
      ...claimsFrom.flatMap(({ sources }) => sources.flatMap(({ url }) => url)).map((part) => part[0]),
      admin?.page?.showClaim?.[0],
    ])
    for (const { name } of claimsFrom)
      if (!read.has(name) && sourcesAt.isValid)
        sourcesAt.warning(
          `asks for ${name}, which no header and no rule reads`,
          `read it, as in headers: { X-${name.replace(/^./, (letter) => letter.toUpperCase())}: ${name} }, or remove its entries`,
        )
  }
}
