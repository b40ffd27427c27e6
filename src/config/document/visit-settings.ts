import { isObject } from '../../core/json.ts'
import type { Setting } from './report.ts'
import { resolved, type SchemaPart } from './schema-part.ts'

/**
 * Calls `visit` for each setting of a document with its part of the schema; not for those below a
 * setting for which it returns `false`. The whole document is the first one.
 */
export function visitSettings(
  document: object,
  schema: SchemaPart,
  root: Setting,
  visit: (value: unknown, part: SchemaPart, at: Setting) => boolean,
): void {
  look(document, schema, root)

  function look(value: unknown, reference: SchemaPart, at: Setting): void {
    const part = resolved(reference, schema)
    if (!visit(value, part, at)) return
    if (Array.isArray(value)) value.forEach((entry, index) => look(entry, part.items ?? {}, at.below(index)))
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
