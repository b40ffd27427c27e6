import type { ClaimPath, ClaimTemplate } from '../core/claims.ts'
import { ownMember } from '../core/json.ts'
import type { HeaderConfig } from './model/header.ts'
import type { SignedIdentityConfig, UpstreamConfig } from './model/upstream.ts'

/**
 * A common limit for all header fields of a request, in bytes. Tomcat has it (maxHttpHeaderSize),
 * and Apache httpd, nginx and gunicorn have it for a single field. Node.js allows 16 KiB.
 */
export const commonHeaderLimitBytes = 8 * 1024

/** Typical lengths of claim values, in bytes; `sub` by OpenID Connect Core §2. */
export const usualBytes: Readonly<Record<string, number>> = {
  sub: 255,
  email: 254,
  name: 128,
  given_name: 64,
  family_name: 64,
  middle_name: 64,
  nickname: 64,
  preferred_username: 128,
  locale: 16,
  zoneinfo: 48,
  email_verified: 5,
  phone_number: 32,
  updated_at: 16,
  iss: 128,
  sid: 128,
  client_id: 128,
}

/** Claims with lists that may be long. Providers often do not list them in `claims_supported`. */
export const usualLists: ReadonlySet<string> = new Set([
  'groups',
  'roles',
  'entitlements',
  'permissions',
  'realm_access',
  'resource_access',
  'cognito:groups',
  'wids',
])

/** The length of a claim in bytes; `undefined` when nothing is known about it. */
export type ClaimLength = (path: ClaimPath, maxBytes: number) => number | undefined

/** The usual length of claims that OpenID Connect defines. */
export const knownLength: ClaimLength = (path) =>
  path.length === 1 ? ownMember(usualBytes, String(path[0])) : undefined

/** `max_bytes` of a header by default. */
const defaultMaxBytes = 4 * 1024
/** An id, a name or a number of another claim is hardly ever longer. */
const shortBytes = 256

/**
 * The length that a claim has to be expected to have. A claim that may be a long list, or for which
 * the configuration raises `max_bytes`, has no other bound than `max_bytes`.
 */
const expectedLength: ClaimLength = (path, maxBytes) => {
  const mayBeLong = path.some((name) => usualLists.has(String(name))) || maxBytes > defaultMaxBytes
  return mayBeLong ? undefined : (knownLength(path, maxBytes) ?? shortBytes)
}

/** The length of a header field, in bytes: name, colon, space, value, CR and LF. */
export function fieldBytes(name: string, valueBytes: number): number {
  return name.length + valueBytes + 4
}

/** An IPv6 address, or a host name with its port, is hardly ever longer. */
const factBytes = 64

/** A JSON Web Token with a few roles usually has this size. */
export const tokenBytes = 2 * 1024

/** The length of a header's value, in bytes. A claim of unknown length has `max_bytes`. */
function valueBytes(header: HeaderConfig, lengthOf: ClaimLength): number {
  const { source } = header
  switch (source.kind) {
    case 'claim':
      return templateBytes([source.path], header, lengthOf)
    case 'first_of':
      return Math.max(...source.firstOf.map((path) => templateBytes([path], header, lengthOf)))
    case 'template':
      return templateBytes(source.template, header, lengthOf)
    case 'constant':
      return Buffer.byteLength(source.value)
    case 'request':
      return factBytes
    case 'basic':
      return Math.ceil((templateBytes(source.user, header, lengthOf) + source.password.length) * 1.4)
    case 'bearer':
    case 'exchanged':
      return tokenBytes
  }
}

/** Encodings other than UTF-8 and Latin-1 write up to three characters for a byte. */
function templateBytes(
  template: ClaimTemplate,
  { encode, maxBytes, changes, join }: HeaderConfig,
  lengthOf: ClaimLength,
): number {
  const factor = encode === 'utf8' || encode === 'latin1' ? 1 : 3
  // A claim consists of replacements only, and a list has each of them once.
  const replaced = changes?.map && [...new Set(changes.map.values())].join(join)
  let bytes = 0
  for (const part of template) {
    const text = typeof part === 'string' ? part : replaced
    const length = typeof text === 'string' ? Buffer.byteLength(text) : lengthOf(part as ClaimPath, maxBytes)
    if (length === undefined) return maxBytes
    bytes += factor * length
  }
  return Math.min(bytes, maxBytes)
}

/** The length of a JWT without the claims that are configured, before its encoding. */
const ownClaimsBytes = 300 + 255

/** The length of the JWT of a signed identity, in bytes. */
function signedIdentityBytes({ claims }: SignedIdentityConfig, lengthOf: ClaimLength): number {
  const ofClaims = claims.map(
    ({ name, path }) => name.length + 6 + (lengthOf(path, defaultMaxBytes) ?? defaultMaxBytes),
  )
  return Math.ceil((ofClaims.reduce((sum, bytes) => sum + bytes, ownClaimsBytes) * 4) / 3)
}

/** The name of each header with the length of its field, in bytes. */
export type FieldSizes = readonly (readonly [name: string, bytes: number])[]

/** The lengths that the identity headers of a request have to be expected to have. */
export function expectedSizes(
  headers: readonly HeaderConfig[],
  { signedIdentity }: Pick<UpstreamConfig, 'signedIdentity'>,
  lengthOf: ClaimLength = expectedLength,
): FieldSizes {
  return [
    ...headers.map((header) => [header.name, fieldBytes(header.name, valueBytes(header, lengthOf))] as const),
    ...(signedIdentity === undefined
      ? []
      : [
          [
            signedIdentity.header,
            fieldBytes(signedIdentity.header, signedIdentityBytes(signedIdentity, lengthOf)),
          ] as const,
        ]),
  ]
}

export function totalOf(sizes: FieldSizes): number {
  return sizes.reduce((sum, [, bytes]) => sum + bytes, 0)
}

/** The names of the fields that are longer than 1 KiB; all names when none is. */
export function longestOf(sizes: FieldSizes): readonly string[] {
  const longest = sizes.filter(([, bytes]) => bytes >= 1024)
  return (longest.length > 0 ? longest : sizes).map(([name]) => name)
}

/** A size as a text for people. */
export function sizeText(bytes: number): string {
  return bytes < 1024 ? `${bytes} bytes` : `${(bytes / 1024).toFixed(1)} KiB`
}
