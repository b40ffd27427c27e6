import type { AnySchemaObject, ErrorObject } from 'ajv'
import { mapInSteps, type Steps } from '../../core/steps.ts'
import type { GatewaySettings } from '../settings.ts'
import { didYouMean } from './did-you-mean.ts'
import { readSettings } from './read-settings.ts'
import { below, containersOf, namesOf, type Report, type Setting } from './report.ts'
import { compiledSchema } from './schema-validator.ts'
import { maxListed, reportUnknown } from './unknown-settings.ts'

/**
 * Reports everything that does not match the schema, and removes it, so that other checks can
 * continue. Required settings may still be missing.
 */
export function* validate(document: object, report: Report): Steps<GatewaySettings> {
  const { schema, validate } = compiledSchema()
  validate(document)
  yield
  const errors = relevant(validate.errors ?? [])
  yield
  const unreported = errors.filter((error) => !report.at(subject(error)).isReported)
  const unknown = unreported.filter(({ keyword }) => keyword === 'additionalProperties')
  yield* mapInSteps(unknown, (error) => reportUnknown(error, report))
  yield* mapInSteps(unreported, (error) => reportOther(error, report))
  for (const at of errors.filter(({ keyword }) => keyword !== 'required' && keyword !== 'dependencies').map(subject))
    remove(document, at)
  yield
  return readSettings(document, schema, report)
}

/** Ajv reports every alternative that it tried. This keeps one error for each place. */
function relevant(errors: readonly ErrorObject[]): ErrorObject[] {
  const seen = new Set<string>()
  const withUnknown = new Set(
    errors.filter(({ keyword }) => keyword === 'additionalProperties').map(({ instancePath }) => instancePath),
  )
  const withInvalid = new Set(
    errors.filter((error) => !isAttempt(error)).flatMap(({ instancePath }) => containersOf(instancePath)),
  )
  return errors
    .filter((error) => !isAttempt(error) && !followsFromAnother(error, withUnknown, withInvalid))
    .toSorted((a, b) => rank(a) - rank(b))
    .filter((error) => {
      const place = subject(error)
      if (seen.has(place)) return false
      seen.add(place)
      return true
    })
}

/** Whether an error is about one alternative of a choice. The choice has an error of its own. */
function isAttempt({ keyword, schemaPath, propertyName }: ErrorObject): boolean {
  if (keyword === 'if' || (propertyName !== undefined && keyword !== 'propertyNames')) return true
  return /\/(oneOf|anyOf|contains|propertyNames)\//.test(schemaPath)
}

/**
 * Whether an error may only be the consequence of another one, such as an unknown setting that was
 * meant to be the missing one. `withUnknown` and `withInvalid`: the maps and lists that contain an
 * unknown setting, or an error.
 */
function followsFromAnother(
  error: ErrorObject,
  withUnknown: ReadonlySet<string>,
  withInvalid: ReadonlySet<string>,
): boolean {
  const { keyword, instancePath: at } = error
  // A missing setting is not reported if an unknown one was probably meant to be it.
  if (isChoice(keyword) && at !== '' && subject(error) !== at) return false
  if (isChoice(keyword)) return withUnknown.has(at)
  return keyword === 'contains' && withInvalid.has(at)
}

/** Of several errors about one place, the most helpful has the lowest rank. */
function rank({ keyword }: ErrorObject): number {
  return keyword === 'type' ? 0 : isChoice(keyword) ? 2 : 1
}

function isChoice(keyword: string): boolean {
  return keyword === 'oneOf' || keyword === 'anyOf'
}

function remove(document: object, at: string): void {
  const names = namesOf(at)
  const last = names.pop()
  if (last === undefined) return
  let container = document as Record<string, unknown>
  for (const name of names) {
    const next = container[name]
    if (typeof next !== 'object' || next === null) return
    container = next as Record<string, unknown>
  }
  // The other entries keep their index, because their places are recorded by it.
  if (Array.isArray(container)) container[Number(last)] = undefined
  else delete container[last]
}

/** The setting that an error is about. */
function subject({ keyword, instancePath, params }: ErrorObject): string {
  if (keyword === 'additionalProperties') return below(instancePath, String(params['additionalProperty']))
  if (keyword === 'propertyNames') return below(instancePath, String(params['propertyName']))
  if (keyword === 'required' || keyword === 'dependencies')
    return below(instancePath, String(params['missingProperty']))
  const usual = keyword === 'anyOf' ? usualChoice(instancePath) : undefined
  return usual === undefined ? instancePath : below(instancePath, usual)
}

