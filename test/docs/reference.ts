import { format } from 'prettier'
import style from '../../.prettierrc.json' with { type: 'json' }

/** What this page needs to know of JSON Schema. */
export interface Schema {
  readonly $ref?: string
  readonly description?: string
  readonly type?: string | readonly string[]
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly default?: unknown
  readonly examples?: readonly unknown[]
  readonly minimum?: number
  readonly maximum?: number
  readonly atLeast?: string
  readonly atMost?: string
  readonly minItems?: number
  readonly maxItems?: number
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: boolean | Schema
  readonly items?: Schema
  readonly then?: Schema
  readonly oneOf?: readonly Schema[]
  readonly anyOf?: readonly Schema[]
  readonly dependencies?: Readonly<Record<string, readonly string[]>>
  readonly definitions?: Readonly<Record<string, Schema>>
}

/** A map of settings: it has a section of its own. */
interface Section {
  readonly path: string
  readonly schema: Schema
  /** The references that lead to it. */
  readonly within: readonly string[]
}

/** What the page already describes: the path of the first place, by its content. */
type Described = Map<string, string>

const manyValues = 4

/** Kinds of values that the page on configuration explains. */
const kinds = ['duration', 'size', 'rate', 'path', 'address', 'secret'] as const
/** The word for a key that people choose themselves. */
const ownNames: Readonly<Record<string, string>> = { upstreams: 'NAME', headers: 'HEADER', claims: 'NAME' }

/**
 * The page on every setting, out of the schema.
 * @param needRestart the settings, as in `session.store`, that a reload does not change; all that
 * is below them too
 */
export async function referencePage(schema: Schema, needRestart: readonly string[]): Promise<string> {
  const described: Described = new Map()
  const sections = sectionsOf({ path: '', schema, within: [] }, schema, described)
  const parts = sections.map((section) => sectionText(section, schema, needRestart, described))
  return format(`${head}\n${parts.join('\n')}`, {
    ...(style as object),
    parser: 'markdown',
    printWidth: 110,
    proseWrap: 'always',
  })
}

const head = `# Every setting

\`npm run reference\` generates this page from [gateway.schema.json](../schemas/gateway.schema.json).
[configuration.md](configuration.md) says which setting is for which situation, and how settings work together.

- NAME and HEADER are names of your own; \`[]\` is each member of a list.
- Without a default, a list or a map is empty, and nothing is done unless the text says otherwise.
- A reload applies a change [while the gateway runs](operations.md#changing-the-configuration), except for settings
  with "Restart."
- A type with a link is described there. How a duration, a size, a rate, a path, an address and a secret are written:
  [configuration.md](configuration.md#how-values-are-written).
`

function sectionText({ path, schema }: Section, root: Schema, needRestart: readonly string[], described: Described) {
  const rows = Object.entries(schema.properties ?? {}).map(([name, written]) => {
    const setting = resolved(written, root)
    const at = path === '' ? name : `${path}.${name}`
    const isEmpty = ['[]', '{}'].includes(JSON.stringify(setting.default))
    const fallback = setting.default === undefined || isEmpty ? '' : `; default ${code(setting.default)}`
    const usual = schema.required?.includes(name) === true ? '; required' : fallback
    const needs = needRestart.some((above) => at === above || at.startsWith(`${above}.`))
    const text = `- ${code(name)}: ${typeText(written, root, { at, described })}${usual}. ${whatText(written, root)}`
    return { needs, text }
  })
  const all = rows.every(({ needs }) => needs)
  const lines = rows.map(({ needs, text }) => (needs && !all ? `${text} Restart.` : text))
  const notes = [...notesOf(schema), ...(all ? ['A change needs a restart.'] : [])]
  return `## ${headingOf(path)}\n\n${notes.length === 0 ? '' : `${notes.join(' ')}\n\n`}${lines.join('\n')}\n`
}

function headingOf(path: string): string {
  return path === '' ? 'Top level' : path
}

/** A link to the section about a path. */
function linkTo(path: string, text: string): string {
  const anchor = headingOf(path)
    .toLowerCase()
    .replaceAll(/[^\w -]/g, '')
  return `[${text}](#${anchor.replaceAll(' ', '-')})`
}

/**
 * The sections of a map of settings: itself, then the maps in it. A map that is described has none.
 */
function sectionsOf(section: Section, root: Schema, described: Described): Section[] {
  const { path, schema, within } = section
  if (described.has(keyOf(schema))) return []
  described.set(keyOf(schema), path)
  const inner = Object.entries(schema.properties ?? {}).flatMap(([name, written]) =>
    mapsIn({ path: path === '' ? name : `${path}.${name}`, schema: written, within }, root),
  )
  return [section, ...inner.flatMap((map) => sectionsOf(map, root, described))]
}

function keyOf({ properties }: Schema): string {
  return JSON.stringify(properties)
}

/**
 * The maps of settings that a setting holds: itself, the members of its list, or what stands below
 * names of people's own.
 */
