import { namesOf } from './report.ts'
import { resolved, type SchemaPart } from './schema-part.ts'
import { compiledSchema } from './schema-validator.ts'

/** The names that lead to a map of settings. `NAME` stands for a name of the operator's choice. */
type MapPath = readonly string[]

/**
 * Where a setting of this name is allowed: `at the top level`, `below "upstreams.NAME.logout"`.
 * Only maps that contain the place `at`, or lie within it, because elsewhere the same name has
 * another meaning.
 */
export function mapsWith(name: string, at: string): readonly string[] {
  return pathsOf(name)
    .filter((path) => contains(path, at) || isWithin(path, at))
    .map((path) => (path.length === 0 ? 'at the top level' : `below "${path.join('.')}"`))
}

/** Whether the setting `parent` of the map at `at` is a map with a setting of this name. */
export function isSettingOf(name: string, parent: string, at: string): boolean {
  return pathsOf(name).some((path) => path.at(-1) === parent && isAt(path.slice(0, -1), at))
}

let pathsByName: ReadonlyMap<string, readonly MapPath[]> | undefined

function pathsOf(name: string): readonly MapPath[] {
  return (pathsByName ??= readPaths()).get(name) ?? []
}

function contains(path: MapPath, at: string): boolean {
  const place = placeNames(at)
  return path.every((name, index) => index < place.length && (name === 'NAME' || name === place[index]))
}

function isAt(path: MapPath, at: string): boolean {
  return path.length === placeNames(at).length && contains(path, at)
}

function isWithin(path: MapPath, at: string): boolean {
  const { length } = placeNames(at)
  const rest = path.slice(length)
  return rest.length > 0 && contains(path.slice(0, length), at) && !rest.slice(0, -1).includes('NAME')
}

/** The names of a pointer, without the indexes of lists. */
function placeNames(at: string): string[] {
  return namesOf(at).filter((name) => !/^\d+$/.test(name))
}

/** Reads from the schema, for each name of a setting, the maps that it belongs to. */
function readPaths(): ReadonlyMap<string, readonly MapPath[]> {
  const { schema } = compiledSchema()
  const paths = new Map<string, MapPath[]>()
  const look = (part: SchemaPart, path: MapPath, within: readonly unknown[] = []): void => {
    // A requirement may contain requirements.
    if (part.$ref !== undefined && within.includes(part.$ref)) return
    const inner = [...within, part.$ref]
    const { properties = {}, additionalProperties, items } = resolved(part, schema)
    for (const [key, value] of Object.entries(properties)) {
      paths.set(key, [...(paths.get(key) ?? []), path])
      look(value, [...path, key], inner)
    }
    if (typeof additionalProperties === 'object') look(additionalProperties, [...path, 'NAME'], inner)
    if (items !== undefined) look(items, path, inner)
  }
  look(schema, [])
  return paths
}
