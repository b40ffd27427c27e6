import { AddressSet, isObject, type JsonObject, ownMember, parseSubnet } from '../../../src/entries/import.ts'
import { type TestRequest, valuesOf } from '../common/outcomes.ts'
import { folderPatterns } from '../common/path-regions.ts'
import { claimPath, joined, literal, type Requirement } from '../common/written-config.ts'

/** A policy of Pomerium as a condition. */
export type Policy =
  | { readonly kind: 'all' | 'any'; readonly of: readonly Policy[] }
  | { readonly kind: 'not'; readonly of: readonly [Policy] }
  | Criterion

interface Criterion {
  readonly kind: 'criterion'
  /** As the file names it. */
  readonly name: string
  readonly needsPerson: boolean
  /** For a signed-in person; `undefined`: rules cannot express it. */
  readonly requirement: Requirement | boolean | undefined
  /** The paths of `http_path`, which rules select by their path. */
  readonly patterns?: readonly string[]
  /** Whether a request meets it; `undefined`: unknown. */
  readonly isMet: (request: TestRequest) => boolean | undefined
}

const always: Policy = { kind: 'all', of: [] }
const never: Policy = { kind: 'any', of: [] }

/** Settings of a route that admit people, beside its `policy`. */
export interface Shortcuts {
  readonly isPublic: boolean
  readonly isForSignedIn: boolean
  readonly domains: readonly string[]
  readonly users: readonly string[]
  readonly groups: readonly string[]
  readonly claims: JsonObject
}

/**
 * The policy of a route. A request is admitted when one rule with `allow` is met, and none with
 * `deny`.
 */
export function policyOf(rules: unknown, shortcuts: Shortcuts): Policy {
  const shortcut = [
    ...(shortcuts.isPublic ? [criterion('accept', true)] : []),
    ...(shortcuts.isForSignedIn ? [criterion('authenticated_user', true)] : []),
    ...shortcuts.domains.map((domain) => criterion('domain', { is: domain })),
    ...Object.entries(shortcuts.claims).flatMap(([name, values]) =>
      [values].flat().map((value) => criterion(`claim/${name}`, value)),
    ),
    ...shortcuts.groups.map((group) => criterion('groups', { has: group })),
    ...shortcuts.users.flatMap((user) => [criterion('user', { is: user }), criterion('email', { is: user })]),
  ]
  const written = [rules ?? []]
    .flat()
    .flatMap((rule): [string, unknown][] => (isObject(rule) ? Object.entries(rule) : [['policy', rule]]))
  const of = (action: string) => written.filter(([name]) => name === action).map(([, body]) => ruleOf(body))
  const other = written.filter(([name]) => name !== 'allow' && name !== 'deny').map(([name]) => unknown(String(name)))
  const deny = of('deny')
  return {
    kind: 'all',
    of: [
      { kind: 'any', of: [...shortcut, ...of('allow')] },
      ...other,
      ...(deny.length === 0 ? [] : [{ kind: 'not', of: [{ kind: 'any', of: deny }] } as const]),
    ],
  }
}

/** Several operators of one rule are alternatives. */
function ruleOf(body: unknown): Policy {
  if (!isObject(body)) return unknown('policy')
  return {
    kind: 'any',
    of: Object.entries(body).map(([operator, list]): Policy => {
      const criteria = [list]
        .flat()
        .flatMap((each) =>
          isObject(each) ? Object.entries(each).map(([name, data]) => criterion(name, data)) : [unknown(operator)],
        )
      // An operator without criteria admits no requests.
      if (criteria.length === 0) return never
      const inverted = criteria.map((each): Policy => ({ kind: 'not', of: [each] }))
      if (operator === 'and') return { kind: 'all', of: criteria }
      if (operator === 'or') return { kind: 'any', of: criteria }
      if (operator === 'not') return { kind: 'all', of: inverted }
      return operator === 'nor' ? { kind: 'any', of: inverted } : unknown(operator)
    }),
  }
}