function mapsIn({ path, schema: written, within }: Section, root: Schema): Section[] {
  const { $ref } = written
  // The page on configuration describes how a secret is written.
  if ($ref?.endsWith('/secret') === true) return []
  // A map that may contain itself has one section.
  if ($ref !== undefined && within.includes($ref)) return []
  const schema = resolved(written, root)
  const inner = { within: $ref === undefined ? within : [...within, $ref] }
  if (schema.properties !== undefined) return [{ path, schema, ...inner }]
  if (schema.items !== undefined) return mapsIn({ path: `${path}[]`, schema: schema.items, ...inner }, root)
  if (typeof schema.additionalProperties !== 'object') return []
  const name = ownNames[path.split('.').at(-1) ?? ''] ?? 'NAME'
  return mapsIn({ path: `${path}.${name}`, schema: schema.additionalProperties, ...inner }, root)
}

/** What holds between the settings of a section. */
function notesOf({ oneOf, anyOf, dependencies }: Schema): string[] {
  const alternatives = (of: readonly Schema[] = []) => [
    ...new Set(of.flatMap(({ required = [] }) => required.map(code))),
  ]
  const one = alternatives(oneOf)
  const some = alternatives(anyOf)
  return [
    ...(one.length > 1 ? [`Exactly one of ${one.join(', ')}.`] : []),
    ...(some.length > 1 ? [`At least one of ${some.join(', ')}.`] : []),
    ...Object.entries(dependencies ?? {}).map(
      ([name, needed]) => `${code(name)} needs ${needed.map(code).join(', ')}.`,
    ),
  ]
}

/** A setting by its path, and what the page describes elsewhere. */
interface Place {
  readonly at: string
  readonly described: Described
}

function typeText(written: Schema, root: Schema, place: Place): string {
  const name = written.$ref?.split('/').at(-1)
  const kind = kinds.find((known) => known === name)
  if (kind !== undefined)
    return written.atLeast === undefined ? kind : `${kind}, ${written.atLeast} to ${written.atMost}`
  const {
    type,
    enum: values,
    const: only,
    items,
    additionalProperties,
    properties,
    minimum,
    maximum,
  } = resolved(written, root)
  if (only !== undefined) return code(only)
  if (values !== undefined) return valuesText([...new Set(values.map(String))], place)
  const texts = [type].flat().map((one) => {
    if (one === 'string') return 'text'
    if (one === 'boolean') return '`true`, `false`'
    if (one === 'integer') return minimum === undefined ? 'whole number' : `${minimum} to ${maximum}`
    if (one === 'number') return minimum === undefined ? 'number' : `${minimum} to ${maximum}`
    if (one === 'array') return items === undefined ? 'list' : `list of ${pluralOf(items, root, place)}`
    if (properties !== undefined) return mapText('map', properties, place)
    return typeof additionalProperties === 'object' ? `map of ${pluralOf(additionalProperties, root, place)}` : 'map'
  })
  return [...new Set(texts)].join(' or ')
}

/** A map that has its section at another place than its setting. */
function mapText(text: string, properties: Schema['properties'], { at, described }: Place): string {
  const path = described.get(JSON.stringify(properties))
  const isBelow = path === undefined || path.replace(/(?:\[\]|\.[A-Z]+)$/, '') === at
  return isBelow ? text : linkTo(path, text)
}

/** A long list of values is written once. */
function valuesText(values: readonly string[], { at, described }: Place): string {
  const key = values.join()
  const first = described.get(key) ?? at
  if (values.length < manyValues || first === at) {
    described.set(key, at)
    return values.map(code).join(', ')
  }
  return `as ${linkTo(first.split('.').slice(0, -1).join('.'), code(first.split('.').at(-1)))}`
}

function pluralOf(schema: Schema, root: Schema, place: Place): string {
  const text = typeText(schema, root, place)
  if (text === 'text') return 'texts'
  return /^\[?[a-z]+\b(?!.* )/.test(text) ? text.replace(/[a-z]+/, '$&s') : text
}

function whatText(written: Schema, root: Schema): string {
  const setting = resolved(written, root)
  const { description = '', examples = [], default: fallback, const: only } = setting
  const [example] = examples
  // How a path or a secret is written is described once. Other values are listed or have a section.
  const isKind = /\/(?:path|secret)$/.test(written.$ref ?? '')
  const isListed = setting.enum !== undefined || setting.minimum !== undefined || setting.properties !== undefined
  const isTelling = example !== undefined && fallback === undefined && only === undefined && !isKind && !isListed
  return `${description}${isTelling ? ` Example: ${code(example)}` : ''}`
}

/** A value as it is written in the file, on one line. */
function code(value: unknown): string {
  if (typeof value !== 'string') return `\`${flow(value)}\``
  return `\`${value.includes('\n') ? JSON.stringify(value) : value}\``
}

function flow(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(flow).join(', ')}]`
  if (typeof value !== 'object' || value === null)
    return typeof value === 'string' && /[:{}[\],#*&!|>'"%@` ]/.test(value) ? `'${value}'` : String(value)
  const members = Object.entries(value).map(([name, member]) => `${name}: ${flow(member)}`)
  return members.length === 0 ? '{}' : `{ ${members.join(', ')} }`
}

/** With what it refers to; what stands beside the reference says more. */
function resolved(schema: Schema, root: Schema): Schema {
  if (schema.$ref === undefined) return schema
  const { $ref, ...more } = schema
  return { ...resolved(root.definitions?.[$ref.split('/').at(-1) ?? ''] ?? {}, root), ...more }
}
