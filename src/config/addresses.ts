import { asciiDomain, firstAddress, ipAddress, type Subnet } from '../core/addresses.ts'
import { parsePathPattern } from '../core/patterns.ts'

/**
 * `0.0.0.0:8080`, `[::]:8080`, `localhost:8080`, or a port alone.
 * @throws {SyntaxError} names what is wrong
 */
export function parseAddress(text: string | number, hostOfPortAlone: string): Address {
  const [, scheme, authority = ''] = /^([a-z]+):\/\/([^\s/]+)/i.exec(String(text)) ?? []
  if (scheme !== undefined)
    throw new SyntaxError(
      `must be HOST:PORT, without ${scheme}://; write ${authority}${scheme.toLowerCase() === 'https' ? ', and listen.tls for https' : ''}`,
    )
  if (/\s(ssl|tls|http2|quic)\b/i.test(String(text)))
    throw new SyntaxError('must be HOST:PORT, without words after it; for https, set listen.tls')
  const [, host, port] = /^(?:(.*):)?(\d{1,5})$/s.exec(String(text)) ?? []
  if (port === undefined)
    throw new SyntaxError('must be "HOST:PORT" such as 0.0.0.0:8080 or [::]:8080, or a port alone')
  if (Number(port) > 65535) throw new SyntaxError(`${port} is not a port: the highest is 65535`)
  return { host: host === undefined ? hostOfPortAlone : parseListenHost(host), port: Number(port) }
}

function parseListenHost(host: string): string {
  const inBrackets = /^\[(.*)\]$/.exec(host)?.[1]
  if (inBrackets !== undefined && isIPv6(inBrackets)) return inBrackets
  if (inBrackets === undefined && isIPv6(host)) throw new SyntaxError(`write an IPv6 address in brackets: [${host}]`)
  const looksLikeIPv4 = /^[\d.]+$/.test(host)
  if (looksLikeIPv4 ? isIPv4(host) : /^[A-Za-z\d]([A-Za-z\d.-]*[A-Za-z\d])?$/.test(host)) return host
  throw new SyntaxError(
    host === '' || host === '*'
      ? `has ${host === '' ? 'no host' : '"*"'} before the port; write 0.0.0.0 or [::] for every address`
      : `"${host}" is neither an IP address nor a host name`,
  )
}

/**
 * An IP address or a CIDR range. `10.1.2.3/8` is rejected, because it could mean the address or the
 * network.
 * @throws {SyntaxError} names what is wrong
 */
export function parseSubnet(text: string): Subnet {
  const subnet = parseLooseSubnet(text)
  // An address is a network of one address.
  if (firstAddress(subnet) !== firstAddress({ ...subnet, prefix: 128 }))
    throw new SyntaxError(
      `has an address within a network: write ${networkText(subnet)} for the whole network, or ${subnet.address} for this address only`,
    )
  return subnet
}

/** A network as the configuration writes it: `10.0.0.0/8`. */
export function networkText(subnet: Subnet): string {
  return `${firstAddress(subnet)}/${subnet.prefix}`
}

/**
 * The same, where `10.1.2.3/8` means the network, as in many other programs.
 * @throws {SyntaxError} names what is wrong
 */
export function parseLooseSubnet(text: string): Subnet {
  const [, address = '', prefixText] = /^([^/]*)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  const family = isIPv4(address) ? 'ipv4' : isIPv6(address) ? 'ipv6' : undefined
  if (family === undefined) throw new SyntaxError('must be an IP address or a CIDR range such as 10.0.0.0/8')
  const longest = family === 'ipv4' ? 32 : 128
  const prefix = prefixText === undefined ? longest : Number(prefixText)
  if (prefix > longest) throw new SyntaxError(`/${prefix} is too long for ${address}: at most /${longest}`)
  // A peer with an IPv4-mapped IPv6 address is compared as IPv4.
  const plain = ipAddress(address) ?? address
  const isMapped = family === 'ipv6' && !plain.includes(':')
  if (isMapped && prefix >= 96) return { address: plain, prefix: prefix - 96, family: 'ipv4' }
  return { address: isMapped ? new URL(`http://[${address}]`).hostname.slice(1, -1) : plain, prefix, family }
}

/** Whether a host is this machine, where http needs no protection. */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[(.*)\]$/, '$1')
  return name === 'localhost' || name.endsWith('.localhost') || name === '::1' || (isIPv4(name) && /^127\./.test(name))
}

/** `0.0.0.0` and `::` mean every address of this machine. */
export function isEveryAddress(host: string): boolean {
  return host === '0.0.0.0' || ipAddress(host) === '::'
}

/**
 * An http or https URL with scheme, host and port only.
 * @throws {SyntaxError} names what is wrong
 */
export function parseOrigin(text: string, example = 'https://orders.example.com'): URL {
  const url = parseHttpUrl(text, example)
  if (url.pathname !== '/')
    throw new SyntaxError(`must end after the host and port, without the path "${url.pathname}"`)
  return url
}

/**
 * The origin of an upstream. Its first label may be `*`, which means any one label, as in
 * certificates (RFC 9525 §6.3).
 * @throws {SyntaxError} names what is wrong
 */