function unknown(name: string): Criterion {
  return { kind: 'criterion', name, needsPerson: true, requirement: undefined, isMet: () => undefined }
}

function criterion(name: string, data: unknown): Policy {
  const [type = '', ...path] = name.split('/')
  switch (type) {
    case 'accept':
    case 'pomerium_routes':
      return type === 'accept' ? always : never
    case 'reject':
      return never
    case 'authenticated_user':
      return { ...unknown(name), requirement: true, isMet: ({ as }) => as !== undefined }
    case 'claim':
      return listOf(name, claimPath(path.join('.')), data)
    case 'groups':
      return listOf(name, 'groups', data)
    case 'email':
      return textOf(name, 'email', data)
    case 'user':
      return textOf(name, 'sub', data)
    case 'domain':
      return domainOf(name, data)
    case 'source_ip':
      return addressOf(name, data)
    case 'http_method':
      return methodOf(name, data)
    case 'http_path':
      return pathOf(name, data)
    case 'day_of_week':
    case 'time_of_day':
      return timeOf(name, data)
    default:
      return unknown(name)
  }
}

function isScalar(value: unknown): value is string | number | boolean {
  return ['string', 'number', 'boolean'].includes(typeof value)
}

/** A matcher of lists: `has`, or the value itself. */
function listOf(name: string, claim: string, data: unknown): Policy {
  const operators = isObject(data) ? data : { has: data }
  const [[operator, value] = ['', undefined], ...more] = Object.entries(operators)
  if (more.length > 0 || !isScalar(value) || (operator !== 'has' && operator !== 'exclude')) return unknown(name)
  const isMet = (request: TestRequest) => valuesOf(request.as, claim).includes(String(value)) === (operator === 'has')
  const text = [String(value)]
  return {
    ...unknown(name),
    requirement: operator === 'has' ? { claim, any_of: text } : { claim, none_of: text },
    isMet: (request) => request.as !== undefined && isMet(request),
  }
}

type Matchers = readonly (readonly [operator: string, texts: readonly string[]])[]

/** The operators of a matcher of texts, each with its texts. */
function matchersOf(data: unknown): Matchers | undefined {
  const entries = isObject(data) ? Object.entries(data) : [['is', data] as const]
  const read = entries.map(([operator, value]) => [operator, [value].flat().filter(isScalar).map(String)] as const)
  const isKnown = read.every(([operator, texts]) => ownMember(compare, operator) !== undefined && texts.length > 0)
  return isKnown && read.length > 0 ? read : undefined
}

const compare: Readonly<Record<string, (value: string, texts: readonly string[]) => boolean>> = {
  is: (value, [text]) => value === text,
  not: (value, [text]) => value !== text,
  in: (value, texts) => texts.includes(value),
  not_in: (value, texts) => !texts.includes(value),
  contains: (value, [text = '']) => value.includes(text),
  starts_with: (value, [text = '']) => value.startsWith(text),
  ends_with: (value, [text = '']) => value.endsWith(text),
}

function meets(matchers: Matchers, value: string | undefined): boolean {
  return (
    value !== undefined && matchers.every(([operator, texts]) => ownMember(compare, operator)?.(value, texts) === true)
  )
}

function textOf(name: string, claim: string, data: unknown): Policy {
  const matchers = matchersOf(data)
  if (matchers === undefined) return unknown(name)
  const requirements = matchers.map(([operator, texts]): Requirement => {
    const [text = ''] = texts
    if (operator === 'contains') return { claim, contains: text }
    if (operator === 'starts_with') return { claim, begins_with: text }
    if (operator === 'ends_with') return { claim, ends_with: text }
    return operator.startsWith('not') ? { claim, none_of: texts } : { claim, any_of: texts }
  })
  return {
    ...unknown(name),
    requirement: joined(requirements, 'all'),
    isMet: ({ as }) => meets(matchers, valuesOf(as, claim)[0]),
  }
}

