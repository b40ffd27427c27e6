import { parseClaimPath } from '../../../src/entries/import.ts'
import type { Notes } from '../common/notes.ts'
import type { TestRequest } from '../common/outcomes.ts'
import { covers, folderPatterns, regionsOf, slashNote } from '../common/path-regions.ts'
import { denial, denyingRule, type Requirement, type Rule } from '../common/written-config.ts'
import { responseDirectives, restrictsNothing } from './apache-directives.ts'
import { type Directive, shownSection } from './apache-file.ts'
import {
  type Authz,
  decide,
  leavesOf,
  methodOf,
  needsPerson,
  readRequire,
  type RemoteUser,
  requirementOf,
} from './apache-requirements.ts'
import { argsOf, type Site } from './apache-site.ts'

/** A `Require` that `<Limit>` or `<LimitExcept>` may restrict to some methods. */
interface Entry {
  readonly authz: Authz
  readonly limit?: { readonly methods: readonly string[]; readonly isExcept: boolean }
}

/** A section that applies to paths of requests. */
export interface Section {
  readonly shown: string
  readonly isProxy: boolean
  /** `undefined`: rules cannot express its paths. */
  readonly patterns: readonly string[] | undefined
  /** Whether it has paths that the patterns do not match. */
  readonly isWider: boolean
  readonly matches: (path: string) => boolean
  readonly authType: string | undefined
  /** Absent: off, if the section has a Require. */
  readonly merging: 'off' | 'and' | 'or' | undefined
  readonly entries: readonly Entry[]
  /** The arguments of `OIDCUnAuthAction`. */
  readonly unauthenticated: readonly string[] | undefined
  /** Directives that are not translated, and that may restrict access. */
  readonly unknown: readonly string[]
}

/** Reads the sections for paths, in the order in which Apache merges them. */
export function sectionsOf(site: Pick<Site, 'directives' | 'user'>, from: Notes): Section[] {
  const { directives, user } = site
  const proxies = directives.filter(({ name, args }) => name === 'proxy' && args[0] === '*')
  const locations = directives.filter(({ name }) => name === 'location' || name === 'locationmatch')
  for (const each of directives) noteOther(each, from)
  // OIDCUnAuthAction outside of sections holds for all paths.
  const server = directives.filter(({ name }) => name === 'oidcunauthaction')
  const whole = server.length === 0 ? [] : [{ name: 'location', written: 'Location', args: ['/'], children: server }]
  const isRemoved = removedClaims(site)
  return [...whole, ...proxies, ...locations].map((each) => {
    const section = readSection(each, user, from)
    return { ...section, entries: section.entries.map((entry) => ({ ...entry, authz: known(entry.authz, isRemoved) })) }
  })
}

/** The claims that `Require` cannot see. */
function removedClaims(site: Pick<Site, 'directives'>): (claim: string) => boolean {
  const listed = argsOf(site, 'OIDCWhiteListedClaims')
  const excluded = argsOf(site, 'OIDCBlackListedClaims') ?? []
  return (claim) => {
    const name = String(parseClaimPath(claim)[0])
    return excluded.includes(name) || (listed !== undefined && !listed.includes(name))
  }
}

/** The condition in which each comparison of such a claim is unknown. */
function known(authz: Authz, isRemoved: (claim: string) => boolean): Authz {
  if (authz.kind === 'not') return { ...authz, of: [known(authz.of[0], isRemoved)] }
  if ('of' in authz) return { ...authz, of: authz.of.map((each) => known(each, isRemoved)) }
  return 'claim' in authz && isRemoved(authz.claim)
    ? {
        kind: 'unknown',
        text: `Require claim ${authz.claim}, which OIDCWhiteListedClaims or OIDCBlackListedClaims removes`,
      }
    : authz
}

/** Other functions read request headers, and the directives of the rest of a site. */
function mayRestrict({ name, args, children }: Directive): boolean {
  if (name === 'require' && args.join(' ').toLowerCase() === 'all granted') return false
  if (/^(?:balancermember|requestheader)$/.test(name)) return false
  return children === undefined ? !restrictsNothing({ name, args }) : children.some(mayRestrict)
}

/** Sections that do not apply to proxied requests, or that cannot be translated. */
function noteOther(section: Directive, from: Notes): void {
  const { name, args } = section
  const shown = shownSection(section)
  const isOtherProxy = /^proxy(?:match)?$/.test(name) && args[0] !== '*'
  if (!isOtherProxy && !isOfFiles(section) && !/^(?:if|elseif|else)$/.test(name)) return
  if (!mayRestrict(section)) return
  if (isOfFiles(section))
    from.lost(
      shown,
      'it applies to files, and not to paths that ProxyPass forwards; write its restriction as a rule, if the application serves these files',
    )
  else from.deny(shown, 'rules cannot express when this section applies; translate its restriction')
}

