import { BlockList, isIP, SocketAddress } from 'node:net'

/** So many answers are remembered: a check takes a microsecond, and peers come back. */
const mostAnswers = 1024

/** A set of networks. */
export class AddressSet {
  readonly #networks = new BlockList()
  readonly #answers = new Map<string, boolean>()

  constructor(subnets: readonly { address: string; prefix: number; family: 'ipv4' | 'ipv6' }[]) {
    for (const { address, prefix, family } of subnets) this.#networks.addSubnet(address, prefix, family)
  }

  /** Whether an address, as `ipAddress` gives it, lies in one of the networks. */
  has(address: string): boolean {
    const known = this.#answers.get(address)
    if (known !== undefined) return known
    const family = isIP(address)
    const answer = family !== 0 && this.#networks.check(address, family === 6 ? 'ipv6' : 'ipv4')
    if (this.#answers.size >= mostAnswers) this.#answers.clear()
    this.#answers.set(address, answer)
    return answer
  }
}

/** How an IPv4 peer looks to a socket that listens for both. */
const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/

/**
 * An IP address in the one spelling it is compared in: shortest form, without zone, IPv4-mapped
 * IPv6 as IPv4.
 */
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
 * Who counts as one client: an IPv4 address, or the /64 network of an IPv6 address, of which a
 * single machine may have each one. Takes what `ipAddress` gives; anything else is a client of its
 * own.
 */
export function clientOf(address: string): string {
  if (!address.includes(':')) return address
  const [front = '', back] = address.split('::', 2)
  const groups = front === '' ? [] : front.split(':')
  if (back === undefined) return `${groups.slice(0, 4).join(':')}::/64`
  const behind = back === '' ? [] : back.split(':')
  const filled = [...groups, ...Array<string>(8 - groups.length - behind.length).fill('0'), ...behind]
  return `${filled.slice(0, 4).join(':')}::/64`
}

/** The port that an http or https URL leads to, which is that of its scheme when it names none. */
export function portOf({ protocol, port }: URL): number {
  return Number(port) || (protocol === 'https:' ? 443 : 80)
}