/** The part of the address after `@`. */
function domainOf(name: string, data: unknown): Policy {
  const matchers = matchersOf(data)
  if (matchers === undefined) return unknown(name)
  const patterns: Readonly<Record<string, (text: string) => string>> = {
    contains: (text) => `[^@]+@[^@]*${text}[^@]*`,
    starts_with: (text) => `[^@]+@${text}[^@]*`,
    ends_with: (text) => `[^@]+@[^@]*${text}`,
  }
  const requirements = matchers.map(([operator, texts]): Requirement => {
    const pattern = ownMember(patterns, operator)
    if (pattern !== undefined) return { claim: 'email', matches: pattern(literal(texts[0] ?? '')) }
    const exact: Requirement = { email_domains: texts }
    return operator.startsWith('not') ? { not: exact } : exact
  })
  return {
    ...unknown(name),
    // A negation would admit people whose address is not verified.
    requirement: matchers.some(([operator]) => operator.startsWith('not')) ? undefined : joined(requirements, 'all'),
    isMet: ({ as }) => meets(matchers, valuesOf(as, 'email')[0]?.split('@')[1]),
  }
}

function addressOf(name: string, data: unknown): Policy {
  const networks = [data].flat().map(String)
  try {
    const set = new AddressSet(networks.map(parseSubnet))
    const isMet = ({ from }: TestRequest) => from !== undefined && set.has(from)
    return { ...unknown(name), needsPerson: false, requirement: { networks }, isMet }
  } catch {
    return unknown(name)
  }
}

function methodOf(name: string, data: unknown): Policy {
  const matchers = matchersOf(data)
  const [[operator, texts] = ['', []], ...more] = matchers ?? []
  if (matchers === undefined || more.length > 0 || !/^(?:is|in|not|not_in)$/.test(operator)) return unknown(name)
  // In Pomerium, GET does not include HEAD; a rule for GET does.
  const methods = texts.map((method) => method.toUpperCase())
  return {
    ...unknown(name),
    needsPerson: false,
    requirement: operator.startsWith('not') ? { not: { methods } } : { methods },
    isMet: ({ method }) => meets(matchers, method),
  }
}

/** A path or a folder. Other matchers of texts are no patterns of rules. */
function pathOf(name: string, data: unknown): Policy {
  const matchers = matchersOf(data)
  const [[operator, texts] = ['', []], ...more] = matchers ?? []
  const isFolder = operator === 'starts_with' && texts.every((text) => text.endsWith('/'))
  const isPlain = texts.every((text) => /^(?:\/[\w.~-]+)*\/?$/.test(text) && text !== '')
  if (matchers === undefined || more.length > 0 || !isPlain || !(isFolder || operator === 'is' || operator === 'in'))
    return unknown(name)
  const patterns = texts.flatMap((text) => (isFolder ? folderPatterns(text) : [text]))
  return { ...unknown(name), needsPerson: false, patterns, isMet: ({ path }) => meets(matchers, path) }
}

const days = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun']

function timeOf(name: string, data: unknown): Policy {
  if (name === 'day_of_week') {
    const named = daysOf(String(data).toLowerCase())
    return named === undefined
      ? unknown(name)
      : { ...unknown(name), needsPerson: false, requirement: { time: { days: named, zone: 'UTC' } } }
  }
  const { timezone, after, before, ...more } = isObject(data) ? data : { other: data }
  const [from, to] = [clockTime(after, '00:00'), clockTime(before, '24:00')]
  const isKnown =
    typeof timezone === 'string' && from !== undefined && to !== undefined && Object.keys(more).length === 0
  return isKnown && from < to
    ? { ...unknown(name), needsPerson: false, requirement: { time: { from, to, zone: timezone } } }
    : unknown(name)
}

