import { BlockList, isIP, SocketAddress } from 'node:net'

/** How many results are cached. A check takes a microsecond, and the same peers return. */
const maxResults = 1024

/** A set of networks. */
export class AddressSet {
  readonly subnets: readonly Subnet[]
  readonly #networks = new BlockList()
  readonly #results = new Map<string, boolean>()

  constructor(subnets: readonly Subnet[]) {
    this.subnets = subnets
    for (const { address, prefix, family } of subnets) this.#networks.addSubnet(address, prefix, family)
  }

  /** Whether an address, as `ipAddress` gives it, lies in one of the networks. */
  has(address: string): boolean {
    const known = this.#results.get(address)
    if (known !== undefined) return known
    const family = isIP(address)
    const result = family !== 0 && this.#networks.check(address, family === 6 ? 'ipv6' : 'ipv4')
    if (this.#results.size >= maxResults) this.#results.clear()
    this.#results.set(address, result)
    return result
  }

  /** Whether each network of another set lies in one network of this set. */
  covers(other: AddressSet): boolean {
    return other.subnets.every((inner) => this.subnets.some((outer) => isWithin(inner, outer)))
  }

  /** Whether some address lies in this set and in another one. */
  overlaps(other: AddressSet): boolean {
    return this.subnets.some((one) => other.subnets.some((two) => isWithin(one, two) || isWithin(two, one)))
  }
}

export interface Subnet {
  readonly address: string
  /** The length of the prefix, in bits. */
  readonly prefix: number
  readonly family: 'ipv4' | 'ipv6'
}

function isWithin(inner: Subnet, outer: Subnet): boolean {
  return inner.family === outer.family && inner.prefix >= outer.prefix && new AddressSet([outer]).has(inner.address)
}

/** The IPv4-mapped IPv6 address of an IPv4 peer on a dual-stack socket. */
const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/

/** An IP address in its shortest form, without zone, mapped IPv4 as IPv4; or `undefined`. */
export function ipAddress(text: string): string | undefined {
  const family = isIP(text)
  if (family === 4) return text
  if (family === 0) return undefined
  const v4 = mapped.exec(text)?.[1]
  if (v4 !== undefined) return v4
  const zone = text.indexOf('%')
  const { address } = new SocketAddress({ address: zone < 0 ? text : text.slice(0, zone), family: 'ipv6' })
  return mapped.exec(address)?.[1] ?? address
}

/**
 * The client that an address belongs to: the IPv4 address, or the /64 network of an IPv6 address,
 * because one machine may use all of it. Takes a result of `ipAddress`; any other text is a client
 * of its own.
 */
export function clientOf(address: string): string {
  return address.includes(':') ? `${groupsOf(address).slice(0, 4).join(':')}::/64` : address
}

/** The eight groups of an IPv6 address. */
function groupsOf(address: string): readonly string[] {
  const [front = '', back] = address.split('::', 2)
  const groups = front === '' ? [] : front.split(':')
  if (back === undefined) return groups
  const behind = back === '' ? [] : back.split(':')
  return [...groups, ...Array<string>(8 - groups.length - behind.length).fill('0'), ...behind]
}

/** The first address of a network: all bits beyond its prefix are 0. */
export function firstAddress({ address, prefix, family }: Subnet): string {
  const isV4 = family === 'ipv4'
  const width = isV4 ? 8 : 16
  // `URL` writes an IPv4-mapped address in groups, too.
  const groups = isV4
    ? address.split('.').map(Number)
    : groupsOf(new URL(`http://[${address}]`).hostname.slice(1, -1)).map((group) => parseInt(group, 16))
  const first = groups.map((group, index) => {
    const free = width - Math.min(Math.max(prefix - index * width, 0), width)
    return (group >> free) << free
  })
  if (isV4) return first.join('.')
  return new URL(`http://[${first.map((group) => group.toString(16)).join(':')}]`).hostname.slice(1, -1)
}

/** The network of a client as `clientOf` gives it: the /24 of IPv4, or the /56 of IPv6. */
export function networkOf(client: string): string {
  if (isIP(client) === 4) return `${client.slice(0, client.lastIndexOf('.'))}.0/24`
  const [first, second, third, fourth] = client.split(':')
  if (!client.endsWith('::/64') || fourth === undefined) return client
  return `${first}:${second}:${third}:${(parseInt(fourth || '0', 16) & 0xff00).toString(16)}::/56`
}

/** The port of an http or https URL, or the default port of its scheme. */
export function portOf({ protocol, port }: URL): number {
  return Number(port) || (protocol === 'https:' ? 443 : 80)
}

/**
 * A domain name in lower case and in ASCII: `Bücher.Example` → `xn--bcher-kva.example`. `undefined`
 * for other texts, for an IP address, and for a name with one label.
 */
export function asciiDomain(text: string): string | undefined {
  if (!/^[^\s\p{Cc}@*:/?#%[\]\\]+$/u.test(text) || !URL.canParse(`http://${text}`)) return undefined
  const { hostname } = new URL(`http://${text}`)
  return isIP(hostname) === 0 && /^[\w-]+(?:\.[\w-]+)+$/.test(hostname) ? hostname : undefined
}

/** Whether a host is a domain, or below it (RFC 6265bis §5.1.3). Nothing is below an IP address. */
export function isDomainOf(domain: string, host: string): boolean {
  return domain === host || (host.endsWith(`.${domain}`) && !/\.\d+$/.test(host))
}
