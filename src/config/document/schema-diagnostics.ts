import type { AnySchemaObject, ErrorObject } from 'ajv'
import { didYouMean } from './did-you-mean.ts'
import { hintForForeignSetting } from './foreign-settings.ts'
import { below, namesOf, type Report, type Setting } from './report.ts'
import { isSettingOf, mapsWith } from './setting-places.ts'

/** The setting that an error is about. */
export function subject({ keyword, instancePath, params }: ErrorObject): string {
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

/**
 * Reports an unknown setting. The setting that was probably meant is not reported as missing too.
 */
export function reportUnknown(error: ErrorObject, report: Report): void {
  const at = report.at(subject(error))
  const name = String(error.params['additionalProperty'])
  const known = Object.keys((error.parentSchema?.['properties'] as object | undefined) ?? {})
  const meant = didYouMean(name, known)
  at.errorAtKey('unknown setting', hintForUnknown(name, meant, known, error))
  const meantAt = report.at(below(error.instancePath, meant ?? ''))
  if (meant !== undefined && !meantAt.isSet) meantAt.markReported()
}

/** `X-Remote-User`, `Authorization`. No setting has a name in this form. */
const headerName = /^(?:[A-Z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)+|Authorization)$/

function hintForUnknown(name: string, meant: string | undefined, known: readonly string[], error: ErrorObject): string {
  const value = (error.data as Record<string, unknown>)[name]
  if (error.instancePath === '' && typeof value === 'object' && value !== null && 'url' in value)
    return 'an upstream belongs below upstreams: indent it further'
  if (name === '<<') return 'YAML 1.2 has no merge keys; write all settings'
  if (name.includes('{') || (value === null && known.includes('template')))
    return `put the template in quotes: "${name.includes('{') ? name : `{${name}}`}"`
  if (meant !== undefined) return `did you mean "${meant}"?`
  if (known.includes('headers') && headerName.test(name)) return 'a header belongs below headers: indent it further'
  if (known.includes('claim') && known.includes('any_of'))
    return `to require values of a claim of this name, write claim: ${name}, and any_of, all_of or none_of beside it`
  const foreign = hintForForeignSetting(name, error.instancePath)
  if (foreign !== undefined) return foreign
  if (/^(skip|insecure|disable)_/.test(name) || /_(skip|insecure)_/.test(name))
    return 'checks cannot be switched off; to trust your own certificate authority, use ca_file'
  // The value of a secret is never written in the file, whatever the name of the setting.
  const elsewhere = known.join() === 'env,file' ? [] : mapsWith(name, error.instancePath)
  if (elsewhere.length > 0 && elsewhere.length < 4) return `it belongs ${elsewhere.join(' or ')}`
  return hintForJoinedName(name, known, error.instancePath) ?? hintFromList(name, known)
}

/** A name is hard to find in a longer list. */
const maxListed = 30

/** The hint for `cookie_name` where `cookie: { name: … }` is meant. */
function hintForJoinedName(name: string, known: readonly string[], at: string): string | undefined {
  for (const parent of known.filter((each) => name.startsWith(`${each}_`))) {
    const inner = name.slice(parent.length + 1)
    if (isSettingOf(inner, parent, at)) return `write ${parent}: { ${inner}: … }`
  }
  return undefined
}

function hintFromList(name: string, known: readonly string[]): string {
  if (known.length <= maxListed) return `settings here: ${known.join(', ')}`
  const words = name.split('_').filter((word) => word.length > 3)
  const similar = known.filter((each) => each.split('_').some((word) => words.includes(word)))
  return similar.length > 0
    ? `settings here with a similar name: ${similar.join(', ')}`
    : 'there is no setting of this kind here; docs/reference.md lists all settings'
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

export function reportOther(error: ErrorObject, report: Report): void {
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

/**
 * The example of the map that a word or the scheme of a URL names: `redis`, `redis://redis:6379`.
 */
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
