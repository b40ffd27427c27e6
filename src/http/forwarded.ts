import type { Subnet } from '../config/model.ts'
import { AddressSet, ipAddress } from '../core/addresses.ts'

/** The peers whose word about a request's way is taken. */
export class TrustedProxies {
  readonly #networks: AddressSet

  constructor(subnets: readonly Subnet[]) {
    this.#networks = new AddressSet(subnets)
  }

  has(address: string): boolean {
    return this.#networks.has(address)
  }

  /** Whether it is the other end of a connection, by its address as the socket has it. */
  hasPeer(remoteAddress: string): boolean {
    return this.#networks.has(ipAddress(remoteAddress) ?? 'unknown')
  }
}

/** What the connection itself shows: nobody can make this up. */
export interface Connection {
  /** The peer's IP address; absent on a socket that is already gone. */
  readonly peer: string | undefined
  readonly encrypted: boolean
  /** The value of `Host`, or the authority of an absolute-form target. */
  readonly host: string
}

/** Header values by lower-case name, several lines joined by `, `. */
export type HeaderView = Readonly<Record<string, string | readonly string[] | undefined>>

/** What is believed about the way a request took. */
export interface ForwardedFacts {
  /** The client's address: the peer's, or what a trusted proxy says. */
  readonly clientAddress: string
  readonly proto: 'http' | 'https'
  /** The value of `Host` as the client sent it to the outermost proxy that is believed. */
  readonly host: string
  /** The `X-Forwarded-For` that goes on to the upstream: the believed chain, then the peer. */
  readonly forwardedFor: string
}

/** One proxy's word about whom it heard from, and how. */
interface Hop {
  readonly from: string | undefined
  readonly proto: string | undefined
  readonly host: string | undefined
}

/**
 * In characters. Longer values are nobody's honest way here; they are not read at all, and of a
 * list of addresses the nearest are.
 */
const maxValueLength = 4096
const hostSyntax = /^(?:\[[\da-f:.]+\]|[\w.-]+)(?::\d{0,5})?$/i
/** Some proxies name a WebSocket's scheme. */
const protocols = new Map<string | undefined, 'http' | 'https'>([
  ['http', 'http'],
  ['https', 'https'],
  ['ws', 'http'],
  ['wss', 'https'],
])

/**
 * What is believed about a request's way. Each proxy vouches for the one it heard from, so the
 * chain is read from the right, and what stands left of the first address that is not trusted is
 * anybody's claim.
 */
export function forwardedFacts(connection: Connection, headers: HeaderView, trusted: TrustedProxies): ForwardedFacts {
  const peer = (connection.peer && ipAddress(connection.peer)) ?? 'unknown'
  let proto: 'http' | 'https' = connection.encrypted ? 'https' : 'http'
  let host = withoutEmptyPort(connection.host)
  if (!trusted.has(peer)) return { clientAddress: peer, proto, host, forwardedFor: peer }

  const chain = [peer]
  for (const hop of hops(headers)) {
    proto = protocols.get(hop.proto?.toLowerCase()) ?? proto
    if (hop.host !== undefined && hostSyntax.test(hop.host)) host = withoutEmptyPort(hop.host)
    const from = hop.from === undefined ? undefined : nodeAddress(hop.from)
    if (from === undefined) break
    chain.unshift(from)
    if (!trusted.has(from)) break
  }
  return { clientAddress: chain[0] ?? peer, proto, host, forwardedFor: chain.join(', ') }
}

/** `example.com:` and `example.com` are the same authority (RFC 3986 §6.2.3). */
function withoutEmptyPort(host: string): string {
  return host.endsWith(':') ? host.slice(0, -1) : host
}

/** The nearest proxy's word first. */
function hops(headers: HeaderView): Hop[] {
  const addresses = nearestOf(headers['x-forwarded-for'])
  const proto = valueOf(headers, 'x-forwarded-proto')
  const host = valueOf(headers, 'x-forwarded-host')
  // One that is not read is there all the same: "Forwarded" beside it is not the proxy's word, but
  // may be the client's.
  if (!['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host'].some((name) => headers[name] !== undefined))
    return forwardedElements(valueOf(headers, 'forwarded') ?? '').reverse()

  // Protocol and host are the nearest proxy's: their lists, if they are any, cannot be matched with
  // the addresses.
  const [nearest, ...others] = (addresses ?? '').split(',').reverse()
  const hop = { from: nearest?.trim(), proto: lastOf(proto), host: lastOf(host) }
  return [hop, ...others.map((address) => ({ from: address.trim(), proto: undefined, host: undefined }))]
}

function lastOf(list: string | undefined): string | undefined {
  return list?.slice(list.lastIndexOf(',') + 1).trim()
}

function valueOf(headers: HeaderView, name: string): string | undefined {
  const text = joined(headers[name])
  return text !== undefined && text.length <= maxValueLength ? text : undefined
}

/**
 * The end of a list. What a client wrote before it can make it long, and must not make the proxy's
 * word unread.
 */
function nearestOf(list: HeaderView[string]): string | undefined {
  const text = joined(list)
  if (text === undefined || text.length <= maxValueLength) return text
  const end = text.slice(-maxValueLength)
  return end.slice(end.indexOf(',') + 1)
}

function joined(value: HeaderView[string]): string | undefined {
  return typeof value === 'object' ? value.join(', ') : value
}

const forwardedPair = /[\t ]*(?:([\w!#$%&'*+.^`|~-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s",;=]+)))?[\t ]*([,;]|$)/y

/** RFC 7239 §4; nothing at all when any of it is malformed. */
function forwardedElements(value: string): Hop[] {
  const elements: Hop[] = []
  let pairs = new Map<string, string>()
  forwardedPair.lastIndex = 0
  for (let ended = value === ''; !ended;) {
    const found = forwardedPair.exec(value)
    if (!found) return []
    const [, name, quoted, token, separator] = found
    if (name !== undefined) pairs.set(name.toLowerCase(), token ?? (quoted ?? '').replaceAll(/\\(.)/g, '$1'))
    ended = separator === ''
    if (separator === ';') continue
    elements.push({ from: pairs.get('for'), proto: pairs.get('proto'), host: pairs.get('host') })
    pairs = new Map()
  }
  return elements
}

/**
 * `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]:80`; `unknown` and `_names` are no
 * addresses (RFC 7239 §6).
 */
function nodeAddress(node: string): string | undefined {
  const [, bracketed, v4] = /^\[([\da-f:.]+)\](?::\w+)?$|^([\d.]+):\w+$/i.exec(node) ?? []
  return ipAddress(bracketed ?? v4 ?? node)
}
