import { isObject } from '../core/json.ts'
import { version } from '../core/version.ts'
import type { Report, Setting } from './document/report.ts'
import { resolved, type SchemaPart } from './document/schema-part.ts'

/** The first version of Gatehouse. A setting without `since` in the schema exists since then. */
const firstVersion = '0.1.0'

/** A setting that has another name since a version. */
export interface RenamedSetting {
  /** The former path. `*` is any name or index: `upstreams.*.timeout`. */
  readonly from: string
  /** The present path, with as many `*`, for the same names. */
  readonly to: string
  /** The version that renamed it. */
  readonly since: string
  /** The first version that does not understand the former name. */
  readonly until: string
}

/** Each setting that was renamed. The reader, `gatehouse check` and `gatehouse migrate` use it. */
export const renamedSettings: readonly RenamedSetting[] = []

/** For which version of Gatehouse a file is read. */
export interface ReadFor {
  /** Default: this version. */
  readonly version?: string
  /** Default: {@link renamedSettings}. */
  readonly renamed?: readonly RenamedSetting[]
  /** The client is registered later, so its secret need not exist yet. */
  readonly isUnregistered?: boolean
}

/** Whether one version is newer than another, or the same. */
function isAtLeast(one: string, other: string): boolean {
  const [a = [], b = []] = [one, other].map((text) => text.split('.').map(Number))
  const at = a.findIndex((number, index) => number !== b[index])
  return at === -1 || (a[at] ?? 0) > (b[at] ?? 0)
}

/**
 * Reads a version for which a file can be checked.
 * @throws {SyntaxError} when this version of Gatehouse does not know it
 */
export function parseKnownVersion(text: string): string {
  if (!/^\d{1,6}(?:\.\d{1,6}){2}$/.test(text)) throw new SyntaxError(`must be a version, such as ${version}`)
  if (!isAtLeast(version, text))
    throw new SyntaxError(
      `this is Gatehouse ${version}, which does not know ${text}: use gatehouse check of that version`,
    )
  if (!isAtLeast(text, firstVersion)) throw new SyntaxError(`there is no version before ${firstVersion}`)
  return text
}

/**
 * Gives settings with a former name their present one, with a warning each. Reports those that the
 * version does not understand any more, and those that have both names.
 */
export function readRenamed(document: object, report: Report, read: ReadFor): void {
  for (const rule of read.renamed ?? renamedSettings)
    for (const from of occurrencesOf(document, rule.from.split('.')))
      readOne(document, { rule, from, to: presentNames(rule, from) }, report, read.version ?? version)
}

interface Occurrence {
  readonly rule: RenamedSetting
  readonly from: readonly string[]
  readonly to: readonly string[]
}

function readOne(document: object, { rule, from, to }: Occurrence, report: Report, readFor: string): void {
  const [former, present] = [report.at('').below(...from), report.at('').below(...to)]
  const { since, until } = rule
  const entry = report.entry(former.pointer)
  if (present.isSet)
    return former.errorAtKey(`was renamed to ${present.path} in ${since}, which is set too`, 'remove one of the two')
  const isGone = isAtLeast(readFor, until)
  const hint = `write ${present.path}; "gatehouse migrate" rewrites the file`
  if (isGone) former.errorAtKey(`was renamed in ${since}, and ${until} does not understand this name`, hint)
  else if (isAtLeast(readFor, since))
    report.record(
      'warning',
      former.place,
      former.path,
      `was renamed in ${since}; ${until} will not understand this name`,
      hint,
    )
  const { file } = former.place
  // The upstreams of an included file are the whole of that file.
  const start = file === report.at('').place.file ? 0 : 1
  report.renames.push({ file, from: from.slice(start), to: to.slice(start) })
  if (isGone) return
  if (entry !== undefined) present.addPlace(entry)
  setAt(document, to, valueAt(document, from))
  deleteAt(document, from)
}

/** The paths of all settings that a pattern names. */
function occurrencesOf(value: unknown, pattern: readonly string[], path: readonly string[] = []): string[][] {
  const [name, ...rest] = pattern
  if (name === undefined) return [[...path]]
  if (typeof value !== 'object' || value === null) return []
  const names = name === '*' ? Object.keys(value) : Object.hasOwn(value, name) ? [name] : []
  return names.flatMap((each) => occurrencesOf((value as Record<string, unknown>)[each], rest, [...path, each]))
}

function presentNames({ from, to }: RenamedSetting, names: readonly string[]): string[] {
  const pattern = from.split('.')
  const chosen = names.filter((_, index) => pattern[index] === '*')
  return to.split('.').map((name) => (name === '*' ? (chosen.shift() ?? name) : name))
}

function valueAt(document: object, names: readonly string[]): unknown {
  return names.reduce<unknown>((value, name) => (value as Record<string, unknown>)[name], document)
}

function setAt(document: object, names: readonly string[], value: unknown): void {
  let map = document as Record<string, unknown>
  for (const name of names.slice(0, -1)) {
    const next = map[name]
    // A value of another type is reported by the schema.
    map[name] = typeof next === 'object' && next !== null ? next : {}
    map = map[name] as Record<string, unknown>
  }
  map[names.at(-1) ?? ''] = value
}

function deleteAt(document: object, names: readonly string[]): void {
  const map = valueAt(document, names.slice(0, -1)) as Record<string, unknown>
  delete map[names.at(-1) ?? '']
}

/** Reports each setting that a version does not have yet: the schema says since when it exists. */
export function reportNewer(document: object, schema: SchemaPart, report: Report, readFor: string): void {
  look(document, schema, report.at(''))

  function look(value: unknown, reference: SchemaPart, at: Setting): void {
    const part = resolved(reference, schema)
    if (part.since !== undefined && !isAtLeast(readFor, part.since))
      at.errorAtKey(`needs Gatehouse ${part.since} or newer`, `remove it for ${readFor}`)
    else if (Array.isArray(value)) value.forEach((entry, index) => look(entry, part.items ?? {}, at.below(index)))
    else if (isObject(value)) lookAtMap(value, part, at)
  }

  function lookAtMap(map: object, part: SchemaPart, at: Setting): void {
    const { properties = {}, additionalProperties, then } = part
    if (part.properties === undefined && then !== undefined) return lookAtMap(map, resolved(then, schema), at)
    const others = typeof additionalProperties === 'object' ? additionalProperties : {}
    for (const [name, value] of Object.entries(map))
      look(value, Object.hasOwn(properties, name) ? (properties[name] ?? {}) : others, at.below(name))
  }
}
