import { amountOf, rateOf } from '../quantities.ts'
import type { GatewaySettings } from '../settings.ts'
import { below, type Report } from './report.ts'
import { fieldName, resolved, type SchemaPart } from './schema-part.ts'

/**
 * Makes settings of a document that has no invalid values, as the schema says: fills in defaults,
 * writes out short forms, turns quantities into numbers, and names fields in camelCase. Reports
 * quantities that are out of range.
 */
export function readSettings(document: object, schema: SchemaPart, report: Report): GatewaySettings {
  return readPart(document, schema, '') as GatewaySettings

  function readPart(written: unknown, reference: SchemaPart, at: string): unknown {
    const part = resolved(reference, schema)
    const value = writtenOut(written === undefined ? part.default : written, part, at, report)
    if (typeof value === 'string' && part.quantity !== undefined) return readQuantity(value, part, at, report)
    if (Array.isArray(value)) return value.map((entry, index) => readPart(entry, part.items ?? {}, below(at, index)))
    return isMap(value) ? readMap(value, part, at) : value
  }

  function readMap(map: Map, { properties, additionalProperties, then }: SchemaPart, at: string): unknown {
    if (properties !== undefined)
      return mapped(properties, (name, part) => [
        fieldName(name, resolved(part, schema)),
        readPart(map[name], part, below(at, name)),
      ])
    if (then !== undefined) return readPart(map, then, at)
    const members = typeof additionalProperties === 'object' ? additionalProperties : {}
    return mapped(map, (name, member) => [name, readPart(member, members, below(at, name))])
  }
}

type Map = Readonly<Record<string, unknown>>

function isMap(value: unknown): value is Map {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Another map with an entry for each entry, except for those without a value. */
function mapped<T>(map: Readonly<Record<string, T>>, entryOf: (name: string, value: T) => [string, unknown]): Map {
  return Object.fromEntries(
    Object.entries(map)
      .map(([name, value]) => entryOf(name, value))
      .filter(([, value]) => value !== undefined),
  )
}

/** The map that a short form stands for. A setting in it has the place of the short form. */
function writtenOut(value: unknown, { short }: SchemaPart, at: string, report: Report): unknown {
  if (short === undefined || value === undefined || value === false || isMap(value)) return value
  if (isMap(short)) return short
  const [name = '', ofTemplates = name] = [short].flat() as string[]
  const setting = String(value).includes('{') ? ofTemplates : name
  report.addShortForm(below(at, setting), at)
  return { [setting]: value }
}

/** Of a quantity out of range, the nearest one in it. */
function readQuantity(text: string, part: SchemaPart, at: string, report: Report): unknown {
  if (part.quantity === 'rate') return rateOf(text)
  const { atLeast = text, atMost = text } = part
  const [least, amount, most] = [amountOf(atLeast), amountOf(text), amountOf(atMost)]
  if (amount < least) report.error(at, `must be at least ${atLeast}`)
  if (amount > most) report.error(at, `must be at most ${atMost}`)
  return Math.min(Math.max(amount, least), most)
}