/** The setting that most people need, where one of several settings is required. */
function usualChoice(instancePath: string): string | undefined {
  if (instancePath === '') return 'upstreams'
  return /^\/upstreams\/[^/]+$/.test(instancePath) ? 'url' : undefined
}

function reportName(at: Setting, { params, parentSchema }: ErrorObject): void {
  const { pattern, errorMessage } = (parentSchema?.['propertyNames'] ?? {}) as Readonly<Record<string, string>>
  const isName = (text: string) => pattern !== undefined && new RegExp(pattern).test(text)
  const words = String(params['propertyName'])
    .trim()
    .split(/[\s_]+/)
  // A name that may have both marks is not a header, and either could be meant.
  const isHeader = isName(words.join('-')) && !isName(words.join('_'))
  at.errorAtKey(String(errorMessage), isHeader ? `did you mean "${words.join('-')}"?` : undefined)
}

function reportOther(error: ErrorObject, report: Report): void {
  const at = report.at(subject(error))
  switch (error.keyword) {
    case 'additionalProperties':
      return
    case 'required':
    case 'dependencies':
      return reportMissing(at, exampleOf(error))
    case 'propertyNames':
      return reportName(at, error)
    case 'uniqueItems':
      return at.error('has the same entry twice')
    case 'contains':
      return at.error(`must contain "${error.parentSchema?.['contains'].const}"`)
    case 'anyOf':
      if (at.pointer !== error.instancePath) return reportMissing(at, exampleOf(error))
      return at.error(messageOf(error))
    default:
      return reportValue(error, at)
  }
}

function reportMissing(at: Setting, hint: string | undefined): void {
  if (!at.isReported) at.missing('is missing', hint)
}

function exampleOf(error: ErrorObject): string | undefined {
  const [name = '', parent = ''] = namesOf(subject(error)).toReversed()
  const properties = error.parentSchema?.['properties'] as Readonly<Record<string, AnySchemaObject>> | undefined
  // A setting of an upstream that is indented too little looks like another upstream.
  if (properties !== undefined && Object.hasOwn(properties, parent))
    return `if "${parent}" is a setting, and not a name of your choice, indent it further`
  const property = properties?.[name]
  const example: unknown = property?.['examples']?.[0]
  return example === undefined ? property?.['description'] : `for example ${name}: ${flow(example)}`
}

