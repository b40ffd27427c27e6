import { type StepUp, stepUpParameters } from './step-up.ts'

/** How to get access with an access token (RFC 6750 §3). Without `error`, none was sent. */
export interface BearerChallenge {
  readonly error?: 'invalid_token' | 'insufficient_scope' | 'insufficient_user_authentication' | undefined
  /** The scopes that the request needs. */
  readonly scopes?: readonly string[] | undefined
  /** The authentication that the request needs (RFC 9470 §3). */
  readonly stepUp?: StepUp | undefined
  /** The URL of the metadata of the resource (RFC 9728 §5.1). */
  readonly metadata?: string | undefined
}

/** The value of `WWW-Authenticate`. Quotes and backslashes in values are escaped. */
export function bearerChallenge({ error, scopes = [], stepUp, metadata }: BearerChallenge): string {
  const parameters = {
    ...(error !== undefined && { error }),
    ...(scopes.length > 0 && { scope: scopes.join(' ') }),
    ...stepUpParameters(stepUp),
    ...(metadata !== undefined && { resource_metadata: metadata }),
  }
  const list = Object.entries(parameters).map(([name, value]) => `${name}="${value.replaceAll(/["\\]/g, '\\$&')}"`)
  // A scheme needs a parameter here, because a bare one could be read as part of the next
  // challenge.
  return `Bearer ${list.length === 0 ? 'realm="access-token"' : list.join(', ')}`
}

/** What a request has instead of a session: credentials of its own. */
export type Caller = 'access_token' | 'service_account' | 'client_certificate' | 'key'

/** Basic credentials (RFC 7617). The name may be empty. */
export interface Credentials {
  readonly name: string
  readonly secret: string
}

const basic = /^basic +([A-Za-z0-9+/]+={0,2}) *$/i
/** Any field with the scheme, also one with several schemes. */
const mentionsBasic = /(?:^|,)\s*basic(?:\s|,|$)/i
/** The longest credentials, in characters of base64. */
const longest = 1024
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * The credentials of an `Authorization` header (RFC 7617 §2), in UTF-8. `malformed`: the header has
 * the scheme, but not exactly one name and secret. `undefined`: another scheme, or no header.
 */
export function basicCredentials(authorization: string | undefined): Credentials | 'malformed' | undefined {
  if (authorization === undefined || !mentionsBasic.test(authorization)) return undefined
  const encoded = basic.exec(authorization)?.[1]
  if (encoded === undefined || encoded.length > longest) return 'malformed'
  const text = decoded(encoded)
  const colon = text?.indexOf(':') ?? -1
  // RFC 7617 §2 forbids control characters.
  if (text === undefined || colon === -1 || /\p{Cc}/u.test(text)) return 'malformed'
  return { name: text.slice(0, colon), secret: text.slice(colon + 1) }
}

function decoded(encoded: string): string | undefined {
  try {
    return utf8.decode(Buffer.from(encoded, 'base64'))
  } catch {
    return undefined
  }
}

const bearer = /^bearer +([\w.~+/-]+=*) *$/i
/** Any field with the scheme, also one with several schemes or tokens. */
const mentionsBearer = /(?:^|,)\s*bearer(?:\s|,|$)/i

/**
 * The access token of an `Authorization` header (RFC 6750 §2.1). `malformed`: the header has the
 * scheme, but not exactly one token. `undefined`: another scheme, or no header.
 */
export function bearerToken(authorization: string | undefined): { readonly token: string } | 'malformed' | undefined {
  if (authorization === undefined || !mentionsBearer.test(authorization)) return undefined
  const token = bearer.exec(authorization)?.[1]
  return token === undefined ? 'malformed' : { token }
}

/** Every access key begins with it, so that programs that look for secrets find one. */
export const accessKeyPrefix = 'ghk_'

/** A text that may be an access key, and where a request has it. */
export interface PresentedKey {
  readonly text: string
  readonly by: 'basic' | 'bearer' | 'header'
}

/**
 * The access key in an `Authorization` header: the token, or the password beside any name.
 * `malformed`: the header has one of both schemes, but not exactly one credential.
 */
export function accessKeyIn(authorization: string): PresentedKey | 'malformed' | undefined {
  const bearer = bearerToken(authorization)
  const found = bearer ?? basicCredentials(authorization)
  if (found === undefined || found === 'malformed') return found
  const key =
    'token' in found ? { text: found.token, by: 'bearer' as const } : { text: found.secret, by: 'basic' as const }
  return key.text.startsWith(accessKeyPrefix) ? key : undefined
}

/** Within a JWT, the text is there by chance. */
const mentionsKey = new RegExp(`(?<![\\w.-])${accessKeyPrefix}`)
/** What may be a key in base64, and the greater part of one. */
const encoded = /[\w+/-]{37,}/g
const mostOfKey = new RegExp(`${accessKeyPrefix}[\\w-]{24}`)

/**
 * Whether a field of a request has an access key, which no application gets: also as a name, with
 * another scheme, or in credentials that are malformed here and not for the application.
 */
export function hasAccessKey(lowerCaseName: string, value: string): boolean {
  if (value.includes(accessKeyPrefix) && mentionsKey.test(value)) return true
  if (lowerCaseName !== 'authorization') return false
  return (value.match(encoded) ?? []).some((text) => mostOfKey.test(Buffer.from(text, 'base64').toString('latin1')))
}
