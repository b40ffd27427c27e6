/** Basic credentials (RFC 7617). The name may be empty. */
export interface Credentials {
  readonly name: string
  readonly secret: string
}

const credentials = /^basic +([A-Za-z0-9+/]+={0,2}) *$/i
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
  const encoded = credentials.exec(authorization)?.[1]
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
