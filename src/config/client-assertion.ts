import { objectIn } from '../core/json.ts'
import { readBounded } from './document/files.ts'

/** A JWT that authenticates the client (RFC 7523 §2.2) and that somebody else renews. */
export interface ClientAssertion {
  /** A secret. */
  readonly jwt: string
  readonly iss: string
  readonly sub: string
  readonly aud: readonly string[]
  /** In ms since the epoch. */
  readonly expiresAt: number
}

const maxAssertionBytes = 64 * 1024
const jwtForm = /^[\w-]+\.([\w-]+)\.[\w-]+$/

/**
 * Reads the JWT of `provider.client_assertion`. Its signature is for the provider. Does not throw.
 * @returns the reason why it cannot be used, as the end of a sentence that begins with its file
 */
export function readClientAssertion(file: string, now: number): ClientAssertion | { readonly why: string } {
  const content = readBounded(file, maxAssertionBytes)
  if ('why' in content) return content
  const jwt = content.bytes.toString('latin1').trim()
  const [, payload = ''] = jwtForm.exec(jwt) ?? []
  const claims = objectIn(Buffer.from(payload, 'base64url').toString())
  if (claims === undefined) return { why: 'is not a signed JWT' }
  const { iss, sub, aud, exp } = claims
  const audience = [aud].flat().filter((one) => typeof one === 'string')
  // RFC 7523 §3 requires all of them.
  if (typeof iss !== 'string' || typeof sub !== 'string' || audience.length === 0 || typeof exp !== 'number')
    return { why: 'is a JWT without iss, sub, aud or exp' }
  const expiresAt = exp * 1000
  if (!(now < expiresAt)) return { why: `has expired (exp ${dateText(expiresAt)})` }
  return { jwt, iss, sub, aud: audience, expiresAt }
}

/** What the assertion says about itself, for people. */
export function describeAssertion({ iss, sub, aud, expiresAt }: ClientAssertion): string {
  return `iss ${iss}, sub ${sub}, aud ${aud.join(' and ')}, until ${dateText(expiresAt)}`
}

function dateText(ms: number): string {
  const date = new Date(ms)
  return Number.isNaN(date.getTime()) ? 'in no known year' : date.toISOString()
}