function isOfFiles({ name }: Directive): boolean {
  return /^(?:directory|directorymatch|files|filesmatch)$/.test(name)
}

/** Whether a site has restrictions that apply to the files that Apache itself serves. */
export function restrictsFiles(directives: readonly Directive[]): boolean {
  return directives.some(
    (each) => (isOfFiles(each) && mayRestrict(each)) || (each.name === 'allowoverride' && !restrictsNothing(each)),
  )
}

function readSection(section: Directive, user: RemoteUser, from: Notes): Section {
  const { name, args, children = [] } = section
  const isRegExp = name === 'locationmatch' || args[0] === '~'
  const [path = ''] = args[0] === '~' ? args.slice(1) : args
  const shown = shownSection(section)
  const last = (directive: string) => children.findLast((child) => child.name === directive)?.args
  const merging = last('authmerging')?.[0]?.toLowerCase()
  return {
    shown,
    isProxy: name === 'proxy',
    unknown: children.flatMap((child) => unknownIn(child, shown, from)),
    ...(isRegExp ? matchExpression(path) : matchPath(name === 'proxy' ? '/' : path)),
    authType: last('authtype')?.[0]?.toLowerCase(),
    merging: merging === undefined || merging === 'and' || merging === 'or' ? merging : 'off',
    entries: children.flatMap((child) => entriesOf(child, user)),
    unauthenticated: last('oidcunauthaction'),
  }
}

/** Directives that are read elsewhere, or that change nothing about access. */
const readElsewhere =
  /^(?:authtype|authname|authmerging|require|requireall|requireany|requirenone|oidc.*|proxypass|requestheader|header|authzsendforbiddenonfailure)$/

/** What is not translated in a section, and may restrict access. */
function unknownIn(directive: Directive, shown: string, from: Notes): readonly string[] {
  const { name, written, children = [] } = directive
  if (/^limit(?:except)?$/.test(name)) return children.flatMap((child) => unknownIn(child, shown, from))
  if (readElsewhere.test(name)) return []
  const option = `${written} in ${shown}`
  const why = responseDirectives.get(name)
  if (why !== undefined) from.lost(option, why)
  if (restrictsNothing(directive)) return []
  from.decide(
    option,
    'import does not translate it, and it may restrict access; write what it does as Require; until you decide, its paths deny all people',
  )
  return [option]
}

function entriesOf(child: Directive, user: RemoteUser): readonly Entry[] {
  const authz = readRequire(child, user)
  if (authz !== undefined) return [{ authz }]
  if (child.name !== 'limit' && child.name !== 'limitexcept') return []
  const limit = { methods: child.args.map(methodOf), isExcept: child.name === 'limitexcept' }
  return (child.children ?? [])
    .flatMap((each) => entriesOf(each, user))
    .map(({ authz: inner }) => ({ authz: inner, limit }))
}

type Matching = Pick<Section, 'patterns' | 'isWider' | 'matches'>

/** `/admin` is the folder and everything below it; `/admin/` only the latter. */
function matchPath(path: string): Matching {
  const matches = (at: string) => at === path || at.startsWith(path.endsWith('/') ? path : `${path}/`)
  if (path === '/') return { patterns: ['/*'], isWider: false, matches: () => true }
  if (!/^(?:\/[\w.~-]+)+\/?$/.test(path)) return { patterns: undefined, isWider: true, matches }
  return { patterns: path.endsWith('/') ? folderPatterns(path) : [`${path}/*`], isWider: false, matches }
}

function matchExpression(text: string): Matching {
  try {
    const expression = new RegExp(text)
    const patterns = patternsOf(text)
    // The pattern "/*.css" does not match a page whose whole name is ".css".
    const isWider = patterns?.some((pattern) => pattern.startsWith('/*.')) ?? true
    return { patterns, isWider, matches: (at) => expression.test(at) }
  } catch {
    return { patterns: undefined, isWider: true, matches: () => false }
  }
}

