import { GatewayError } from '../core/errors.ts'
import { ownText } from '../core/own-text.ts'

const authority = /^(?:\[[\da-f:.]+\]|[\w.-]+)(?::\d{0,5})?$/i
const nameSyntax = /^(\[[\da-f:.]+\]|[\w.-]*?)\.?(?::\d{0,5})?$/i

/** The last values, because most requests have the host of the request before. */
let lastAuthority: string | undefined
let lastName: { readonly host: string; readonly name: string } | undefined

/** Whether a text is a host with or without a port, which may be empty (RFC 3986 §3.2). */
export function isAuthority(text: string): boolean {
  if (text === lastAuthority) return true
  if (!authority.test(text)) return false
  lastAuthority = ownText(text)
  return true
}

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
