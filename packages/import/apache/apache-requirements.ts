import { AddressSet, LinearPattern, parseSubnet } from '../../../src/entries/import.ts'
import { type TestRequest, valuesOf } from '../common/outcomes.ts'
import { claimPath, joined, type Requirement } from '../common/written-config.ts'
import type { Directive } from './apache-file.ts'

/** A `Require` directive, or a section of them. */
export type Authz =
  | { readonly kind: 'granted' | 'denied' | 'valid-user' }
  | { readonly kind: 'claim'; readonly claim: string; readonly values: readonly string[] }
  | { readonly kind: 'pattern'; readonly claim: string; readonly pattern: string }
  | { readonly kind: 'ip'; readonly networks: readonly string[] }
  | { readonly kind: 'method'; readonly methods: readonly string[] }
  | { readonly kind: 'all' | 'any' | 'none'; readonly of: readonly Authz[] }
  | { readonly kind: 'not'; readonly of: readonly [Authz] }
  | { readonly kind: 'unknown'; readonly text: string }

/** What `REMOTE_USER` is: a claim, and what follows its value. */
export interface RemoteUser {
  readonly claim: string
  /** `undefined`: a regular expression makes it. */
  readonly suffix: string | undefined
  /** What the claim must meet: mod_auth_openidc signs in no other person. */
  readonly condition: Authz
}

const containers = { requireall: 'all', requireany: 'any', requirenone: 'none' } as const

/** Reads a `Require`, or a section with several; `undefined` for another directive. */
export function readRequire({ name, args, children }: Directive, user: RemoteUser): Authz | undefined {
  const kind = containers[name as keyof typeof containers]
  if (kind !== undefined) return { kind, of: (children ?? []).flatMap((child) => readRequire(child, user) ?? []) }
  if (name !== 'require') return undefined
  const isNegated = args[0]?.toLowerCase() === 'not'
  const read = readProvider(isNegated ? args.slice(1) : args, user)
  return isNegated ? { kind: 'not', of: [read] } : read
}

function readProvider([provider = '', ...args]: readonly string[], user: RemoteUser): Authz {
  const unknown = { kind: 'unknown', text: `Require ${[provider, ...args].join(' ')}` } as const
  switch (provider.toLowerCase()) {
    case 'all':
      return { kind: args[0]?.toLowerCase() === 'granted' ? 'granted' : 'denied' }
    case 'valid-user':
      return { kind: 'valid-user' }
    case 'user':
      return readUsers(args, user) ?? unknown
    case 'claim':
      return readClaims(args) ?? unknown
    case 'method':
      return { kind: 'method', methods: args.map(methodOf) }
    case 'ip': {
      const networks = args.map(networkOf)
      return networks.every((each) => each !== undefined) ? { kind: 'ip', networks } : unknown
    }
    default:
      return unknown
  }
}

/** Apache takes HEAD for GET. */
export function methodOf(text: string): string {
  const method = text.toUpperCase()
  return method === 'HEAD' ? 'GET' : method
}

function readUsers(names: readonly string[], { claim: name, suffix }: RemoteUser): Authz | undefined {
  const claim = claimPath(name)
  if (suffix === undefined) return undefined
  const own = names.filter((name) => name.endsWith(suffix))
  const values = own.map((name) => name.slice(0, name.length - suffix.length))
  return values.length === 0 ? { kind: 'denied' } : { kind: 'claim', claim, values }
}

/** Several conditions in one line are alternatives. */
function readClaims(specs: readonly string[]): Authz | undefined {
  const read = specs.map(readClaimSpec)
  if (read.length === 0 || read.some((each) => each === undefined)) return undefined
  const of: Authz[] = []
  for (const each of read.flatMap((one) => one ?? [])) {
    const same = of.findIndex((other) => each.kind === 'claim' && other.kind === 'claim' && other.claim === each.claim)
    const known = of[same]
    if (known?.kind === 'claim' && each.kind === 'claim')
      of[same] = { ...known, values: [...known.values, ...each.values] }
    else of.push(each)
  }
  const [only] = of
  return of.length === 1 ? only : { kind: 'any', of }
}

/** `name:value` or `name~pattern`; dots in the name are steps into objects. */
function readClaimSpec(spec: string): Authz | undefined {
  const [, name = '', separator = '', value = ''] = /^([^:~]+)([:~])(.*)$/s.exec(spec) ?? []
  if (name === '' || value === '') return undefined
  const claim = claimPath(name)
  return separator === ':' ? { kind: 'claim', claim, values: [value] } : { kind: 'pattern', claim, pattern: value }
}

/** `10.1`, `10.1.0.0/255.255.0.0` and CIDR. */
export function networkOf(text: string): string | undefined {
  const [, address = '', mask] = /^([^/]*)(?:\/(.*))?$/.exec(text) ?? []
  const parts = address.split('.')
  const isShort = mask === undefined && /^\d+(?:\.\d+){0,2}\.?$/.test(address)
  const bits = mask?.includes('.') === true ? bitsOf(mask) : mask
  const given = parts.filter((part) => part !== '')
  const network = isShort
    ? `${[...given, '0', '0', '0'].slice(0, 4).join('.')}/${given.length * 8}`
    : [address, ...(bits === undefined ? [] : [bits])].join('/')
  try {
    parseSubnet(network)
    return network
  } catch {
    return undefined
  }
}