/** The patterns for exactly the paths that a regular expression matches. */
export function patternsOf(expression: string): readonly string[] | undefined {
  const text = expression.replace(/\(\.\*\)(\$?)$/, '.*$1')
  const group = /^(.*?)\((?:\?:)?([\w.-]+(?:\|[\w.-]+)+)\)(.*)$/.exec(text)
  if (group !== null) {
    const [, before = '', words = '', after = ''] = group
    const each = words.split('|').map((word) => patternsOf(`${before}${word}${after}`))
    return each.every((patterns) => patterns !== undefined) ? each.flat() : undefined
  }
  const [, ending] = /^(?:\^\/\.\*)?(\\\.[\w-]+)\$$/.exec(text) ?? []
  if (ending !== undefined) return [`/*${ending.slice(1)}`]
  const [, start = '', tail = ''] =
    /^\^(.*?)(\((?:\?:)?\/\|\$\)|\((?:\?:)?\/\.\*\)\?\$|\/\.\*\$?|\/\$?|\$)$/.exec(text) ?? []
  // An unescaped dot matches any character, also a slash.
  if (tail === '' || start.replaceAll(/\\[./_-]/g, '').includes('.')) return undefined
  const path = start.replaceAll('[^/]+', '*').replaceAll(/\\([./_-])/g, '$1')
  if (!/^(?:\/(?:\*|[\w~-][\w.~-]*))*$/.test(path)) return undefined
  if (tail === '$') return path === '' || path.endsWith('*') ? undefined : [path]
  if (tail === '/$') return path.endsWith('*') ? undefined : [`${path}/`]
  if (tail.startsWith('(') || path === '') return [`${path}/*`]
  return [`${path}/`, `${path}/*/*`]
}

/** What the sections that match a path say together. */
interface State {
  readonly authType: string | undefined
  readonly unauthenticated: readonly string[]
  /** `undefined`: no section has a Require, so everybody has access. */
  readonly layers: readonly Layer[]
  /** What `<Proxy *>` says, where the last <Location> merges with it. */
  readonly proxy: Layers | undefined
}

type Layer = Pick<Section, 'merging' | 'entries'>
/** What sections say, and how they merge with what was before them. */
type Layers = Pick<Section, 'merging'> & Pick<State, 'layers'>

/** Merges sections: a later one replaces what an earlier one says. */
function stateOf(sections: readonly Section[]): State {
  const proxy = layersOf(sections.filter(({ isProxy }) => isProxy))
  // Apache merges all <Location> first. Only the last one says how they merge with <Proxy *>.
  const own = layersOf(sections.filter(({ isProxy }) => !isProxy))
  const isAlone = own.merging === 'off' || (own.merging === undefined && own.layers.length > 0)
  const hasBoth = !isAlone && own.layers.length > 0 && proxy.layers.length > 0
  return {
    authType: sections.findLast(({ authType }) => authType !== undefined)?.authType,
    unauthenticated: sections.findLast(({ unauthenticated }) => unauthenticated !== undefined)?.unauthenticated ?? [],
    layers: isAlone || own.layers.length > 0 ? own.layers : proxy.layers,
    proxy: hasBoth ? { ...proxy, merging: own.merging } : undefined,
  }
}

function layersOf(sections: readonly Section[]): Layers {
  let found: Layers = { merging: undefined, layers: [] }
  for (const { merging, entries } of sections) {
    if (merging === undefined && entries.length === 0) continue
    const isAlone = merging === 'off' || merging === undefined
    const added = entries.length === 0 ? [] : [{ merging: merging ?? 'off', entries }]
    found = { merging, layers: [...(isAlone ? [] : found.layers), ...added] }
  }
  return found
}

/** The condition for a method; `undefined`: no Require applies, so everybody has access. */
function authzFor({ layers, proxy }: State, method: string | undefined): Authz | undefined {
  const own = authzOf(layers, method)
  const outer = proxy && authzOf(proxy.layers, method)
  if (own === undefined || outer === undefined) return own ?? outer
  return { kind: proxy?.merging === 'and' ? 'all' : 'any', of: [outer, own] }
}

function authzOf(layers: readonly Layer[], method: string | undefined): Authz | undefined {
  const applies = ({ limit }: Entry) =>
    limit === undefined || (method === undefined ? limit.isExcept : limit.methods.includes(method) !== limit.isExcept)
  let whole: Authz | undefined
  for (const { merging, entries } of layers) {
    const own = entries.filter(applies).map(({ authz }) => authz)
    if (own.length === 0) continue
    const [first] = own
    const added: Authz = own.length === 1 && first !== undefined ? first : { kind: 'any', of: own }
    whole =
      whole === undefined || merging === 'off' ? added : { kind: merging === 'and' ? 'all' : 'any', of: [whole, added] }
  }
  return whole
}

/** Apache responds with 500 where an AuthType has no Require. */
function isIncomplete({ layers, authType = 'none' }: State): boolean {
  return layers.length === 0 && authType !== 'none'
}

