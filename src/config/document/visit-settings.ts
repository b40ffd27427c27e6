import { isObject, type JsonObject, ownMember } from '../../core/json.ts'
import type { Setting } from './report.ts'
import { resolved, type SchemaPart } from './schema-part.ts'

/** A map of a document, and what the schema says about its settings. */
export interface SettingsMap {
  readonly map: JsonObject
  readonly properties: Readonly<Record<string, SchemaPart>>
  readonly at: Setting
  /** The map that contains it, also in a list. Absent: it is the whole document. */
  readonly around: SettingsMap | undefined
}

/**
 * Calls `visit` for each setting of a document with its part of the schema, and its value if it is
 * a map; not for those below a setting for which it returns `false`.
 */
export function visitSettings(
  document: object,
  schema: SchemaPart,
  root: Setting,
  visit: (part: SchemaPart, at: Setting, map: SettingsMap | undefined) => boolean,
): void {
  look(document, schema, root, undefined)

  function look(value: unknown, reference: SchemaPart, at: Setting, around: SettingsMap | undefined): void {
    const own = resolved(reference, schema)
    const { properties, additionalProperties: others, items = {} } = own
    const part = isObject(value) && properties === undefined ? { ...own, ...resolved(own.then ?? {}, schema) } : own
    const map = isObject(value) ? { map: value, properties: part.properties ?? {}, at, around } : undefined
    if (!visit(own, at, map)) return
    if (Array.isArray(value)) value.forEach((entry, index) => look(entry, items, at.below(index), around))
    for (const [name, member] of Object.entries(map?.map ?? {}))
      look(
        member,
        ownMember(map?.properties ?? {}, name) ?? (typeof others === 'object' ? others : {}),
        at.below(name),
        map,
      )
  }
}
