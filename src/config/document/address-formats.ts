import { asciiDomain, ipAddress, type Subnet } from '../../core/addresses.ts'
import { isLoopback, parseHost, parseHttpUrl, parseOrigin, parseSubnet, parseUpstreamPath } from '../addresses.ts'

/** Hosts that are reached without the proxy. Absent `port`: at any port. */
export type NoProxy =
  | { readonly kind: 'all' }
  /** The host and its subdomains. */
  | { readonly kind: 'host'; readonly host: string; readonly port: number | undefined }
  | { readonly kind: 'subnet'; readonly subnet: Subnet; readonly port: number | undefined }

/** Where an application listens. */
export interface TargetAddress {
  /** With `socketPath`, `http://localhost`: the scheme and the host for a request. */
  readonly url: URL
  /** The path of a socket in the file system. Absent: connections are over TCP. */
  readonly socketPath: string | undefined
}

/**
 * An http or https URL, or `unix:` and the path of a socket.
 * @throws {SyntaxError} names what is wrong
 */
export function parseTarget(text: string): TargetAddress {
  const socketPath = /^unix:(.*)$/s.exec(text)?.[1]
  if (socketPath === undefined) return { url: parseUrl(text), socketPath }
  if (!/^\/(?!\/)/.test(socketPath))
    throw new SyntaxError('must have an absolute path after "unix:", as in unix:/run/app.sock')
  // sun_path of unix(7), with the byte that ends it.
  if (Buffer.byteLength(socketPath) > 107) throw new SyntaxError('has a path that is longer than 107 bytes')
  return { url: new URL('http://localhost'), socketPath }
}

function parseUrl(text: string): URL {
  const scheme = /^(grpcs?|h2c?|http2|wss?|tcp|fcgi|fastcgi|uwsgi):\/\//i.exec(text)?.[1]?.toLowerCase()
  if (scheme !== undefined) throw new SyntaxError(`must not begin with ${scheme}://; ${hintForScheme(scheme)}`)
  const url = parseHttpUrl(text, 'http://127.0.0.1:3000')
  // Checks the path as it is written, because the URL parser removes dot segments.
  parseUpstreamPath(/^[^:]+:\/\/[^/]*(\/.*)?$/.exec(text)?.[1] ?? '/')
  return url
}

function hintForScheme(scheme: string): string {
  if (/^(?:grpc|h2c)$/.test(scheme)) return 'write http:// here, and protocol: h2c beside it'
  if (/^(?:grpcs|h2|http2)$/.test(scheme)) return 'write https:// here, and protocol: h2 beside it'
  if (/^wss?$/.test(scheme)) return `write ${scheme === 'ws' ? 'http' : 'https'}://: WebSockets need no setting`
  return 'the application has to speak HTTP: write http:// or https://'
}

/** A host name whose first labels are those of a service (RFC 2782). */
export function parseService(text: string): string {
  if (!/^_[\w-]+\._(?:tcp|udp)\.[\w.-]+$/i.test(text))
    throw new SyntaxError('must be the name of a service, as in _http._tcp.orders.internal')
  return text
}

export function parseNameServer(text: string): string {
  const [, host = '', port] = /^(\[.*\]|[^:]*|[^\]]*:[^\]]*:[^\]]*?)(?::(\d{1,5}))?$/.exec(text) ?? []
  if (ipAddress(host.replace(/^\[(.*)\]$/, '$1')) === undefined || Number(port ?? 53) > 65535)
    throw new SyntaxError('must be an IP address such as 10.0.0.53, or 10.0.0.53:5353')
  return text
}

/**
 * A host name for browsers.
 * @throws {SyntaxError} names what is wrong
 */
export function parseWholeHost(text: string): string {
  if (text.includes('*')) throw new SyntaxError('must be one whole host name; "*" is not supported')
  return parseHost(text)
}

export function parseHostName(text: string): string {
  const host = parseHost(text)
  // RFC 6066 §3.
  if (ipAddress(host.replace(/^\[(.*)\]$/, '$1')) !== undefined)
    throw new SyntaxError('must be a host name, not an IP address')
  return host
}

export function parseClientAddress(text: string): string {
  const address = ipAddress(text)
  if (address === undefined) throw new SyntaxError('must be an IP address such as 10.1.2.3')
  return address
}

export function parseTime(text: string): number {
  const time = Date.parse(text)
  if (Number.isNaN(time)) throw new SyntaxError('must be a time such as 2026-01-05T09:30:00Z')
  return time
}
export function parseEmailDomain(text: string): string {
  const domain = asciiDomain(text)
  if (domain === undefined) throw new SyntaxError('must be a domain such as example.com')
  return domain
}

export function hintForDomain(text: string): string | undefined {
  if (text === '*') return 'without this requirement, people of every domain have access'
  const meant = text.replace(/^[^@]*@|^\*?\./, '')
  if (meant === text || meant === '') return undefined
  return /^\*?\./.test(text) ? `name each domain: a domain does not include those below it` : `did you mean ${meant}?`
}

/** A hint for what is neither an address nor a network. */
export function hintForNetwork(text: string): string | undefined {
  const address = /^(?:\w+:\/\/)?\[?([\d.]{7,}|[\da-f:]+:[\da-f:]*)\]?(?::\d+)?\/?$/i.exec(text)?.[1]
  if (address !== undefined && ipAddress(address) !== undefined) return `write ${address}, without scheme and port`
  return /^(?:[a-z][\w.-]*|\*)$/i.test(text)
    ? 'a host name is not possible here: write the addresses or networks that connections come from, such as 10.0.0.0/8'
    : undefined
}

/** @throws {SyntaxError} when the text is no host, address, range or `*` */
export function parseNoProxy(text: string, parse = parseSubnet): NoProxy {
  if (text === '*') return { kind: 'all' }
  const [, named = text, digits] = /^([^:]+|\[[^\]]+\]):(\d{1,5})$/.exec(text) ?? []
  const port = digits === undefined ? undefined : Number(digits)
  const address = named.replace(/^\[(.*)\]$/, '$1')
  if (/^[\d.]+(?:\/\d+)?$/.test(address) || address.includes(':'))
    return { kind: 'subnet', subnet: parse(address), port }
  return { kind: 'host', host: parseHost(named.replace(/^\*?\./, '')), port }
}
export function parseFrameAncestor(text: string): string {
  if (text === "'self'") throw new SyntaxError('has quotes of its own: write self')
  return text === 'self' ? "'self'" : parseOrigin(text, 'https://portal.example.com').origin
}
/** Credentials and claims must not be sent in the clear. */
export function secure(url: URL): URL {
  if (url.protocol === 'http:' && !isLoopback(url.hostname))
    throw new SyntaxError('must be https; plain http is possible on this machine only')
  return url
}

/** An absolute URI without a fragment (RFC 8707 §2). */
export function parseUri(uri: string): string {
  if (!/^[a-z][a-z\d+.-]*:[^\s#]+$/i.test(uri) || !URL.canParse(uri))
    throw new SyntaxError('must be an absolute URI without a fragment, such as https://api.example.com')
  return uri
}
