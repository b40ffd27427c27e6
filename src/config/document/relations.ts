import { isObject, type JsonObject, ownMember } from '../../core/json.ts'
import type { Report, Setting } from './report.ts'
import { type Relations, resolved, type SchemaPart } from './schema-part.ts'
import { visitSettings } from './visit-settings.ts'

/**
 * Reports settings that their neighbours make useless or impossible, and those that are missing
 * beside them. The schema has these relations.
 */
export function reportRelations(document: object, schema: SchemaPart, report: Report): void {
  visitSettings(document, schema, report.at(''), (map, { properties, then }, at) => {
    if (isObject(map)) reportMap({ map, properties: properties ?? resolved(then ?? {}, schema).properties ?? {}, at })
    return true
  })

  function reportMap(neighbours: Neighbours): void {
    for (const [setting, { notWith, onlyWith, neededWith }] of Object.entries(neighbours.properties)) {
      const own = neighbours.at.below(setting)
      const isWritten = own.isSet && !report.isInvalid(own.pointer)
      const isAbsent = !own.isSet && neighbours.map[setting] === undefined
      const reason = isWritten
        ? (reasonIn(notWith, true, neighbours) ?? reasonIn(onlyWith, false, neighbours))
        : isAbsent
          ? reasonIn(neededWith, true, neighbours)
          : undefined
      const [message, hint] = (reason ?? []).map((text) => text.replaceAll('%setting%', setting))
      if (message !== undefined) own[isWritten ? 'errorAtKey' : 'missing'](message, hint)
    }
  }

  /** The reason of the first condition that is met, or with `false` of the first that is not. */
  function reasonIn(relations: Relations = {}, wanted: boolean, neighbours: Neighbours): readonly string[] | undefined {
    for (const [condition, reason] of Object.entries(relations)) {
      const isMet = (text: string) => isTrue(text, neighbours) ?? !wanted
      const met = condition.split(' or ').find((each) => each.split(' and ').every(isMet))
      if ((met !== undefined) !== wanted) continue
      const texts = typeof reason === 'string' ? (ownMember(schema.reasons ?? {}, reason) ?? []) : reason
      return texts.map((text) =>
        text
          .replace('%other%', met ?? condition)
          .replaceAll(/%(?!setting%)(\w+)%/g, (_, name: string) => String(valueOf(name, neighbours))),
      )
    }
    return undefined
  }
}

/** The settings of a map, and what the schema says about them. */
interface Neighbours {
  readonly map: JsonObject
  readonly properties: Readonly<Record<string, SchemaPart>>
  readonly at: Setting
}

/**
 * Whether a setting has a value, other than `false` and an empty list, or one that matches a
 * pattern. `undefined`: its value is invalid, so it is not known.
 */
function isTrue(condition: string, neighbours: Neighbours): boolean | undefined {
  const [path = '', pattern] = condition.split(': ')
  const { report, pointer } = neighbours.at.below(...path.split('.'))
  const value = valueOf(path, neighbours)
  if (report.isInvalid(pointer)) return pattern === undefined ? true : undefined
  const isEmpty = Array.isArray(value) && value.length === 0
  if (pattern === undefined) return value !== undefined && value !== false && !isEmpty
  return new RegExp(`^(?:${pattern})$`).test(String(value ?? 'absent'))
}

/** The value of a setting below the map, as it is written, or by default. */
function valueOf(path: string, { map, properties }: Neighbours): unknown {
  const written = path
    .split('.')
    .reduce<unknown>((value, name) => (isObject(value) ? ownMember(value, name) : undefined), map)
  return written ?? ownMember(properties, path)?.default
}
