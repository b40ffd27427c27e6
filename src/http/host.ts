import { ipAddress } from '../core/addresses.ts'
import { GatewayError } from '../core/errors.ts'
import { ownText } from '../wire/own-text.ts'

const authority = /^(?:\[([\da-f:.]+)\]|[\w.-]+)(?::(\d{0,5}))?$/i
const nameSyntax = /^(\[[\da-f:.]+\]|[\w.-]*?)\.?(?::\d{0,5})?$/i

/** The last values, because most requests have the host of the request before. */
let lastAuthority: string | undefined
let lastName: { readonly host: string; readonly name: string } | undefined

/**
 * Whether a text is a host with or without a port, which may be empty (RFC 3986 §3.2). Brackets
 * contain an IPv6 address.
 */
export function isAuthority(text: string): boolean {
  if (text === lastAuthority) return true
  const [whole, literal, port] = authority.exec(text) ?? []
  if (whole === undefined || !isPort(port)) return false
  if (literal !== undefined && (!literal.includes(':') || ipAddress(literal) === undefined)) return false
  lastAuthority = ownText(text)
  return true
}

/** Whether a port number is one of TCP. An absent or empty one is the default port. */
export function isPort(digits: string | undefined): boolean {
  return Number(digits ?? '') <= maxPort
}

/** The largest port number (RFC 9293 §3.1: 16 bits). */
const maxPort = 65_535

/**
 * `Orders.Example.com.:8443` → `orders.example.com`.
 * @throws {GatewayError} ERR_REQUEST_MALFORMED
 */
export function hostName(host: string): string {
  if (host === lastName?.host) return lastName.name
  const name = nameSyntax.exec(host)?.[1]?.toLowerCase()
  if (name === undefined) throw new GatewayError('ERR_REQUEST_MALFORMED', 'Host is malformed')
  lastName = { host: ownText(host), name: ownText(name) }
  return name
}
