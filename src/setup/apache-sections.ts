import type { Directive } from './apache-file.ts'
import {
  type Authz,
  decide,
  leavesOf,
  needsPerson,
  readRequire,
  type RemoteUser,
  requirementOf,
} from './apache-requirements.ts'
import type { Notes } from './notes.ts'
import type { TestRequest } from './outcomes.ts'
import { covers, folderPatterns, regionsOf } from './path-regions.ts'
import { denial, denyingRule, type Requirement, type Rule } from './written-config.ts'

/** A `Require` that `<Limit>` or `<LimitExcept>` may restrict to some methods. */
interface Entry {
  readonly authz: Authz
  readonly limit?: { readonly methods: readonly string[]; readonly isExcept: boolean }
}

/** A section that applies to paths of requests. */
export interface Section {
  readonly shown: string
  /** `undefined`: rules cannot express its paths. */
  readonly patterns: readonly string[] | undefined
  readonly matches: (path: string) => boolean
  readonly authType: string | undefined
  readonly merging: 'off' | 'and' | 'or'
  readonly entries: readonly Entry[]
  /** The arguments of `OIDCUnAuthAction`. */
  readonly unauthenticated: readonly string[] | undefined
}

/** Reads the sections for paths, in the order in which Apache merges them. */
export function sectionsOf(directives: readonly Directive[], user: RemoteUser, from: Notes): Section[] {
  const proxies = directives.filter(({ name, args }) => name === 'proxy' && args[0] === '*')
  const locations = directives.filter(({ name }) => name === 'location' || name === 'locationmatch')
  for (const each of directives) noteOther(each, from)
  // OIDCUnAuthAction outside of sections holds for all paths.
  const server = directives.filter(({ name }) => name === 'oidcunauthaction')
  const whole = server.length === 0 ? [] : [{ name: 'location', args: ['/'], children: server }]
  return [...whole, ...proxies, ...locations].map((each) => readSection(each, user, from))
}

const access = /^(?:allow|auth|deny|order|require|satisfy)/

/** Sections that do not apply to proxied requests, or that cannot be translated. */
function noteOther({ name, args, children = [] }: Directive, from: Notes): void {
  const decides = children.some((child) => access.test(child.name) || child.name.startsWith('limit'))
  const isGranted = children.every(
    (child) => !access.test(child.name) || child.args.join(' ').toLowerCase() === 'all granted',
  )
  const shown = `<${name} ${args.join(' ')}>`
  if (/^(?:directory|directorymatch|files|filesmatch)$/.test(name) && decides && !isGranted)
    from.lost(
      shown,
      'it applies to files, and not to paths that ProxyPass forwards; write its restriction as a rule, if the application serves these files',
    )
  const isOtherProxy = /^proxy(?:match)?$/.test(name) && args[0] !== '*'
  if ((isOtherProxy && decides && !isGranted) || (/^(?:if|elseif|else)$/.test(name) && decides))
    from.deny(shown, 'rules cannot express when this section applies; translate its restriction')
}

function readSection({ name, args, children = [] }: Directive, user: RemoteUser, from: Notes): Section {
  const isRegExp = name === 'locationmatch' || args[0] === '~'
  const [path = ''] = args[0] === '~' ? args.slice(1) : args
  const shown = `<${name} ${args.join(' ')}>`
  const last = (directive: string) => children.findLast((child) => child.name === directive)?.args
  const merging = last('authmerging')?.[0]?.toLowerCase()
  for (const child of children) noteUntranslated(child, shown, from)
  return {
    shown,
    ...(isRegExp ? matchExpression(path) : matchPath(name === 'proxy' ? '/' : path)),
    authType: last('authtype')?.[0]?.toLowerCase(),
    merging: merging === 'and' || merging === 'or' ? merging : 'off',
    entries: children.flatMap((child) => entriesOf(child, user)),
    unauthenticated: last('oidcunauthaction'),
  }
}

/** Directives that are read elsewhere, or that change nothing about access. */
const readElsewhere =
  /^(?:authtype|authname|authmerging|require|requireall|requireany|requirenone|limit|limitexcept|oidc.*|proxypass.*|requestheader|header|authzsendforbiddenonfailure)$/

function noteUntranslated({ name, args, children }: Directive, shown: string, from: Notes): void {
  if (name.startsWith('limit')) for (const child of children ?? []) noteUntranslated(child, shown, from)
  if (readElsewhere.test(name)) return
  if (access.test(name) || /^(?:if|else|rewrite)/.test(name))
    from.deny(
      `${name} in ${shown}`,
      'import does not translate it, and it may restrict access; write what it does as Require',
    )
  else from.lost(`${name} in ${shown}`, `it is not translated: ${[name, ...args].join(' ')}`)
}

function entriesOf(child: Directive, user: RemoteUser): readonly Entry[] {
  const authz = readRequire(child, user)
  if (authz !== undefined) return [{ authz }]
  if (child.name !== 'limit' && child.name !== 'limitexcept') return []
  const limit = { methods: child.args.map((method) => method.toUpperCase()), isExcept: child.name === 'limitexcept' }
  return (child.children ?? [])
    .flatMap((each) => entriesOf(each, user))
    .map(({ authz: inner }) => ({ authz: inner, limit }))
}

type Matching = Pick<Section, 'patterns' | 'matches'>

/** `/admin` is the folder and everything below it; `/admin/` only the latter. */
function matchPath(path: string): Matching {
  const matches = (at: string) => at === path || at.startsWith(path.endsWith('/') ? path : `${path}/`)
  if (path === '/') return { patterns: ['/*'], matches: () => true }
  if (!/^(?:\/[\w.~-]+)+\/?$/.test(path)) return { patterns: undefined, matches }
  return { patterns: path.endsWith('/') ? folderPatterns(path) : [`${path}/*`], matches }
}