const signIns = new Set(['openid-connect', 'auth-openidc'])

/** Whether Apache admits a request; `undefined`: it depends on what a test does not have. */
export function admits(
  sections: readonly Section[],
  { as: person, ...withoutPerson }: TestRequest,
  { condition }: RemoteUser,
): boolean | undefined {
  const isSignedIn = person !== undefined && decide(condition, { ...withoutPerson, as: person }) !== 'denied'
  const request: TestRequest = isSignedIn ? { ...withoutPerson, as: person } : withoutPerson
  const matching = sections.filter(({ matches }) => matches(request.path))
  if (matching.some(({ unknown }) => unknown.length > 0)) return undefined
  const state = stateOf(matching)
  const authz = authzFor(state, methodOf(request.method))
  if (authz === undefined) return !isIncomplete(state)
  if (needsPerson(authz) && !signIns.has(state.authType ?? '')) return request.as === undefined ? false : undefined
  if (request.as === undefined && state.unauthenticated[0]?.toLowerCase() === 'pass' && needsPerson(authz)) return true
  const result = decide(authz, request)
  return result === undefined ? undefined : result === 'granted'
}

/** The rules for all paths that some section matches, the narrower paths first. */
export function rulesOf(sections: readonly Section[], from: Notes): readonly Rule[] {
  const known = sections.filter((section) => {
    const { entries, authType, unauthenticated, unknown } = section
    const isOpen = entries.every(({ authz }) => authz.kind === 'granted') && entries.length > 0 && unknown.length === 0
    if (section.patterns !== undefined && (!section.isWider || isOpen)) return true
    const says =
      entries.length + unknown.length > 0 ||
      [authType, unauthenticated, section.merging].some((each) => each !== undefined)
    if (isOpen)
      from.lost(section.shown, 'rules use paths, not regular expressions; these paths need what the other sections say')
    else if (says)
      from.deny(
        section.shown,
        'rules use paths, not regular expressions, and it may restrict access; write <Location /PATH>, or ^/PATH(/|$)',
      )
    return false
  })
  const regions = regionsOf(known.flatMap(({ patterns = [] }) => patterns))
  return regions.flatMap((region) => {
    const sectionsAt = (path: string) =>
      known.filter(({ patterns = [] }) => patterns.some((pattern) => covers(pattern, path)))
    const [own, twin] = [region, ...twinOf(region)].map(sectionsAt)
    const unknown = [...(own ?? []), ...(twin ?? [])].flatMap((section) => section.unknown)
    if (unknown.length > 0)
      return [denyingRule(region, `Not translated: ${unknown.join(', ')}. Decide who has access.`)]
    return rulesFor(region, stateOf(own ?? []), twin && stateOf(twin), from)
  })
}

/**
 * The same page with the other slash at its end. A rule that restricts one of them also matches the
 * other one.
 */
function twinOf(path: string): readonly string[] {
  if (path.endsWith('*') || path.includes('*.') || path === '/') return []
  return [path.endsWith('/') ? path.slice(0, -1) : `${path}/`]
}

function rulesFor(path: string, state: State, twin: State | undefined, from: Notes): readonly Rule[] {
  if ([state, twin].some((each) => each !== undefined && isIncomplete(each)))
    return [denyingRule(path, 'Apache responds with 500, because an AuthType has no Require.')]
  const limits = [...state.layers, ...(state.proxy?.layers ?? [])].flatMap(({ entries }) =>
    entries.flatMap(({ limit }) => limit?.methods ?? []),
  )
  const named = [...new Set(limits)].filter((method) => method !== 'HEAD')
  return [...named, undefined].flatMap((method) => {
    const authz = authzFor(state, method)
    if (authz === undefined && limits.length > 0)
      from.changed(
        `<Limit> for ${path}`,
        `as in Apache, ${method === undefined ? 'other methods need' : `${method} needs`} no sign-in; remove access: public if that is not meant`,
      )
    const also = twin && signedIn(authzFor(twin, method), twin)
    return rulesForTree(path, authz ?? { kind: 'granted' }, also, state, from).flatMap((rule): readonly Rule[] => {
      if (method === undefined) return [rule]
      return rule.methods === undefined || rule.methods.includes(method) ? [{ ...rule, methods: [method] }] : []
    })
  })
}

/** A condition about a person denies all people where they do not sign in with OpenID Connect. */
function signedIn(authz: Authz | undefined, { authType }: State): Authz | undefined {
  return authz !== undefined && needsPerson(authz) && !signIns.has(authType ?? '') ? { kind: 'denied' } : authz
}

