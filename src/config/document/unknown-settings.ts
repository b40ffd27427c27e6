import type { ErrorObject } from 'ajv'
import { didYouMean } from './did-you-mean.ts'
import { namesOf, type Report } from './report.ts'
import { resolved, type SchemaPart } from './schema-part.ts'
import { compiledSchema } from './schema-validator.ts'

/** Reports an unknown setting. The one that was probably meant is not reported as missing too. */
export function reportUnknown(error: ErrorObject, report: Report): void {
  const name = String(error.params['additionalProperty'])
  const known = Object.keys((error.parentSchema?.['properties'] as object | undefined) ?? {})
  const meant = didYouMean(name, known)
  const map = report.at(error.instancePath)
  map.below(name).errorAtKey('unknown setting', hintForUnknown(name, meant, known, error))
  const meantAt = map.below(meant ?? '')
  if (meant !== undefined && !meantAt.isSet) meantAt.markReported()
}

/** `X-Remote-User`, `Authorization`. No setting has a name in this form. */
const headerName = /^(?:[A-Z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)+|Authorization)$/

function hintForUnknown(name: string, meant: string | undefined, known: readonly string[], error: ErrorObject): string {
  const value = (error.data as Record<string, unknown>)[name]
  if (error.instancePath === '' && typeof value === 'object' && value !== null && 'url' in value)
    return 'an upstream belongs below upstreams: indent it further'
  if (name === '<<') return 'YAML 1.2 has no merge keys; write all settings'
  if (name.includes('{') || (value === null && known.includes('template')))
    return `put the template in quotes: "${name.includes('{') ? name : `{${name}}`}"`
  if (meant !== undefined) return `did you mean "${meant}"?`
  if (known.includes('headers') && headerName.test(name)) return 'a header belongs below headers: indent it further'
  if (known.includes('claim') && known.includes('any_of'))
    return `to require values of a claim of this name, write claim: ${name}, and any_of, all_of or none_of beside it`
  const foreign = hintForForeignSetting(name, error.instancePath)
  if (foreign !== undefined) return foreign
  if (/^(skip|insecure|disable)_/.test(name) || /_(skip|insecure)_/.test(name))
    return 'checks cannot be switched off; to trust your own certificate authority, use ca_file'
  // The value of a secret is never written in the file, whatever the name of the setting.
  const elsewhere = known.join() === 'env,file' ? [] : mapsWith(name, error.instancePath)
  if (elsewhere.length > 0 && elsewhere.length < 4) return `it belongs ${elsewhere.join(' or ')}`
  return hintForJoinedName(name, known, error.instancePath) ?? hintFromList(name, known)
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

/**
 * Hints for settings that the schema does not have: those of other gateways and web frameworks, and
 * likely guesses. The pattern matches the pointer of the setting.
 */
const hints: readonly (readonly [setting: RegExp, hint: string])[] = [
  [
    /\/(post_?logout_?redirect|logout|sign_?out)_?ur[il]s?$/,
    'remove it: this address follows from external_url and reserved_prefix; "gatehouse check" prints it',
  ],
  [
    /\/(redirect|redirection|callback|reply)_?(ur[il]s?|path)$/,
    'remove it: the redirect URI follows from external_url and reserved_prefix; "gatehouse check" prints what to register at the provider',
  ],
  [
    /\/(trust(ed)?_?(proxy|proxies|forward\w*|x_?forwarded\w*)|reverse_?proxy|real_?(client_?)?ip\w*|(x_)?forwarded_\w+)$/,
    'write trusted_proxies at the top level, with the addresses of the proxies in front of the gateway: trusted_proxies: [10.0.0.0/8]',
  ],
  [
    /(\/session(\/cookie)?\/|cookie_?)domains?$/,
    'the session cookie is for one host; for one session on all hosts of a domain, write session.cookie.domain after you have read about its risks',
  ],
  [
    /(\/session(\/cookie)?\/|cookie_?)(secure|http_?only|path)$/,
    'remove it: the session cookie is always HttpOnly with Path=/, and Secure when external_url is https',
  ],
  [
    /(\/session(\/cookie)?\/|cookie_?)(max_?age|expires?|expiry|expiration|ttl|lifetime|refresh|duration|timeout)$/,
    'write session.idle_timeout and session.absolute_timeout, which limit how long a session lasts',
  ],
  [/\/basic\/(user_?name|login|name|claim)$/, 'write user: preferred_username, or another claim path or template'],
  [
    /\/logout\/call\/(path|ur[il]|method|put|patch|delete|head)$/,
    'write call: { get: /logout } or call: { post: /logout }; no other method is possible',
  ],
  [/^\/credentials$/, 'write client_id and client_secret below provider'],
  [
    /^\/upstreams\/[^/]+\/credentials$/,
    'write cors: { credentials: true }, or client_id and client_secret below provider',
  ],
  [
    /^\/upstreams\/[^/]+\/(bearer|(access_?)?token|authorization|id_?token)$/,
    'write headers: { Authorization: { bearer: access_token } }',
  ],
  [
    /^\/providers?(\/[^/]+)?\/(preset|type|kind|vendor|name)$/,
    'remove it: the gateway reads what the provider supports from its issuer',
  ],
  [
    /^\/upstreams\/[^/]+\/(access|public\w*|anonymous|auth|authentication|require_?auth\w*|white_?list|bypass\w*|skip_\w+|exclude\w*|unprotected\w*|no_?auth)$/,
    'write a rule: rules: [{ path: /health, access: public }]',
  ],
  [
    /^\/upstreams\/[^/]+\/(http_?[123]|h2c?|http_?version|grpc|protocol|alpn)$/,
    'remove it: the gateway uses HTTP/1.1 with upstreams',
  ],
  [/^\/upstreams\/[^/]+\/(allow_)?(ws|web_?sockets?)$/, 'remove it: WebSockets need no setting'],
  [
    /^\/upstreams\/[^/]+\/(proxy_?pass|backend|target|servers?|upstream|to|service|destination|uri|addr|address|port)$/,
    'write url: http://127.0.0.1:3000',
  ],
  [
    /^\/upstreams\/[^/]+\/(server_?name|domains?|host_?names?|virtual_?host|fqdn)$/,
    'write external_url: https://HOST, or hosts: [HOST] for further hosts of the same upstream',
  ],
  [/^\/upstreams\/[^/]+\/(location|(path_?)?prefix|route|context_?path|base_?path)$/, 'write path: /shop/'],
  [/^\/upstreams\/[^/]+\/(strip_\w*prefix|rewrite(_\w+)?)$/, 'write path: /shop/ and strip_path: true'],
  [/^\/upstreams\/[^/]+\/(preserve|pass|forward)_?host(_header)?$/, 'write host_header: client'],
  [
    /^\/upstreams\/[^/]+\/((proxy_)?(read|send|request|write)_?)?timeout$/,
    'write connect_timeout, response_timeout or idle_timeout',
  ],
  [/^\/(metrics|health\w*|live\w*|ready|readiness|status|prometheus)$/, 'write admin: { listen: 127.0.0.1:9090 }'],
  [
    /^\/(tls|ssl|https|certs?|certificates?)$/,
    'write listen: { address: 0.0.0.0:443, tls: { cert_file: /run/tls/tls.crt, key_file: /run/tls/tls.key } }',
  ],
  [/^\/listen\/tls\/(cert|certificate|crt|chain|full_?chain)$/, 'write cert_file: PATH'],
  [/^\/listen\/tls\/(key|private_?key)$/, 'write key_file: PATH'],
  [
    /^\/(routers?|services?|middlewares|entry_?points|http|server|apps?|applications?|routes|sites?|backends?)$/,
    'write upstreams: { orders: { url: http://127.0.0.1:3000 } }',
  ],
  [/^\/redis$/, 'write session: { store: { redis: { url: rediss://redis:6379 } } }'],
  [
    /^\/session\/store\/(type|kind|url|hosts?|port|address)$/,
    'write store: { redis: { url: rediss://redis:6379 } }, or store: memory',
  ],
  [/^\/upstreams\/[^/]+\/logout\/(ur[il]|path|link)$/, 'write paths: [/logout], the logout link of the application'],
  [/^\/upstreams\/[^/]+\/logout\/\w*cookies$/, 'write cookies: [NAME]'],
  [
    /^\/upstreams\/[^/]+\/tests\/\d+\/(request|method|path|ur[il]|status|code)$/,
    'write the method with the path, and the outcome: { get: /orders, expect: sign_in }',
  ],
  [/\/cookie_?(secret|key)s?$/, 'write session.keys: [{ env: NAME }] or [{ file: PATH }]'],
  [
    /^\/upstreams\/[^/]+\/(allow|deny|den(y|ied)_\w+|allow(ed)?_\w+|permit|forbid|restrict|authoriz\w+|polic(y|ies)|roles?|groups?|users?|emails?)$/,
    'write a rule: rules: [{ path: /*, require: { claim: groups, any_of: [admins] } }]; none_of excludes people',
  ],
  [
    /\/rules\/\d+\/(allow|deny|den(y|ied)_\w+|allow(ed)?_\w+|permit|forbid|restrict|authoriz\w+|polic(y|ies)|roles?|groups?|users?|emails?)$/,
    'write require: { claim: groups, any_of: [admins] }; none_of excludes people, and access: public lets everybody in',
  ],
]

/**
 * The hint for a setting that other gateways have, or that is a likely guess; `undefined` for all
 * other names. `at` is the pointer of the map that contains the setting.
 */
function hintForForeignSetting(name: string, at: string): string | undefined {
  const plain = name
    .slice(0, 64)
    .replaceAll(/(?<=[a-z])(?=[A-Z])/g, '_')
    .replaceAll(/[-. /]/g, '_')
    .toLowerCase()
  return hints.find(([setting]) => setting.test(`${at}/${plain}`))?.[1]
}