export function parseUpstreamOrigin(text: string): URL {
  const [, scheme = '', rest] = /^(https?:\/\/)\*\.(.*)$/is.exec(text) ?? []
  if ((rest ?? text).includes('*'))
    throw new SyntaxError('may have "*" as the whole first label only, as in https://*.apps.example.com')
  if (rest === undefined) return parseOrigin(text)
  const { protocol, hostname, port } = parseOrigin(`${scheme}${rest}`, 'https://*.apps.example.com')
  if (asciiDomain(hostname) === undefined)
    throw new SyntaxError('must have a domain of at least two labels after "*.", as in https://*.apps.example.com')
  return new URL(`${protocol}//*.${hostname}${port === '' ? '' : `:${port}`}`)
}

/**
 * The path of an upstream, with a slash at its end.
 * @throws {SyntaxError} names what is wrong
 */
export function parseUpstreamPath(text: string): string {
  if (parsePathPattern(text).text.includes('*'))
    throw new SyntaxError('must not contain "*": the upstream serves everything below its path')
  return text.endsWith('/') ? text : `${text}/`
}

/**
 * The domain of a cookie, in lower case and in ASCII.
 * @throws {SyntaxError} names what is wrong
 */
export function parseCookieDomain(text: string): string {
  if (/^https?:/i.test(text)) throw new SyntaxError('must be a domain alone, without http:// or https://')
  const [, dots, rest] = /^(\*?\.)(.*)$/s.exec(text) ?? []
  if (dots !== undefined)
    throw new SyntaxError(`must not begin with "${dots}": write ${rest}, which includes the hosts below it`)
  const name = text.replace(/\.$/, '')
  if (ipAddress(name.replace(/^\[(.*)\]$/, '$1')) !== undefined)
    throw new SyntaxError('must be a domain: the cookie of an IP address is for that address only')
  const domain = asciiDomain(name)
  if (domain !== undefined) return domain
  if (/^[\w-]+$/.test(name)) throw new SyntaxError('has one label: browsers ignore a cookie for a domain such as com')
  throw new SyntaxError('must be a domain such as example.com, without port and path')
}

const noPattern = '"*" is not supported here'

/**
 * An http or https URL without user name, password, query and fragment.
 * @throws {SyntaxError} names what is wrong
 */
export function parseHttpUrl(text: string, example: string): URL {
  const port = Number(/^https?:\/\/[^/?#]*:(\d+)/i.exec(text)?.[1] ?? 0)
  if (port > 65535) throw new SyntaxError(`${port} is not a port: the highest is 65535`)
  if (/^(?=localhost|[^/]*[.:])[\w-]+(\.[\w-]+)*(:\d+)?(\/[^\s\\@]*)?$/.test(text))
    throw new SyntaxError(`must begin with the scheme: ${example.split('//', 1)[0]}//${text}`)
  const url = parseLink(text, `${example}${text === '*' ? `; ${noPattern}` : ''}`)
  if (text.includes('?')) throw new SyntaxError('must not contain a query ("?")')
  if (text.includes('#')) throw new SyntaxError('must not contain a fragment ("#")')
  if (url.hostname.includes('*')) throw new SyntaxError(`must name one host; ${noPattern}`)
  if (url.hostname.endsWith('.')) throw new SyntaxError('has a host name that ends in "."; remove that "."')
  return url
}

/**
 * An http or https URL without user name and password.
 * @throws {SyntaxError} names what is wrong
 */
export function parseLink(text: string, example: string): URL {
  // The URL parser accepts spaces, tabs, backslashes and missing slashes. In a configuration they
  // are mistakes.
  if (!/^https?:\/\/[^\s\\/]+[^\s\\]*$/i.test(text) || !URL.canParse(text))
    throw new SyntaxError(`must be an http or https URL such as ${example}`)
  const url = new URL(text)
  if (url.username !== '' || url.password !== '') throw new SyntaxError('must not contain a user name or password')
  return url
}

/**
 * A host name in the form that is compared: lower case, without port.
 * @throws {SyntaxError} names what is wrong
 */
export function parseHost(text: string): string {
  if (text.includes('*'))
    throw new SyntaxError(
      'must be one whole host name: without hosts, every host is served; for each host below a domain, write external_url: https://*.DOMAIN',
    )
  if (/^https?:/i.test(text)) throw new SyntaxError('must be a host name alone, without http:// or https://')
  if (!/^[^\s\\/?#@:]+$/.test(text) && !/^\[[^\]]+\]$/.test(text))
    throw new SyntaxError('must be a host name such as orders.example.com, without port and path')
  if (!URL.canParse(`http://${text}`)) throw new SyntaxError('must be a host name such as orders.example.com')
  return new URL(`http://${text}`).hostname.replace(/\.$/, '')
}

function isIPv4(text: string): boolean {
  return !text.includes(':') && ipAddress(text) !== undefined
}

function isIPv6(text: string): boolean {
  return text.includes(':') && !text.includes('%') && ipAddress(text) !== undefined
}

export interface Address {
  readonly host: string
  readonly port: number
}