function daysOf(text: string): readonly string[] | undefined {
  if (text === '*') return days
  const [first = '', last] = text.split('-').map((day) => day.trim().slice(0, 3))
  const [start, end] = [days.indexOf(first), days.indexOf(last ?? first)]
  if (last !== undefined) return start >= 0 && end >= start ? days.slice(start, end + 1) : undefined
  const listed = text.split(',').map((day) => day.trim().slice(0, 3))
  return listed.every((day) => days.includes(day)) ? listed : undefined
}

/** `15:04`, `15:04:00`, `3:04PM` and `3 PM` as `15:04`. */
function clockTime(value: unknown, fallback: string): string | undefined {
  if (value === undefined) return fallback
  const [, hour, minute = '00', half] = /^(\d{1,2})(?::(\d{2})(?::00)?)? ?([AP]M)?$/i.exec(String(value)) ?? []
  if (hour === undefined) return undefined
  const hours = half === undefined ? Number(hour) : (Number(hour) % 12) + (half.toUpperCase() === 'PM' ? 12 : 0)
  return hours > 23 || Number(minute) > 59 ? undefined : `${String(hours).padStart(2, '0')}:${minute}`
}

/** Whether Pomerium admits a request; `undefined`: unknown. */
export function isMet(policy: Policy, request: TestRequest): boolean | undefined {
  return evaluate(policy, (criterion) => criterion.isMet(request))
}

/** `undefined`: it depends on criteria that are unknown. */
function evaluate(policy: Policy, valueOf: (criterion: Criterion) => boolean | undefined): boolean | undefined {
  if (policy.kind === 'criterion') return valueOf(policy)
  const of = policy.of.map((each) => evaluate(each, valueOf))
  if (policy.kind === 'not') return of[0] === undefined ? undefined : !of[0]
  const deciding = policy.kind === 'any'
  if (of.includes(deciding)) return deciding
  return of.includes(undefined) ? undefined : !deciding
}

export function criteriaOf(policy: Policy): readonly Criterion[] {
  return policy.kind === 'criterion' ? [policy] : policy.of.flatMap(criteriaOf)
}

/** A policy for the paths of a region, where each `http_path` is met or not. */
export function policyAt(policy: Policy, isWithin: (patterns: readonly string[]) => boolean): Policy {
  if (policy.kind === 'criterion')
    return policy.patterns === undefined ? policy : isWithin(policy.patterns) ? always : never
  if (policy.kind === 'not') return { kind: 'not', of: [policyAt(policy.of[0], isWithin)] }
  return { ...policy, of: policy.of.map((each) => policyAt(each, isWithin)) }
}

/**
 * The requirement for a signed-in person: `true` when none is needed, `false` when no person meets
 * it, and the names of criteria that rules cannot express.
 */
export function requirementOf(policy: Policy): Requirement | boolean | { readonly lost: readonly string[] } {
  if (policy.kind === 'criterion') return policy.requirement ?? { lost: [policy.name] }
  const read = policy.of.map(requirementOf)
  const lost = read.flatMap((each) => (typeof each === 'object' && 'lost' in each ? each.lost : []))
  if (lost.length > 0) return { lost }
  const known = read as readonly (Requirement | boolean)[]
  if (policy.kind !== 'not') return joined(known, policy.kind)
  const [inner = false] = known
  return typeof inner === 'boolean' ? !inner : { not: inner }
}

/**
 * Whether everybody is admitted; networks and methods are no reason, because a rule of their own
 * would be.
 */
export function isPublic(policy: Policy): boolean {
  // Below "not", a person could be the one who is denied.
  const negated = (each: Policy): boolean =>
    each.kind === 'criterion' ? false : each.kind === 'not' ? criteriaOf(each).length > 0 : each.of.some(negated)
  return !negated(policy) && evaluate(policy, ({ needsPerson }) => (needsPerson ? false : undefined)) === true
}
