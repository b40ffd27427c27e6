import { isForwardedFact, isRemovableField, isReservedField, withheldReason } from '../../../src/entries/import.ts'
import type { Notes } from '../common/notes.ts'
import { claimPath } from '../common/written-config.ts'
import type { Directive } from './apache-file.ts'
import { argsOf, type Site, valueOf } from './apache-site.ts'

const standardClaims = ['sub', 'email', 'name', 'preferred_username']

interface TranslatedHeaders {
  readonly headers: object
  /** The fields that the application must not get from a client. */
  readonly removed: readonly string[]
}

/** Translates what Apache tells the application about the person, and what clients cannot send. */
export function translateHeaders(site: Site, from: Notes): TranslatedHeaders {
  const [as = 'both'] = argsOf(site, 'OIDCPassClaimsAs') ?? []
  const listed = argsOf(site, 'OIDCWhiteListedClaims')
  const excluded = new Set(argsOf(site, 'OIDCBlackListedClaims') ?? [])
  const join = valueOf(site, 'OIDCClaimDelimiter') ?? ','
  const prefix = (valueOf(site, 'OIDCClaimPrefix') ?? 'OIDC_CLAIM_').replace(/^[^A-Za-z0-9]+/, '')
  const passes = /^(?:both|headers)$/i.test(as) && prefix !== ''
  if (prefix === '')
    from.lost(
      'OIDCClaimPrefix',
      'with an empty prefix, clients could choose claims that a person lacks; name each header in headers',
    )
  if (passes)
    from.changed(
      'OIDCPassClaimsAs',
      `${listed === undefined ? 'mod_auth_openidc sends all claims; the file has those that most applications read: add those that yours needs to headers' : 'only these claims are sent'}; names have "-" in place of "_", and the access token is not sent`,
    )
  const names = (listed ?? standardClaims).filter((claim) => !excluded.has(claim))
  const headers = new Map<string, object>()
  for (const claim of passes ? names : []) set(headers, prefix + claim, { claim: claimPath(claim), join })
  const idToken = argsOf(site, 'OIDCPassIDTokenAs')?.some((each) => /serialized/i.test(each)) ?? false
  if (idToken)
    from.lost(
      'OIDCPassIDTokenAs',
      'OIDC_id_token is not sent; if the application accepts it as a bearer token, write headers: { Authorization: { bearer: id_token } }',
    )
  setRemoteUser(site, headers, from)
  const removed = translateRequestHeaders(site, headers, from)
  // mod_auth_openidc removes the fields of clients with these beginnings.
  const beginnings = ['OIDC_', ...(/^$|^oidc[_-]/i.test(prefix) ? [] : [prefix.replaceAll(/[^A-Za-z0-9]+/g, '-')])]
  const own = new Set([...headers.keys()].map(comparable))
  const others = [...removed, ...(prefix === '' ? [...(listed ?? []), ...standardClaims] : [])]
  return {
    headers: Object.fromEntries(headers),
    removed: [
      ...beginnings.map((beginning) => `${beginning}*`),
      ...[...new Map(others.map((name) => [comparable(name), headerName(name)])).values()].filter(
        (name) => !own.has(comparable(name)) && isRemovable(name),
      ),
    ],
  }
}

/** A name as the file can have it. Applications that read names of CGI take "_" for "-". */
function headerName(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9]+/g, '-').replaceAll(/^-|-$/g, '')
}

/** As names of fields are compared. */
function comparable(name: string): string {
  return headerName(name).toLowerCase()
}

function set(headers: Map<string, object>, name: string, value: object): void {
  unset(headers, name)
  headers.set(headerName(name), value)
}

function unset(headers: Map<string, object>, name: string): void {
  for (const other of headers.keys()) if (comparable(other) === comparable(name)) headers.delete(other)
}

/** Whether a client could send the field without `request_headers`. */
function isRemovable(name: string): boolean {
  const lower = name.toLowerCase()
  return name !== '' && withheldReason(lower) === undefined && (lower === 'cookie' || isRemovableField(lower))
}

