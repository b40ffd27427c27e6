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
  const sections = sectionsOf({ path: '', schema, within: [] }, schema)
  const parts = sections.map((section) => sectionText(section, schema, needRestart))
  return format(`${head}\n${parts.join('\n')}`, { ...(style as object), parser: 'markdown' })
}

const head = `# Every setting

Made out of [gateway.schema.json](../schemas/gateway.schema.json) by \`npm run reference\`, and held to it by a test: what
[configuration.md](configuration.md) explains, with examples and what to think of, is looked up here. \`gatehouse schema\` prints the
same for an editor.

- NAME and HEADER are names of your own; \`[]\` is each member of a list.
- A default of "required" means that there is none. "—": without the setting nothing is done; the last column says more.
- \`reload\`: a change is taken [while the gateway runs](operations.md#changing-the-configuration); \`restart\`: at the next start.
- How a duration, a size, a rate, a path, an address, a secret are written: [configuration.md](configuration.md#how-values-are-written).
`

function sectionText({ path, schema }: Section, root: Schema, needRestart: readonly string[]): string {
  const rows = Object.entries(schema.properties ?? {}).map(([name, written]) => {
    const setting = resolved(written, root)
    const at = path === '' ? name : `${path}.${name}`
    const shown = setting.default === undefined ? '—' : code(setting.default)
    const fallback = schema.required?.includes(name) === true ? 'required' : shown
    const taken = needRestart.some((above) => at === above || at.startsWith(`${above}.`)) ? 'restart' : 'reload'
    return [code(name), typeText(written, root), fallback, taken, whatText(setting)]
  })
  const table = [['setting', 'type', 'default', 'taken by', 'what'], ['-', '-', '-', '-', '-'], ...rows]
  const lines = table.map((cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`)
  const notes = notesOf(schema)
  return `## ${path === '' ? 'Top level' : path}\n\n${notes}${lines.join('\n')}\n`
}

/** The sections of a map of settings: itself, then the maps in it. */
function sectionsOf(section: Section, root: Schema): Section[] {
  const { path, schema, within } = section
  const inner = Object.entries(schema.properties ?? {}).flatMap(([name, written]) =>
    mapsIn({ path: path === '' ? name : `${path}.${name}`, schema: written, within }, root),
  )
  return [section, ...inner.flatMap((map) => sectionsOf(map, root))]
}

/**
 * The maps of settings that a setting holds: itself, the members of its list, or what stands below
 * names of people's own.
 */
function mapsIn({ path, schema: written, within }: Section, root: Schema): Section[] {
  const { $ref } = written
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
function notesOf({ oneOf, anyOf, dependencies }: Schema): string {
  const alternatives = (of: readonly Schema[] = []) => [
    ...new Set(of.flatMap(({ required = [] }) => required.map(code))),
  ]
  const one = alternatives(oneOf)
  const some = alternatives(anyOf)
  const notes = [
    ...(one.length > 1 ? [`Exactly one of ${one.join(', ')}.`] : []),
    ...(some.length > 1 ? [`At least one of ${some.join(', ')}.`] : []),
    ...Object.entries(dependencies ?? {}).map(
      ([name, needed]) => `${code(name)} needs ${needed.map(code).join(', ')}.`,
    ),
  ]
  return notes.length === 0 ? '' : `${notes.join(' ')}\n\n`
}

function typeText(written: Schema, root: Schema): string {
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
  if (values !== undefined) return [...new Set(values.map(String))].map((value) => `\`${value}\``).join(', ')
  const texts = [type].flat().map((one) => {
    if (one === 'string') return 'text'
    if (one === 'boolean') return '`true`, `false`'
    if (one === 'integer') return minimum === undefined ? 'whole number' : `${minimum} to ${maximum}`
    if (one === 'number') return minimum === undefined ? 'number' : `${minimum} to ${maximum}`
    if (one === 'array') return items === undefined ? 'list' : `list of ${pluralOf(items, root)}`
    if (properties !== undefined || typeof additionalProperties !== 'object') return 'map'
    return `map of ${pluralOf(additionalProperties, root)}`
  })
  return [...new Set(texts)].join(' or ')
}

function pluralOf(schema: Schema, root: Schema): string {
  const text = typeText(schema, root)
  return text === 'text' ? 'texts' : text === 'map' ? 'maps' : /^[a-z]+$/.test(text) ? `${text}s` : text
}

function whatText({ description = '', examples = [], default: fallback, const: only }: Schema): string {
  const [example] = examples
  const isTelling = example !== undefined && fallback === undefined && only === undefined
  return `${description}${isTelling ? ` Example: ${code(example)}` : ''}`
}

/** A value as it is written in the file, on one line. */
function code(value: unknown): string {
  return `\`${typeof value === 'string' ? value : flow(value)}\``
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
