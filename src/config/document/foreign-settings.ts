import { redisUrlOf } from './redis-urls.ts'
import { namesOf } from './report.ts'
import { partAt, resolved, type SchemaPart } from './schema-part.ts'
import { compiledSchema } from './schema-validator.ts'

const usualRedisUrl = 'rediss://redis:6379'

type Values = Readonly<Record<string, unknown>>

/**
 * The hint for a setting that other gateways have, or that is a likely guess; `undefined` for all
 * other names. `at` is the pointer of the map that contains the setting, `map` its settings. The
 * schema has the hints.
 */
export function hintForForeignSetting(name: string, at: string, map: Values): string | undefined {
  const value = map[name]
  const plain = name
    .slice(0, 64)
    .replaceAll(/(?<=[a-z])(?=[A-Z])/g, '_')
    .replaceAll(/[-. /]/g, '_')
    .toLowerCase()
  const { schema } = compiledSchema()
  const { foreign, then, items }: SchemaPart = partAt(namesOf(at), schema) ?? {}
  const ofMap = foreign ?? resolved(then ?? items ?? {}, schema).foreign
  const hint =
    hintIn(ofMap, (pattern) => new RegExp(`^(?:${pattern})$`).test(plain)) ??
    hintIn(schema.foreignAnywhere, (pattern) => new RegExp(pattern).test(`${at}/${plain}`))
  return hint
    ?.replace('%name%', plain)
    .replace('%redis_url%', redisUrlOf(value) ?? usualRedisUrl)
    .replace('%redis_url_here%', redisUrlOf(map) ?? usualRedisUrl)
    .replace(
      /^(write \w+: \[?)([^\s,\]]+)/,
      (_, before: string, example: string) => before + inFormOf(example, addressIn(map, name) ?? value),
    )
}

/** The first hint whose pattern matches. */
function hintIn(
  hints: Readonly<Record<string, string>> = {},
  matches: (pattern: string) => boolean,
): string | undefined {
  return Object.entries(hints).find(([pattern]) => matches(pattern))?.[1]
}

/** The hint for a value that other programs have. `at` is the pointer of the setting. */
export function hintForForeignValue(value: unknown, at: string): string | undefined {
  const plain = String(value).slice(0, 64).replaceAll(/[- ]/g, '_').toLowerCase()
  const { foreignValues } = partAt(namesOf(at), compiledSchema().schema) ?? {}
  return hintIn(foreignValues, (pattern) => new RegExp(pattern).test(plain))
    ?.replace('%redis%', redisMapOf(value))
    .replace('%file%', fileOf(value))
}

/** `HOST:PORT`, where a map of another program has both as settings. */
function addressIn(map: Values, name: string): string | undefined {
  const host = ['host', 'hostname', 'address', 'addr', 'ip', 'server'].find((each) => typeof map[each] === 'string')
  const isPart = host !== undefined && map['port'] !== undefined && (name === host || name === 'port')
  return isPart ? `${String(map[host])}:${String(map['port'])}` : undefined
}

/** The value in the form of an example; the example where the value cannot have that form. */
function inFormOf(example: string, value: unknown): string {
  const text = String(value).replace(/\/\.well-known\/.*/, '')
  const [, scheme = '', port = ''] = /^(\w+:\/\/)?.*?(:\d+)?$/.exec(example) ?? []
  if (/^\d+$/.test(example)) return /^\d{1,9}$/.test(text) ? text : example
  if (/^\d+s$/.test(example))
    return /^\d{1,9}(?:ms|[smhd])$/.test(text)
      ? text
      : text.replace(/^(\d{1,9})$|^.*$/, (_, digits) => (digits ? `${digits}s` : example))
  if (example.startsWith('/')) {
    if (!/^\/[\w./*-]{0,80}$/.test(text)) return example
    return text.includes('*') ? text : text.replace(/\/?$/, /\/\*?$/.exec(example)?.[0] ?? '')
  }
  if (port !== '' && /^\d{1,5}$/.test(text)) return example.replace(/\d+$/, text)
  const isUrl = scheme !== '' && text.split('://')[0] === scheme.split('://')[0]
  if (isUrl) return /^\w+:\/\/[\w.:/-]{1,80}$/.test(text) ? text : example
  const [, host, ownPort] = /^([\w-]+(?:\.[\w-]+)+|localhost|[\w-]+(?=:))(:\d{1,5})?$/.exec(text) ?? []
  return host === undefined || (scheme === '' && port === '') ? example : `${scheme}${host}${ownPort ?? port}`
}

function redisMapOf(value: unknown): string {
  const hasPassword = String(value).includes('@')
  const url = redisUrlOf(value === 'redis' ? undefined : value) ?? usualRedisUrl
  return `{ url: ${url}${hasPassword ? ', password: { env: REDIS_PASSWORD }' : ''} }`
}

/** The file that a path or a URL names; in a folder, the usual name of a file. */
function fileOf(value: unknown): string {
  const path = String(value).replace(/^\w+:(\/\/)?/, '')
  if (!/^\.{0,2}\/[\w./-]+$/.test(path)) return '/var/lib/gatehouse/sessions.db'
  return /[^/.]\.\w+$/.test(path) ? path : `${path.replace(/\/+$/, '')}/sessions.db`
}
