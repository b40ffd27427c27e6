import type { AnySchemaObject, ErrorObject } from 'ajv'
import { stringify } from 'yaml'
import { isObject, ownMember } from '../../core/json.ts'
import { mapInSteps, type Steps } from '../../core/steps.ts'
import type { GatewaySettings } from '../settings.ts'
import { didYouMean } from './did-you-mean.ts'
import { hintForForeignValue } from './foreign-settings.ts'
import { readSettings } from './read-settings.ts'
import { reportRelations } from './relations.ts'
import { below, containersOf, namesOf, type Report, type Setting } from './report.ts'
import { partAt } from './schema-part.ts'
import { compiledSchema } from './schema-validator.ts'
import { hintForSpelling } from './spellings.ts'
import { maxListed, reportUnknown } from './unknown-settings.ts'

/**
 * Reports everything that does not match the schema, and removes it, so that other checks can
 * continue. Required settings may still be missing.
 */
export function* validate(document: object, report: Report): Steps<GatewaySettings> {
  const { schema, validate } = compiledSchema()
  for (const name of ['upstreams', 'providers'] as const) reportUnnamed(document, name, report)
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
  reportRelations(document, schema, report)
  yield
  return readSettings(document, schema, report)
}

/**
 * Reports settings of an upstream or a provider that are indented too little, or without its name,
 * and removes them.
 */