/** A small value in YAML, on one line. */
function flow(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(flow).join(', ')}]`
  if (typeof value !== 'object' || value === null)
    return /[{}]/.test(String(value)) ? `"${String(value)}"` : String(value)
  return `{ ${Object.entries(value)
    .map(([name, member]) => `${name}: ${flow(member)}`)
    .join(', ')} }`
}

function reportValue(error: ErrorObject, at: Setting): void {
  const message = messageOf(error)
  if (error.data === null) {
    const needsMap = error.keyword === 'type' && error.schema === 'object' && !hasOwnMessage(error.parentSchema)
    return at.error(`has no value; it ${message}${needsMap ? ', indented below it' : ''}`)
  }
  return at.error(message, hintForValue(error, at.typed))
}

function hintForValue(
  { keyword, schema, parentSchema, data, instancePath }: ErrorObject,
  typed: string | undefined,
): string | undefined {
  // Quotes would not make a value match a pattern, or one of a list.
  const isAnyText =
    keyword === 'type' && schema === 'string' && !hasOwnMessage(parentSchema) && parentSchema?.['enum'] === undefined
  if (isAnyText && typed !== undefined) return `put it in quotes: "${typed}"`
  const name = namesOf(instancePath).at(-1) ?? ''
  // The text is not repeated, because a URL may hold a password.
  if (keyword === 'type' && parentSchema?.['properties']?.['url'] !== undefined && String(data).includes('://'))
    return `write it as a map: ${name}: { url: … }`
  if (keyword === 'type' && !hasOwnMessage(parentSchema) && !/^\d+$/.test(name)) {
    const shape = hintForShape(String(schema), data, parentSchema, name)
    if (shape !== undefined) return shape
  }
  if (typeof data !== 'string') return undefined
  if (keyword === 'type' && [schema].flat().includes('boolean') && /^(yes|no|on|off)$/i.test(data))
    return `"${data}" is text in YAML 1.2; write ${/^(yes|on)$/i.test(data)}`
  const words = keyword === 'pattern' ? wordsOf(String(schema)) : undefined
  const word = words && didYouMean(data, words)
  if (word !== undefined) return `did you mean "${word}"?`
  if (keyword !== 'enum') {
    const example = mapExample(data, parentSchema)
    return example && `write it as a map: ${name}: ${flow(example)}`
  }
  if (hasOwnMessage(parentSchema)) return undefined
  const meant = didYouMean(data, (schema as unknown[]).map(String))
  if (meant !== undefined) return `did you mean "${meant}"?`
  // A description that explains each value helps to choose one.
  const description = String(parentSchema?.['description'] ?? '')
  return (schema as unknown[]).every((value) => description.includes(`${String(value)}: `)) ? description : undefined
}

/** How to write a list or a map where another kind of value was given. */
function hintForShape(
  type: string,
  data: unknown,
  parentSchema: AnySchemaObject | undefined,
  name: string,
): string | undefined {
  if (type === 'array' && typeof data === 'object') return 'begin each entry with "- "'
  const own: unknown = parentSchema?.['examples']?.[0]
  // The text is not repeated where the entries are secrets.
  if (type === 'array' && Array.isArray(own) && typeof own[0] === 'object') return `for example ${name}: ${flow(own)}`
  if (type === 'array' && typeof data === 'string' && /^[\w.:/*@ ,-]{1,80}$/.test(data) && !data.includes('://'))
    return `write ${name}: [${data.split(/[ ,]+/).filter(Boolean).join(', ')}]`
  if (type !== 'object') return undefined
  if (Array.isArray(data)) return 'it is a map, so no entry begins with "- ": write NAME: … for each'
  return hintForMap(name, parentSchema)
}

/** An example of a map: its own, or one with its first setting. Without either, its settings. */
function hintForMap(map: string, schema: AnySchemaObject | undefined): string | undefined {
  const settings = Object.entries((schema?.['properties'] ?? {}) as Record<string, AnySchemaObject>)
  const [name = '', first] = settings[0] ?? []
  const value: unknown = first?.['examples']?.[0] ?? first?.['default']
  const ofFirst = value === undefined || typeof value === 'object' ? undefined : { [name]: value }
  const example: unknown = schema?.['examples']?.[0] ?? ofFirst
  if (example !== undefined) return `for example ${map}: ${flow(example)}`
  const names = settings.map(([setting]) => setting)
  return names.length === 0 ? undefined : `settings below it: ${names.slice(0, maxListed).join(', ')}`
}

/** The schema has a message of its own in place of the usual one. */
function hasOwnMessage(schema: AnySchemaObject | undefined): boolean {
  return schema?.['errorMessage'] !== undefined
}

/** The words of a pattern that is a list of them: `^(off|required)$`. */
function wordsOf(pattern: string): readonly string[] | undefined {
  return /^\^\(([a-z_|]+)\)\$$/.exec(pattern)?.[1]?.split('|')
}

/** The example of the map that a word or the scheme of a URL names: `redis`, `redis://…`. */
function mapExample(data: string, parentSchema: AnySchemaObject | undefined): object | undefined {
  const [word = ''] = data.trim().toLowerCase().split('://')
  const examples = (parentSchema?.['examples'] ?? []) as readonly unknown[]
  return examples.find(
    (example): example is object =>
      typeof example === 'object' && example !== null && (word in example || word.replace(/s$/, '') in example),
  )
}

const typeNames: Readonly<Record<string, string>> = {
  string: 'text',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  object: 'a map of settings',
  array: 'a list: [a, b], or lines that begin with "- "',
}

function rangeOf(schema: AnySchemaObject | undefined): string {
  return schema?.['minimum'] === undefined ? '' : ` from ${schema['minimum']} to ${schema['maximum']}`
}

function messageOf(error: ErrorObject): string {
  const own: unknown = error.parentSchema?.['errorMessage']
  if (typeof own === 'string') return own
  const choices: unknown = error.parentSchema?.['enum']
  switch (error.keyword) {
    case 'type':
      if (Array.isArray(choices)) return `must be one of ${choices.join(', ')}`
      return `must be ${([error.schema].flat() as string[]).map((type) => typeNames[type] ?? type).join(' or ')}${rangeOf(error.parentSchema)}`
    case 'minimum':
    case 'maximum':
      return `must be ${typeNames[String(error.parentSchema?.['type'])]}${rangeOf(error.parentSchema)}`
    case 'enum':
      return `must be one of ${(error.schema as unknown[]).join(', ')}`
    case 'minLength':
      return 'must not be empty'
    case 'minItems':
      return 'must have at least one entry'
    case 'maxItems':
      return `must have at most ${String(error.schema)} entries`
    default:
      return 'is not an allowed value'
  }
}
