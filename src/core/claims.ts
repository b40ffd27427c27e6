import { isObject } from './json.ts'
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | { readonly [name: string]: JsonValue }

/** Claims about a person, with the names of the provider. */
export type Claims = { readonly [name: string]: JsonValue }

/** A path into claims. Each step is the name of a member or the index of an element. */
export type ClaimPath = readonly (string | number)[]

/** The text between braces. A `}` within quotes does not end it. */
const inBraces = /\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\}/y
/** A URL or an OID: a name with dots that separate no members. */
const dottedName = /^(?:[a-z][\w+.-]*:\/\/|urn:oid:)[^."]*\./i
const step = /^(?:"((?:[^"\\]|\\.)+)"|([^."[\]{}\s]+))|^\[(\d{1,4})\]/

/**
 * Reads a path such as `fields.costCentre` or `"https://id.example.com/claims/fields".groups[0]`. A
 * name that begins with "$" must be in quotes.
 * @throws {SyntaxError} names what is wrong, and at which character (from 1)
 */
export function parseClaimPath(text: string): ClaimPath {
  const path: (string | number)[] = []
  let at = 0
  // Other gateways and JSONPath use "$" with another meaning. No claim has a name that begins with
  // it.
  if (text.startsWith('$')) throw new SyntaxError(`write the claim's name without "$": "${text}"`)
  // Template languages have filters and defaults: {name|lower}, {lower(name)}, {name ?? email}.
  const operator = /[|()?]/.exec(text.replaceAll(/"(?:[^"\\]|\\.)*"/g, ''))?.[0]
  if (operator !== undefined)
    throw new SyntaxError(
      `"${operator}" is not supported in "${text}": a claim is sent as it is, without filters, functions and defaults; put a claim's name that contains this character in quotes`,
    )
  if (dottedName.test(text))
    throw new SyntaxError(
      `"${text}" would be a path, because its dots separate members: put the claim's name in quotes of its own, '"${text}"', or give it a short name in provider.claims`,
    )
  while (at < text.length) {
    const indexed = text[at] === '['
    if (path.length > 0 && !indexed) {
      if (text[at] !== '.') throw new SyntaxError(`"." or "[" expected at character ${at + 1} of "${text}"`)
      at += 1
    }
    const found = step.exec(text.slice(at))
    if (!found || (path.length === 0 ? indexed : indexed !== (found[3] !== undefined)))
      throw new SyntaxError(`a claim's name expected at character ${at + 1} of "${text}"`)
    const [whole, quoted, plain, index] = found
    path.push(index !== undefined ? Number(index) : (plain ?? (quoted ?? '').replaceAll(/\\(.)/g, '$1')))
    at += whole.length
  }
  if (path.length === 0) throw new SyntaxError('a claim path is empty')
  return path
}

/** Whether a value is text, true, false, or a number that is exact. */
export function isExactScalar(value: JsonValue): boolean {
  // JSON.parse rounds integers beyond 2^53, so the value could equal the value of another person.
  if (typeof value === 'number') return !Number.isInteger(value) || Number.isSafeInteger(value)
  return typeof value === 'string' || typeof value === 'boolean'
}

/** The place of several values in JSON: at a path, or in elements of the list that is there. */
export interface ClaimSelection {
  readonly path: ClaimPath
  readonly elements?: ElementSelection
}

/** What is read of a list: each element, or the only one with these members. */
interface ElementSelection {
  readonly where: readonly (readonly [path: ClaimPath, value: JsonValue])[]
  readonly selection: ClaimSelection
}

