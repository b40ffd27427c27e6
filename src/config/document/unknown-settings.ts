import type { ErrorObject } from 'ajv'
import { isFieldOfResponses } from '../../core/header-fields.ts'
import { didYouMean } from './did-you-mean.ts'
import { hintForForeignSetting } from './foreign-settings.ts'
import { below, namesOf, type Report } from './report.ts'
import { resolved, type SchemaPart } from './schema-part.ts'
import { compiledSchema } from './schema-validator.ts'

/** Reports an unknown setting. The one that was probably meant is not reported as missing too. */
export function reportUnknown(error: ErrorObject, report: Report): void {
  const name = String(error.params['additionalProperty'])
  const known = Object.keys((error.parentSchema?.['properties'] as object | undefined) ?? {})
  const map = report.at(error.instancePath)
  if (map.below(name).isReported) return
  const values = error.data as Record<string, unknown>
  const value = values[name]
  const foreign = hintForForeignSetting(name, error.instancePath, values)
  const similar = didYouMean(name, known)
  // `host` and `certificate` of other programs are one letter from `hosts` and `certificates`.
  const isOther = similar === `${name}s` && foreign?.startsWith(`write ${similar}:`) === false
  const meant = isOther ? undefined : similar
  // The only unknown setting is probably the only one that is missing.
  const required: readonly string[] = error.parentSchema?.['required'] ?? []
  const [absent, ...further] = required.filter((each) => !Object.hasOwn(values, each))
  const unknown = Object.keys(values).filter((each) => !known.includes(each))
  const { type, $ref }: SchemaPart & { type?: string } = error.parentSchema?.['properties']?.[absent ?? ''] ?? {}
  const types = [type ?? ($ref && 'string')].flat()
  const isAbsent = absent !== undefined && further.length === 0 && unknown.length === 1 && types.includes(typeof value)
  const hint = hintForUnknown(
    name,
    value,
    meant,
    foreign ?? (isAbsent ? `write ${absent} in place of ${name}` : undefined),
    known,
    error,
  )
  // Several settings may be one together, such as host and port.
  const isSame = (each: string) =>
    hint.startsWith('write ') && hint === hintForForeignSetting(each, error.instancePath, values)
  const others = Object.keys(values).filter((each) => each !== name && !known.includes(each) && isSame(each))
  map
    .below(name)
    .errorAtKey(others.length === 0 ? 'unknown setting' : `unknown setting, like ${others.join(', ')}`, hint)
  for (const each of others) map.below(each).markReported()
  if (meant === undefined) for (const at of placesOf(name, error.instancePath)) report.at(at).markReported()
  const [, written, outer] = /^(?:write (\w+)|it belongs below ".*\.(\w+)")/.exec(hint) ?? []
  const instead = meant ?? written ?? outer
  const meantAt = map.below(instead ?? '')
  if (instead !== undefined && instead === namesOf(map.pointer).at(-1)) map.markReported()
  if (instead !== undefined && known.includes(instead) && !meantAt.isSet) meantAt.markReported()
}

/** `X-Remote-User`, `Authorization`. No setting has a name in this form. */
const headerName = /^(?:[A-Z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)+|Authorization)$/

function hintForUnknown(
  name: string,
  value: unknown,
  meant: string | undefined,
  foreign: string | undefined,
  known: readonly string[],
  error: ErrorObject,
): string {
  if (error.instancePath === '' && isUpstream(name, value))
    return 'an upstream belongs below upstreams: indent it further'
  if (name === '<<') return 'YAML 1.2 has no merge keys; write all settings'
  if (name.includes('{') || (value === null && known.includes('template')))
    return `put the template in quotes: "${name.includes('{') ? name : `{${name}}`}"`
  if (meant !== undefined) return `did you mean "${meant}"?`
  if (headerName.test(name)) {
    if (known.includes('set') && known.includes('remove')) return `write set: { ${name}: … }`
    if (known.includes('response_headers') && isFieldOfResponses(name))
      return `write response_headers: { set: { ${name}: … } }`
    if (known.includes('headers')) return 'a header belongs below headers: indent it further'
    if (error.instancePath.endsWith('/request_headers'))
      return `write headers: { ${name}: { value: … } } at the upstream: request_headers only removes`
    if (error.instancePath === '')
      return `write it in an upstream: ${isFieldOfResponses(name) ? `response_headers: { set: { ${name}: … } }` : `headers: { ${name}: … }`}`
  }
  if (known.includes('claim') && known.includes('any_of'))
    return `to require values of a claim of this name, write claim: ${name}, and any_of, all_of or none_of beside it`
  if (foreign !== undefined) return foreign
  // The value of a secret is never written in the file, whatever the name of the setting.
  const elsewhere = known.join() === 'env,file' ? [] : mapsWith(name, error.instancePath)
  if (elsewhere.length > 0 && elsewhere.length < 4) return `it belongs ${elsewhere.join(' or ')}`
  return hintForJoinedName(name, known, error.instancePath) ?? hintFromList(name, known)
}

/** Whether an entry at the top level looks like an upstream, and not like the address of Redis. */
function isUpstream(name: string, value: unknown): boolean {
  if (typeof value !== 'object' || value === null || !('url' in value)) return false
  const url = String(value.url)
  return /^(redis|valkey)$/i.test(name) ? /^https?:/i.test(url) : !/^rediss?:/i.test(url)
}

/** A name is hard to find in a longer list. */
export const maxListed = 30

/** The hint for `cookie_name` where `cookie: { name: … }` is meant. */
function hintForJoinedName(name: string, known: readonly string[], at: string): string | undefined {
  for (const parent of known.filter((each) => name.startsWith(`${each}_`))) {
    const inner = name.slice(parent.length + 1)
    if (isSettingOf(inner, parent, at)) return `write ${parent}: { ${inner}: … }`
  }
  return undefined
}

function hintFromList(name: string, known: readonly string[]): string {
  if (known.length <= maxListed) return `settings here: ${known.join(', ')}`
  const words = name.split('_').filter((word) => word.length > 3)
  const similar = known.filter((each) => each.split('_').some((word) => words.includes(word)))
  return similar.length > 0
    ? `settings here with a similar name: ${similar.join(', ')}`
    : 'there is no setting of this kind here; docs/reference.md lists all settings'
}

/** The names that lead to a map of settings. `NAME` is a name of the operator's choice. */
type MapPath = readonly string[]

/**
 * Where a setting of this name is allowed: `at the top level`, `below "upstreams.NAME.logout"`.
 * Only maps that contain the place `at`, or lie within it, because elsewhere the same name has
 * another meaning.
 */
function mapsWith(name: string, at: string): readonly string[] {
  return pathsOf(name)
    .filter((path) => contains(path, at) || isWithin(path, at))
    .map((path) => (path.length === 0 ? 'at the top level' : `below "${path.join('.')}"`))
}

/** The settings of this name that are probably meant by one at the wrong level, at `at`. */
function placesOf(name: string, at: string): readonly string[] {
  const place = namesOf(at)
  return pathsOf(name)
    .flatMap((path) => {
      if (isWithin(path, at) && placeNames(at).length === place.length) return [[...place, ...path.slice(place.length)]]
      return contains(path, at) && !path.slice(place.length).includes('NAME') ? [place.slice(0, path.length)] : []
    })
    .map((names) => [...names, name].reduce<string>(below, ''))
}

/** Whether the setting `parent` of the map at `at` is a map with a setting of this name. */
function isSettingOf(name: string, parent: string, at: string): boolean {
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