function bitsOf(mask: string): string {
  const bits = mask
    .split('.')
    .map((part) => Number(part).toString(2).padStart(8, '0'))
    .join('')
  return /^1*0*$/.test(bits) ? String(bits.lastIndexOf('1') + 1) : 'invalid'
}

export function needsPerson(authz: Authz): boolean {
  return 'of' in authz ? authz.of.some(needsPerson) : !['granted', 'denied', 'ip', 'method'].includes(authz.kind)
}

/** All conditions in a tree. */
export function leavesOf(authz: Authz): readonly Authz[] {
  return 'of' in authz ? authz.of.flatMap(leavesOf) : [authz]
}

/**
 * The requirement for a signed-in person: `true` when none is needed, `false` when no person meets
 * it.
 * @throws {SyntaxError} when rules cannot express it
 */
export function requirementOf(authz: Authz): Requirement | boolean {
  switch (authz.kind) {
    case 'granted':
    case 'valid-user':
      return true
    case 'denied':
      return false
    case 'claim':
      return { claim: authz.claim, any_of: authz.values }
    case 'pattern':
      return patternRequirement(authz.claim, authz.pattern)
    case 'ip':
      return { networks: authz.networks }
    case 'method':
      return { methods: authz.methods }
    case 'unknown':
      throw new SyntaxError(`rules cannot express "${authz.text}"`)
    case 'any':
      return joined(authz.of.map(requirementOf), 'any')
    case 'all':
      // Lines with "not" alone admit no requests.
      return authz.of.every(({ kind }) => kind === 'not' || kind === 'none')
        ? false
        : joined(authz.of.map(requirementOf), 'all')
    case 'not':
    case 'none': {
      const inner = joined(authz.of.map(requirementOf), 'any')
      return typeof inner === 'boolean' ? !inner : { not: inner }
    }
  }
}

/**
 * mod_auth_openidc finds the expression anywhere in a value; `matches` compares the whole value.
 */
function patternRequirement(claim: string, pattern: string): Requirement {
  const [, begin, inner = '', end] = /^(\^)?([^]*?)(\$)?$/.exec(pattern) ?? []
  if (/^[\w@ -]+$/.test(inner)) {
    if (begin !== undefined && end !== undefined) return { claim, any_of: [inner] }
    if (begin !== undefined) return { claim, begins_with: inner }
    return end === undefined ? { claim, contains: inner } : { claim, ends_with: inner }
  }
  // In "^a|b$", each anchor is a part of one alternative.
  const isWhole = begin !== undefined || end !== undefined
  if (inner.endsWith('\\') || (isWhole && inner.includes('|') && !/^\([^()]*\)$/.test(inner)))
    throw new SyntaxError(`rules cannot express the expression of the claim ${claim}`)
  const isExact = begin !== undefined && end !== undefined && inner !== ''
  const matches = isExact ? inner : `${begin === undefined ? '.*' : ''}(${inner})${end === undefined ? '.*' : ''}`
  new LinearPattern(matches)
  return { claim, matches }
}

/** `undefined`: Apache has expressions that JavaScript does not have, such as `(?i)`. */
function expressionOf(pattern: string): RegExp | undefined {
  try {
    return new RegExp(pattern)
  } catch {
    return undefined
  }
}

type Result = 'granted' | 'denied' | 'neutral'

/** What Apache decides about a request; `undefined`: it depends on what a test does not have. */
export function decide(authz: Authz, request: TestRequest): Result | undefined {
  const of = 'of' in authz ? authz.of.map((each) => decide(each, request)) : []
  const granted = (isMet: boolean): Result => (isMet ? 'granted' : 'denied')
  if (authz.kind !== 'unknown' && request.as === undefined && needsPerson(authz) && !('of' in authz)) return 'denied'
  switch (authz.kind) {
    case 'granted':
    case 'denied':
      return authz.kind
    case 'valid-user':
      return 'granted'
    case 'unknown':
      return undefined
    case 'claim':
      return granted(valuesOf(request.as, authz.claim).some((value) => authz.values.includes(value)))
    case 'pattern': {
      const expression = expressionOf(authz.pattern)
      return expression && granted(valuesOf(request.as, authz.claim).some((value) => expression.test(value)))
    }
    case 'method':
      return granted(authz.methods.includes(methodOf(request.method)))
    case 'ip':
      return granted(request.from !== undefined && new AddressSet(authz.networks.map(parseSubnet)).has(request.from))
    case 'not':
      // Without a person, "not" is not met.
      if (request.as === undefined && needsPerson(authz)) return 'denied'
      return of[0] === undefined ? undefined : of[0] === 'granted' ? 'denied' : 'neutral'
    case 'all':
      if (of.includes('denied')) return 'denied'
      return of.includes(undefined) ? undefined : of.includes('granted') ? 'granted' : 'neutral'
    case 'any':
      if (of.includes('granted')) return 'granted'
      return of.includes(undefined) ? undefined : of.every((each) => each === 'neutral') ? 'neutral' : 'denied'
    case 'none':
      if (request.as === undefined && needsPerson(authz)) return 'denied'
      if (of.includes('granted')) return 'denied'
      return of.includes(undefined) ? undefined : 'neutral'
  }
}