/** Each `[]` and `[name=value]` outside of quotes. */
const lists = /\[((?:[^"\]=]|"(?:[^"\\]|\\.)*")+=(?:[^"\]]|"(?:[^"\\]|\\.)*")*|)\](?=(?:[^"]|"(?:[^"\\]|\\.)*")*$)/
const comma = /,(?=(?:[^"]|"(?:[^"\\]|\\.)*")*$)/
const equals = /=(?=(?:[^"]|"(?:[^"\\]|\\.)*")*$)/
/** More lists in each other are no list of values. */
const maxLists = 3

/**
 * Reads a path in which `[]` means each element of a list, and `[name=value]` for the only one
 * with these members: `value[].id`, `[primary=true,verified=true].email`.
 * @throws {SyntaxError} like {@link parseClaimPath}
 */
export function parseSelection(text: string): ClaimSelection {
  const [first = '', ...others] = text.split(lists)
  if (others.length > 2 * maxLists) throw new SyntaxError(`"${text}" has more than ${maxLists} lists`)
  return selectionOf(first === '' && others.length > 0 ? [] : parseClaimPath(first), others, text)
}

/** `others` has, by turns, the members within `[` and `]` and the path in the elements. */
function selectionOf(path: ClaimPath, [members, next, ...rest]: readonly string[], text: string): ClaimSelection {
  if (members === undefined || next === undefined) return { path }
  if (next !== '' && !next.startsWith('.')) throw new SyntaxError(`"." expected after "]" in "${text}"`)
  const where = members === '' ? [] : members.split(comma).map(parseMember)
  const inElement = next === '' ? [] : parseClaimPath(next.slice(1))
  return { path, elements: { where, selection: selectionOf(inElement, rest, text) } }
}

/** Reads `name=value`: `true`, `false` and numbers are those of JSON, unless they have quotes. */
function parseMember(text: string): readonly [ClaimPath, JsonValue] {
  const [name = '', ...others] = text.split(equals)
  const value = others.join('=')
  const isJson = /^(?:true|false|-?(?:0|[1-9]\d{0,14})|"(?:[^"\\]|\\["\\])*")$/.test(value)
  if (!isJson && (value === '' || /["\s]/.test(value)))
    throw new SyntaxError(`"${text}" has no value after "=": write true, false, a number or a text`)
  return [parseClaimPath(name), isJson ? (JSON.parse(value) as JsonValue) : value]
}

/** Whether a selection leads to at most one place. */
export function selectsOne({ elements }: ClaimSelection): boolean {
  return elements === undefined || (elements.where.length > 0 && selectsOne(elements.selection))
}

/**
 * The values at a selection; `undefined` when there is none, or none in one of the elements, and
 * when several elements have the members of which one may have them.
 */
export function selectValues(json: JsonValue, { path, elements }: ClaimSelection): readonly JsonValue[] | undefined {
  const value = path.length === 0 ? json : isObject(json) ? readClaim(json, path) : undefined
  if (elements === undefined) return value === undefined || value === null ? undefined : [value].flat()
  if (!Array.isArray(value)) return undefined
  const { where, selection } = elements
  const chosen = where.length === 0 ? value : elementsWith(value, where)
  if (chosen === undefined || (where.length > 0 && chosen.length > 1)) return undefined
  const found = chosen.map((element: JsonValue) => selectValues(element, selection))
  return found.every((values) => values !== undefined) ? found.flat() : undefined
}

/** `undefined` when an element lacks one of the members: then it is another kind of list. */
function elementsWith(list: readonly JsonValue[], where: ElementSelection['where']): readonly JsonValue[] | undefined {
  const isKnown = list.every((element) => where.every(([path]) => memberOf(element, path) !== undefined))
  return isKnown
    ? list.filter((element) => where.every(([path, value]) => memberOf(element, path) === value))
    : undefined
}

function memberOf(element: JsonValue, path: ClaimPath): JsonValue | undefined {
  return isObject(element) ? readClaim(element as Claims, path) : undefined
}

/** The value at a path, or `undefined`. Only own members count, so `__proto__` leads nowhere. */
export function readClaim(claims: Claims, path: ClaimPath): JsonValue | undefined {
  let value: JsonValue | undefined = claims
  for (const name of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
    if (Array.isArray(value) !== (typeof name === 'number')) return undefined
    value = (value as Record<string | number, JsonValue>)[name]
  }
  return value
}

/**
 * Why a path leads to no value. `withheld`: the person has the claim, but the provider did not send
 * its value. `another type`: a part of the path is no map, or no list.
 */
export type Absence = 'missing' | 'withheld' | 'another type'

/** Why there is no value at a path; `undefined` when there is one. */
export function absenceOf(claims: Claims, path: ClaimPath): Absence | undefined {
  if (isWithheld(claims, path)) return 'withheld'
  let value: JsonValue = claims
  for (const name of path) {
    if (typeof value !== 'object' || Array.isArray(value) !== (typeof name === 'number')) return 'another type'
    value = Object.hasOwn(value, name) ? ((value as Record<string | number, JsonValue>)[name] ?? null) : null
    if (value === null) return 'missing'
  }
  return undefined
}

/** Why a claim does not count that is {@link isWithheld}. For the log. */
export const withheldReason =
  'the provider has withheld the claim (_claim_names or hasgroups, such as an overage of groups), or its API in claims_from could not be read'

/** Whether `_claim_names` names the claim of a path (OpenID Connect Core §5.6.2). */
export function isWithheld({ _claim_names: elsewhere }: Claims, [name]: ClaimPath): boolean {
  return isObject(elsewhere) && name !== undefined && Object.hasOwn(elsewhere, name)
}

/** Claims of which some are withheld. The mark wins over a value. */
export function withWithheld(claims: Claims, names: readonly string[]): Claims {
  if (names.length === 0) return claims
  const { _claim_names: others } = claims
  const marks = Object.fromEntries(names.map((name) => [name, 'withheld']))
  return { ...claims, _claim_names: { ...(isObject(others) ? (others as Claims) : {}), ...marks } }
}

/** The result of reading a claim from APIs: its value, or why there is none. */
export type ApiReading =
  /** `undefined`: the person has none. */
  | { readonly kind: 'value'; readonly value: JsonValue | undefined }
  /** The API is unavailable: a value that was read before counts for some time. */
  | { readonly kind: 'unavailable'; readonly retryAfterMs: number | undefined }
  /** `isRejected`: the API does not accept the access token, which may have expired. */
  | { readonly kind: 'unusable'; readonly isRejected: boolean }

/**
 * The names of the claims that a provider has withheld: they are at another place, or left out
 * because they are too long. Entra ID also says so with `hasgroups`.
 */
export function withheldNames({ _claim_names: elsewhere, hasgroups, groups }: Claims): readonly string[] {
  const hasHiddenGroups = (hasgroups === true || hasgroups === 'true') && (groups ?? null) === null
  return [...(isObject(elsewhere) ? Object.keys(elsewhere) : []), ...(hasHiddenGroups ? ['groups'] : [])]
}

/** The template of a header value: literal texts and claims. A single claim is a template too. */
export type ClaimTemplate = readonly (string | ClaimPath)[]

/**
 * Reads `{given_name} {family_name}`; `{{` and `}}` are the braces themselves.
 * @throws {SyntaxError} names what is wrong
 */
export function parseClaimTemplate(text: string): ClaimTemplate {
  const parts: (string | ClaimPath)[] = []
  let literal = ''
  for (let at = 0; at < text.length; at++) {
    const here = text[at]
    if ((here === '{' || here === '}') && text[at + 1] === here) {
      literal += here
      at += 1
    } else if (here === '{') {
      inBraces.lastIndex = at
      const found = inBraces.exec(text)
      if (!found) throw new SyntaxError(`"{" at character ${at + 1} of "${text}" is never closed`)
      if (literal !== '') parts.push(literal)
      literal = ''
      parts.push(parseClaimPath((found[1] ?? '').trim()))
      at = inBraces.lastIndex - 1
    } else if (here === '}') {
      throw new SyntaxError(`"}" at character ${at + 1} of "${text}" closes nothing; write "}}" for a brace`)
    } else {
      literal += here
    }
  }
  if (literal !== '') parts.push(literal)
  return parts
}

/** What rules and headers can read of a certificate, below `certificate`. */
export interface CertificateClaims {
  /**
   * The names of the subject as OpenSSL writes them, the most general first: `O=Example,
   * CN=billing`.
   */
  readonly subject: string
  readonly cn: readonly string[]
  readonly o: readonly string[]
  readonly ou: readonly string[]
  readonly issuer: string
  /** The subject alternative names (RFC 5280 §4.2.1.6). */
  readonly dns: readonly string[]
  readonly uri: readonly string[]
  readonly email: readonly string[]
  readonly ip: readonly string[]
  /** In hexadecimal. */
  readonly serial: string
  /** The SHA-256 digest of the certificate, in hexadecimal. */
  readonly sha256: string
}

/** Claims about the authentication (OpenID Connect Core §2): of the ID Token, where it has them. */
export const authenticationClaims: readonly string[] = ['acr', 'amr', 'auth_time']
