import { isObject, ownMember } from '../../core/json.ts'
import type { Report } from './report.ts'
import type { Relations, SchemaPart } from './schema-part.ts'
import { type SettingsMap, visitSettings } from './visit-settings.ts'

/**
 * Reports settings that other settings make useless or impossible, and those that are missing
 * beside others. The schema has these relations.
 */
export function reportRelations(document: object, schema: SchemaPart, report: Report): void {
  visitSettings(document, schema, report.at(''), (_part, _at, map) => {
    for (const [setting, part] of Object.entries(map?.properties ?? {})) if (map !== undefined) look(setting, part, map)
    return true
  })

  function look(setting: string, { notWith, onlyWith, neededWith }: SchemaPart, map: SettingsMap): void {
    if ((notWith ?? onlyWith ?? neededWith) === undefined) return
    const own = map.at.below(setting)
    const isWritten = own.isSet && !report.isInvalid(own.pointer)
    const isAbsent = !own.isSet && map.map[setting] === undefined
    const reason = isWritten
      ? (reasonIn(notWith, true, map) ?? reasonIn(onlyWith, false, map))
      : isAbsent
        ? reasonIn(neededWith, true, map)
        : undefined
    const [message, hint] = (reason ?? []).map((text) => text.replaceAll('%setting%', setting))
    if (message !== undefined) own[isWritten ? 'errorAtKey' : 'missing'](message, hint)
  }

  /** The reason of the first condition that is met, or with `false` of the first that is not. */
  function reasonIn(relations: Relations = {}, wanted: boolean, map: SettingsMap): readonly string[] | undefined {
    for (const [condition, reason] of Object.entries(relations)) {
      const isMet = (text: string) => isTrue(text, map) ?? !wanted
      const met = condition.split(' or ').find((each) => each.split(' and ').every(isMet))
      if ((met !== undefined) !== wanted) continue
      const texts = typeof reason === 'string' ? (ownMember(schema.reasons ?? {}, reason) ?? []) : reason
      return texts.map((text) =>
        text
          .replace('%other%', met ?? condition)
          .replaceAll(/%(?!setting%)(\w+)%/g, (_, name: string) => String(valueOf(name, map))),
      )
    }
    return undefined
  }
}

/**
 * Whether a setting has a value, other than `false` and an empty list, or one that matches a
 * pattern. `undefined`: its value is invalid, so it is not known.
 */
function isTrue(condition: string, map: SettingsMap): boolean | undefined {
  if (condition.startsWith('^')) return map.around && isTrue(condition.slice(1), map.around)
  const [path = '', pattern] = condition.split(': ')
  const { report, pointer } = map.at.below(...path.split('.'))
  const value = valueOf(path, map)
  if (report.isInvalid(pointer)) return pattern === undefined ? true : undefined
  const isEmpty = Array.isArray(value) && value.length === 0
  if (pattern === undefined) return value !== undefined && value !== false && !isEmpty
  return new RegExp(`^(?:${pattern})$`, 'i').test(String(value ?? 'absent'))
}

/** The value of a setting below the map, as it is written, or by default. */
function valueOf(path: string, { map, properties }: SettingsMap): unknown {
  const written = path
    .split('.')
    .reduce<unknown>((value, name) => (isObject(value) ? ownMember(value, name) : undefined), map)
  return written ?? ownMember(properties, path)?.default
}