/** @param also what the same page with the other slash needs, when the rule restricts both */
function rulesForTree(path: string, authz: Authz, also: Authz | undefined, state: State, from: Notes): readonly Rule[] {
  const alternatives = authz.kind === 'any' ? authz.of : [authz]
  const open = alternatives.filter((each) => !needsPerson(each)).flatMap((each) => publicRule(path, each, from))
  if (open.some((rule) => rule.methods === undefined && rule.networks === undefined))
    return [{ path, access: 'public' }]
  const personal = alternatives.filter(needsPerson)
  if (personal.length === 0) return [...open, denyingRule(path, 'Apache denies all other requests.')]
  if (!signIns.has(state.authType ?? '')) {
    const shown = state.authType ?? 'no AuthType'
    from.decide(
      `AuthType for ${path}`,
      `people sign in with ${shown} there, which import does not translate; until you decide, these paths deny all people`,
    )
    return [...open, denyingRule(path, `Signed in with ${shown}. Decide who has access.`)]
  }
  const own: Authz = { kind: 'any', of: personal }
  if (also !== undefined && JSON.stringify(also) !== JSON.stringify(authz)) from.changed(path, slashNote)
  const required = requiredOf(path, also === undefined ? own : { kind: 'all', of: [own, also] }, from)
  return [...open, { path, ...unauthenticated(path, required, state, from) }]
}

function requiredOf(path: string, authz: Authz, from: Notes): readonly Requirement[] {
  try {
    const requirement = requirementOf(authz)
    if (requirement === true) return []
    if (requirement === false) return [denial(['Apache denies all requests.'])]
    return 'all' in requirement ? requirement.all : [requirement]
  } catch (error) {
    const why = error instanceof SyntaxError ? error.message : 'rules cannot express this'
    from.decide(`Require for ${path}`, `${why}; until you decide, these paths deny all people`)
    return [denial([`${why}. Decide who has access.`])]
  }
}

export const optionalNote = 'people who are not signed in must sign in here: access: optional permits no requirement'

/** What people get who are not signed in. */
function unauthenticated(path: string, require: readonly Requirement[], state: State, from: Notes): Omit<Rule, 'path'> {
  const required = require.length > 0 ? { require } : {}
  const [action = 'auth', expression] = state.unauthenticated.map((word) => word.toLowerCase())
  const option = `OIDCUnAuthAction for ${path}`
  if (action === 'pass' && require.length === 0) return { access: 'optional' }
  if (action === 'pass') from.lost(option, optionalNote)
  if (action === '410' || action === '407') from.changed(option, 'the status is 401')
  if (action === '401' && expression !== undefined)
    from.changed(option, 'the gateway decides by Sec-Fetch-Mode and Accept which requests get 401')
  if (/^4\d\d$/.test(action) && expression === undefined) return { unauthenticated: '401', ...required }
  return action === 'auth' && expression === 'true' ? { unauthenticated: 'redirect', ...required } : required
}

/** A rule for requests without a person; none when rules cannot express the condition. */
function publicRule(path: string, authz: Authz, from: Notes): readonly Rule[] {
  const conditions = authz.kind === 'all' ? authz.of : [authz]
  // Nothing in a container grants access, so Apache denies it.
  if (conditions.length === 0 || conditions.some(({ kind }) => kind === 'denied')) return []
  const networks = conditions.flatMap((each) => (each.kind === 'ip' ? [each.networks] : []))
  const methods = conditions.flatMap((each) => (each.kind === 'method' ? [each.methods] : []))
  const isKnown = conditions.every(({ kind }) => kind === 'ip' || kind === 'method' || kind === 'granted')
  if (!isKnown || networks.length > 1 || methods.length > 1) {
    from.lost(
      `Require for ${path}`,
      'a condition without a person is not translated, so these requests need what the others need',
    )
    return []
  }
  return [
    {
      path,
      ...(methods[0] && { methods: methods[0] }),
      ...(networks[0] && { networks: networks[0] }),
      access: 'public',
    },
  ]
}

/** The conditions of all sections, for the people of tests. */
export function conditionsOf(sections: readonly Section[]): readonly Authz[] {
  return sections.flatMap(({ entries }) => entries.flatMap(({ authz }) => leavesOf(authz)))
}

/** The methods that sections name. */
export function methodsOf(sections: readonly Section[]): readonly string[] {
  return sections.flatMap(({ entries }) =>
    entries.flatMap(({ authz, limit }) => [
      ...(limit?.methods ?? []),
      ...leavesOf(authz).flatMap((leaf) => (leaf.kind === 'method' ? leaf.methods : [])),
    ]),
  )
}
