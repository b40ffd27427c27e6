import { isObject, type JsonObject } from '../../core/json.ts'
import { amountOf, rateOf } from '../quantities.ts'
import type { GatewaySettings } from '../settings.ts'
import { type Format, formats } from './formats.ts'
import type { Report, Setting } from './report.ts'
import { fieldName, resolved, type SchemaPart } from './schema-part.ts'

/**
 * Makes settings of a document that has no invalid values, as the schema says: fills in defaults,
 * writes out short forms, turns quantities into numbers, reads what has a format, and names fields
 * in camelCase. Reports quantities that are out of range, and what cannot be read.
 */
export function readSettings(document: object, schema: SchemaPart, report: Report): GatewaySettings {
  const kinds = new Map<object, Kind>()
  // A pointer that no setting has, because a default is in no file.
  const nowhere = report.at('-')
  return readValue(document, schema, report.at('')) as GatewaySettings

  function readValue(written: unknown, part: SchemaPart, at: Setting): unknown {
    const value = writtenOut(written, part, at)
    if (value !== written && !isObject(part.short)) requirePattern(value as JsonObject, part, at)
    if (typeof value === 'string' && part.quantity !== undefined) return readQuantity(value, part, at)
    if (Array.isArray(value)) return readList(value, part, at)
    const settings = isObject(value) ? readMap(value, part, at) : value
    return part.format === undefined || settings === undefined ? settings : readFormat(settings, part, at)
  }

  /** The schema does not compare a short form with the pattern of the setting that it means. */
  function requirePattern(value: JsonObject, { properties = {} }: SchemaPart, at: Setting): void {
    for (const [name, text] of Object.entries(value)) {
      const { pattern, errorMessage = '' } = properties[name] ?? {}
      if (pattern !== undefined && !new RegExp(pattern).test(String(text))) at.below(name).error(errorMessage)
    }
  }

  function readList(
    list: readonly unknown[],
    { items = {}, examples: [example] = [] }: SchemaPart,
    at: Setting,
  ): unknown {
    const part = resolved(items, schema)
    const members = part.format === undefined ? part : { ...part, examples: [example].flat() }
    const entries = list.map((entry, index) => readValue(entry, members, at.below(index)))
    return entries.filter((entry) => entry !== undefined)
  }

  function readMap(map: JsonObject, { properties, additionalProperties, then }: SchemaPart, at: Setting): unknown {
    if (properties === undefined && then !== undefined) return readMap(map, resolved(then, schema), at)
    const members = typeof additionalProperties === 'object' ? resolved(additionalProperties, schema) : {}
    const { fields, defaults } = properties === undefined ? freeNames : kindOf(properties)
    const settings: Record<string, unknown> = { ...defaults }
    for (const [name, value] of Object.entries(map)) {
      const { field, part } = fields.get(name) ?? { field: name, part: members }
      const read = readValue(value, part, at.below(name))
      if (read !== undefined) settings[field] = read
    }
    return settings
  }

  function kindOf(properties: NonNullable<SchemaPart['properties']>): Kind {
    const known = kinds.get(properties)
    if (known !== undefined) return known
    const parts = Object.entries(properties).map(([name, reference]) => ({ name, part: resolved(reference, schema) }))
    const fields = new Map(parts.map(({ name, part }) => [name, { field: fieldName(name, part), part }]))
    const defaults = [...fields.values()].map(({ field, part }) => [
      field,
      readValue(part.default ?? part.standIn, part, nowhere),
    ])
    const kind = { fields, defaults: Object.fromEntries(defaults) as JsonObject }
    kinds.set(properties, kind)
    return kind
  }
}

/**
 * The settings of a map, and its defaults, which all maps of the kind share. They have all fields,
 * so that the maps have one hidden class, and the code that reads them for each request is fast.
 */
interface Kind {
  readonly fields: ReadonlyMap<string, { readonly field: string; readonly part: SchemaPart }>
  readonly defaults: JsonObject
}

/** A map whose names are of the operator's choice. */
const freeNames: Kind = { fields: new Map(), defaults: {} }

/** The map that a short form means. A setting in it has the place of the short form. */
function writtenOut(value: unknown, { short }: SchemaPart, at: Setting): unknown {
  if (short === undefined || value === undefined || value === false || isObject(value)) return value
  if (isObject(short)) return short
  const [name = '', ofTemplates = name] = [short].flat() as string[]
  const setting = String(value).includes('{') ? ofTemplates : name
  at.addShortForm(setting)
  return { [setting]: value }
}

/** Of a quantity out of range, the nearest one in it. */
function readQuantity(text: string, part: SchemaPart, at: Setting): unknown {
  if (part.quantity === 'rate') return rateOf(text)
  const { atLeast = text, atMost = text } = part
  const [least, amount, most] = [amountOf(atLeast), amountOf(text), amountOf(atMost)]
  if (amount < least) at.error(`must be at least ${atLeast}`)
  if (amount > most) at.error(`must be at most ${atMost}`)
  return Math.min(Math.max(amount, least), most)
}

function readFormat(written: unknown, { format = 'host', examples = [] }: SchemaPart, at: Setting): unknown {
  const { read, hint }: Format = formats[format]
  return at.parse(written, () => read(written as never, at, String(examples[0])), hint?.(String(written)))
}