function reportUnnamed(document: object, name: 'upstreams' | 'providers', report: Report): void {
  const map = ownMember(document as Readonly<Record<string, unknown>>, name)
  if (!isObject(map)) return
  const [what, usual, example] =
    name === 'upstreams' ? (['an upstream', 'url', 'orders'] as const) : (['a provider', 'issuer', 'staff'] as const)
  if (typeof ownMember(map, usual) === 'string') {
    report
      .at(below('', name))
      .errorAtKey(
        `contains ${usual}, and not the name of ${what} above it`,
        `write a name of your choice between them: ${name}: { ${example}: { ${usual}: … } }`,
      )
    return remove(document, below('', name))
  }
  const { schema } = compiledSchema()
  const settings = partAt([name, ''], schema)?.properties ?? {}
  for (const [key, value] of Object.entries(map)) {
    if (
      !Object.hasOwn(settings, key) ||
      (isObject(value) && Object.keys(value).some((each) => Object.hasOwn(settings, each) && each !== 'path'))
    )
      continue
    const at = below(below('', name), key)
    report
      .at(at)
      .errorAtKey(`is a setting of ${what}, and not a name`, 'indent it further, below a name of your choice')
    remove(document, at)
  }
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

function reportName(at: Setting, { params, parentSchema, instancePath, data }: ErrorObject): void {
  const { pattern, errorMessage } = (parentSchema?.['propertyNames'] ?? {}) as Readonly<Record<string, string>>
  const isName = (text: string) => pattern !== undefined && new RegExp(pattern).test(text)
  const words = String(params['propertyName'])
    .trim()
    .split(/[\s_]+/)
  // A name that may have both marks is not a header, and either could be meant.
  const isHeader = isName(words.join('-')) && !isName(words.join('_'))
  const value = (data as Readonly<Record<string, unknown>> | undefined)?.[String(params['propertyName'])]
  const isReversed =
    instancePath.endsWith('/claims') &&
    /[:/]/.test(String(params['propertyName'])) &&
    typeof value === 'string' &&
    isName(value)
  const hint = isHeader ? `did you mean "${words.join('-')}"?` : undefined
  at.errorAtKey(String(errorMessage), isReversed ? `the short name comes first: write ${value}: CLAIM` : hint)
}

function reportOther(error: ErrorObject, report: Report): void {
  const at = report.at(subject(error))
  // A choice lacks what was written elsewhere.
  if (isChoice(error.keyword) && report.containsInvalid(at.pointer)) return
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
  const at = namesOf(subject(error))
  const name = at.at(-1) ?? ''
  const properties = error.parentSchema?.['properties'] as Readonly<Record<string, AnySchemaObject>> | undefined
  const property = properties?.[name]
  const example: unknown = property?.['examples']?.[0] ?? partAt(at, compiledSchema().schema)?.examples?.[0]
  return example === undefined ? property?.['description'] : `for example ${name}: ${flow(example)}`
}

/** A small value in YAML, on one line. */
function flow(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(flow).join(', ')}]`
  if (typeof value !== 'object' || value === null)
    return stringify([value], { collectionStyle: 'flow', flowCollectionPadding: false, lineWidth: 0 }).slice(1, -2)
  return `{ ${Object.entries(value)
    .map(([name, member]) => `${name}: ${flow(member)}`)
    .join(', ')} }`
}

function reportValue(error: ErrorObject, at: Setting): void {
  const message = messageOf(error)
  if (error.data === null) {
    const needsMap = error.keyword === 'type' && error.schema === 'object' && !hasOwnMessage(error.parentSchema)
    const text = /^(?:must|needs|takes) /.test(message) ? `it ${message}` : message
    return at.error(`has no value; ${text}${needsMap ? ', indented below it' : ''}`, exampleFor(message, at))
  }
  return at.error(message, hintForValue(error, at.typed) ?? exampleFor(message, at))
}

/** The example in the schema, where the message has none. */
function exampleFor(message: string, { pointer }: Setting): string | undefined {
  if (/such as|one of|\bfrom \d|[{]|true or false/.test(message)) return undefined
  const names = namesOf(pointer)
  const isEntry = /^\d+$/.test(names.at(-1) ?? '')
  const { examples, default: usual } = partAt(isEntry ? names.slice(0, -1) : names, compiledSchema().schema) ?? {}
  const example = examples?.[0] ?? usual
  const isEmpty = typeof example === 'object' && Object.keys(example ?? {}).length === 0
  return example === undefined || isEmpty ? undefined : `for example ${names.at(isEntry ? -2 : -1)}: ${flow(example)}`
}

function hintForValue(
  { keyword, schema, parentSchema, data, instancePath }: ErrorObject,
  typed: string | undefined,
): string | undefined {
  const foreign = typeof data === 'object' ? undefined : hintForForeignValue(data, instancePath)
  if (foreign !== undefined) return foreign
  const part = partAt(namesOf(instancePath), compiledSchema().schema)
  const spelling = hintForSpelling(data, { ...parentSchema, ...part })
  if (spelling !== undefined) return spelling
  // Quotes would not make a value match a pattern, or one of a list.
  const isAnyText =
    keyword === 'type' && schema === 'string' && !hasOwnMessage(parentSchema) && parentSchema?.['enum'] === undefined
  if (isAnyText && typed !== undefined) return `put it in quotes: "${typed}"`
  const name = namesOf(instancePath).at(-1) ?? ''
  const [only, ...others]: readonly unknown[] = Array.isArray(data) ? data : []
  if (
    keyword === 'type' &&
    typeof only === schema &&
    name !== 'equals' &&
    others.length === 0 &&
    /^[\w.:/*-]{1,80}$/.test(String(only))
  )
    return `write ${name}: ${flow(only)}, which is no list`
  // The text is not repeated, because a URL may hold a password.
  if (keyword === 'type' && parentSchema?.['properties']?.['url'] !== undefined && String(data).includes('://'))
    return `write it as a map: ${name}: { url: … }`
  if (keyword === 'type' && !hasOwnMessage(parentSchema) && !/^\d+$/.test(name)) {
    const shape = hintForShape(String(schema), data, parentSchema, name)
    if (shape !== undefined) return shape
  }
  // A description that explains each value helps to choose one.
  const description = String(parentSchema?.['description'] ?? '')
  const values = (parentSchema?.['enum'] ?? []) as readonly unknown[]
  const isExplained = values.length > 0 && values.every((value) => description.includes(`${String(value)}: `))
  if (typeof data !== 'string') return isExplained ? description : undefined
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
  return isExplained ? description : undefined
}

/** How to write a list or a map where another kind of value was given. */
function hintForShape(
  type: string,
  data: unknown,
  parentSchema: AnySchemaObject | undefined,
  name: string,
): string | undefined {
  // A key that was written in place of the name of a variable is not repeated.
  const isSecret = /^\{"(env":"[A-Z][A-Z_]{0,40}|file":"[\w.-]*\/[\w./-]*)"\}$/.test(JSON.stringify(data))
  if (type === 'string' && name === 'equals' && Array.isArray(data))
    return 'for a list, write any_of in place of equals'
  if (type === 'array' && isSecret) return `write ${name}: [${flow(data)}]`
  const own: unknown = parentSchema?.['examples']?.[0]
  const isOfMaps = Array.isArray(own) ? typeof own[0] === 'object' : true
  if (type === 'array' && typeof data === 'object' && isOfMaps) return 'begin each entry with "- "'
  // The text is not repeated where the entries are secrets.
  if (type === 'array' && typeof data === 'string' && !(Array.isArray(own) && isOfMaps))
    if (/^[\w.:/*@ ,-]{1,80}$/.test(data) && !data.includes('://'))
      return `write ${name}: ${flow(data.split(/[ ,]+/).filter(Boolean))}`
  if (type === 'array' && Array.isArray(own)) return `for example ${name}: ${flow(own)}`
  if (type !== 'object') return undefined
  if (Array.isArray(data)) return 'it is a map, so no entry begins with "- ": write NAME: … for each'
  return hintForMap(name, parentSchema)
}

/** An example of a map: its own, or one with its first setting. Without either, its settings. */
function hintForMap(map: string, schema: AnySchemaObject | undefined): string | undefined {
  const settings = (schema?.['properties'] ?? {}) as Record<string, AnySchemaObject>
  const names = Object.keys(settings)
  const usual = (schema?.['required'] ?? names.slice(0, 1)) as readonly string[]
  const values = usual.map((name): unknown => settings[name]?.['examples']?.[0] ?? settings[name]?.['default'])
  const isWhole = usual.length > 0 && values.every((value) => value !== undefined)
  const ofUsual = isWhole ? Object.fromEntries(usual.map((name, index) => [name, values[index]])) : undefined
  const example: unknown = schema?.['examples']?.[0] ?? ofUsual
  if (example !== undefined) return `for example ${map}: ${flow(example)}`
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
      return `must be ${([error.schema].flat() as string[]).map((type) => ownMember(typeNames, type) ?? type).join(' or ')}${rangeOf(error.parentSchema)}`
    case 'minimum':
    case 'maximum':
      return `must be ${ownMember(typeNames, String(error.parentSchema?.['type']))}${rangeOf(error.parentSchema)}`
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