function matchExpression(text: string): Matching {
  try {
    const expression = new RegExp(text)
    return { patterns: patternsOf(text), matches: (at) => expression.test(at) }
  } catch {
    return { patterns: undefined, matches: () => false }
  }
}

/** The patterns for exactly the paths that a regular expression matches. */
export function patternsOf(text: string): readonly string[] | undefined {
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
  if (tail === '') return undefined
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
  readonly layers: readonly { readonly merging: Section['merging']; readonly entries: readonly Entry[] }[]
}

/** Merges sections: a later one replaces what an earlier one says. */
function stateOf(sections: readonly Section[]): State {
  let state: State = { authType: undefined, unauthenticated: [], layers: [] }
  for (const { authType, unauthenticated, merging, entries } of sections) {
    const added = entries.length === 0 ? [] : [{ merging, entries }]
    const kept = added.length > 0 && merging === 'off' ? [] : state.layers
    state = {
      authType: authType ?? state.authType,
      unauthenticated: unauthenticated ?? state.unauthenticated,
      layers: [...kept, ...added],
    }
  }
  return state
}

/** The condition for a method; `undefined`: no Require applies, so everybody has access. */
function authzFor({ layers }: State, method: string | undefined): Authz | undefined {
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

const signIns = new Set(['openid-connect', 'auth-openidc'])

/** Whether Apache admits a request; `undefined`: it depends on what a test does not have. */
export function admits(sections: readonly Section[], request: TestRequest): boolean | undefined {
  const state = stateOf(sections.filter(({ matches }) => matches(request.path)))
  // Apache takes HEAD for GET.
  const authz = authzFor(state, request.method === 'HEAD' ? 'GET' : request.method)
  if (authz === undefined) return true
  if (needsPerson(authz) && !signIns.has(state.authType ?? '')) return request.as === undefined ? false : undefined
  if (request.as === undefined && state.unauthenticated[0]?.toLowerCase() === 'pass' && needsPerson(authz)) return true
  const result = decide(authz, request)
  return result === undefined ? undefined : result === 'granted'
}

/** The rules for all paths that some section matches, the narrower paths first. */
export function rulesOf(sections: readonly Section[], from: Notes): readonly Rule[] {
  const known = sections.filter((section) => {
    if (section.patterns !== undefined) return true
    const isOpen = section.entries.every(({ authz }) => authz.kind === 'granted') && section.entries.length > 0
    if (isOpen)
      from.lost(section.shown, 'rules use paths, not regular expressions; these paths need what the other sections say')
    else
      from.deny(
        section.shown,
        'rules use paths, not regular expressions, and it may restrict access; write <Location /PATH>, or ^/PATH(/|$)',
      )
    return false
  })
  const regions = regionsOf(known.flatMap(({ patterns = [] }) => patterns))
  return regions.flatMap((region) => {
    const state = stateOf(known.filter(({ patterns = [] }) => patterns.some((pattern) => covers(pattern, region))))
    return rulesFor(region, state, from)
  })
}

function rulesFor(path: string, state: State, from: Notes): readonly Rule[] {
  const limits = state.layers.flatMap(({ entries }) => entries.flatMap(({ limit }) => limit?.methods ?? []))
  const named = [...new Set(limits)].filter((method) => method !== 'HEAD')
  return [...named, undefined].flatMap((method) => {
    const authz = authzFor(state, method)
    if (authz === undefined && limits.length > 0)
      from.changed(
        `<Limit> for ${path}`,
        `as in Apache, ${method ?? 'other methods'} needs no sign-in; remove access: public if that is not meant`,
      )
    return rulesForTree(path, authz ?? { kind: 'granted' }, state, from).flatMap((rule): readonly Rule[] => {
      if (method === undefined) return [rule]
      return rule.methods === undefined || rule.methods.includes(method) ? [{ ...rule, methods: [method] }] : []
    })
  })
}

function rulesForTree(path: string, authz: Authz, state: State, from: Notes): readonly Rule[] {
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
  const required = requiredOf(path, { kind: 'any', of: personal }, from)
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

/** What people get who are not signed in. */
function unauthenticated(path: string, require: readonly Requirement[], state: State, from: Notes): Omit<Rule, 'path'> {
  const required = require.length > 0 ? { require } : {}
  const [action = 'auth', expression] = state.unauthenticated.map((word) => word.toLowerCase())
  const option = `OIDCUnAuthAction for ${path}`
  if (action === 'pass' && require.length === 0) return { access: 'optional' }
  if (action === 'pass')
    from.lost(option, 'people who are not signed in must sign in here: access: optional permits no requirement')
  if (action === '410' || action === '407') from.changed(option, 'the status is 401')
  if (action === '401' && expression !== undefined)
    from.changed(option, 'the gateway decides by Sec-Fetch-Mode and Accept which requests get 401')
  if (/^4\d\d$/.test(action) && expression === undefined) return { unauthenticated: '401', ...required }
  return action === 'auth' && expression === 'true' ? { unauthenticated: 'redirect', ...required } : required
}

/** A rule for requests without a person; none when rules cannot express the condition. */
function publicRule(path: string, authz: Authz, from: Notes): readonly Rule[] {
  const conditions = authz.kind === 'all' ? authz.of : [authz]
  if (conditions.some(({ kind }) => kind === 'denied')) return []
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