function remoteUser({ user }: Site): object {
  const { claim, suffix = '' } = user
  const value = suffix === '' ? { claim: claimPath(claim) } : { template: `{${claimPath(claim)}}${suffix}` }
  // mod_auth_openidc denies people without the claim.
  return { ...value, required: true }
}

function setRemoteUser(site: Site, headers: Map<string, object>, from: Notes): void {
  const name = valueOf(site, 'OIDCAuthNHeader')
  if (name === undefined && site.user.claim !== 'sub')
    from.changed(
      'OIDCRemoteUserClaim',
      `people need the claim ${site.user.claim}; REMOTE_USER becomes the header X-Remote-User`,
    )
  set(headers, name ?? 'X-Remote-User', remoteUser(site))
}

/**
 * Translates `RequestHeader`. Each name that one of them has is set by the gateway, or the
 * application does not get it: a client can never choose its value.
 */
function translateRequestHeaders(site: Site, headers: Map<string, object>, from: Notes): readonly string[] {
  const inSections = site.directives.flatMap(({ children = [] }) => children.flatMap(namesIn))
  const own = site.directives.filter(({ name }) => name === 'requestheader').map(({ args }) => args)
  for (const [action = '', name = '', ...value] of own) {
    const shown = `RequestHeader ${action} ${name}`
    const lower = name.toLowerCase()
    if (['x-forwarded-proto', 'x-forwarded-host', 'x-forwarded-for'].includes(lower)) {
      from.unneeded(shown, 'the gateway sends X-Forwarded-Proto, -Host and -For')
      continue
    }
    // An earlier value does not outlive a directive that is not translated.
    if (/^setifempty$/i.test(action) && [...headers.keys()].some((other) => comparable(other) === comparable(name)))
      continue
    unset(headers, name)
    if (/^unset$/i.test(action)) continue
    const translated = /^set(?:ifempty)?$/i.test(action) ? valueFor(name, value, site, shown, from) : undefined
    const isOwn =
      isReservedField(lower) && !(translated !== undefined && 'value' in translated && isForwardedFact(lower))
    if (translated === undefined || isOwn)
      from.lost(
        shown,
        'its value is not translated, and the application does not get this field from clients; write it below headers of the upstream',
      )
    else set(headers, name, translated)
  }
  // In a section, Apache sends another value.
  for (const name of inSections) unset(headers, name)
  return [...own.map(([, name = '']) => name), ...inSections]
}

/** The names of fields that the directives of a section set or remove. */
function namesIn({ name, args, children = [] }: Directive): readonly string[] {
  if (name === 'requestheader') return [args[1] ?? '']
  return name === 'oidcauthnheader' ? [args[0] ?? ''] : children.flatMap(namesIn)
}

/** VALUE of `RequestHeader set NAME VALUE`: text, or a variable of mod_auth_openidc. */
function valueFor(
  name: string,
  [value = '', ...conditions]: readonly string[],
  site: Site,
  shown: string,
  from: Notes,
): object | undefined {
  const [, variable] = /^(?:expr=)?%\{(?:env:|reqenv:)?(\w+)\}[es]?$/i.exec(value) ?? []
  // A header for each person who has the value itself; other conditions are not translated.
  if (!conditions.every((condition) => condition === `env=${variable ?? ''}`)) return undefined
  if (variable === 'REMOTE_USER') return remoteUser(site)
  if (variable?.startsWith('OIDC_CLAIM_') === true) return { claim: claimPath(variable.slice(11)), join: ',' }
  const isText = /^[^%\p{Cc}\u2028\u2029]+$/u.test(value) && value === value.trim() && !/^expr=/i.test(value)
  if (!isText) return undefined
  if (!/authorization|cookie|key|pass|secret|token/i.test(name)) return { value }
  const environment = name.toUpperCase().replaceAll(/[^A-Z0-9]/g, '_')
  from.changed(shown, `the file contains no secret; set the environment variable ${environment}`)
  return { env: environment }
}
