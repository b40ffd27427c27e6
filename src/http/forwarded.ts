import { AddressSet, ipAddress } from '../core/addresses.ts'
import { randomId } from '../core/random.ts'
import type { Log } from '../observe/log.ts'
import { isAuthority, isPort } from './request-target.ts'

/** The proxies whose forwarding headers are trusted (`trusted_proxies`). */
export class TrustedProxies extends AddressSet {
  /** Whether a peer is trusted, by the address that the socket reports. */
  hasPeer(remoteAddress: string): boolean {
    return this.has(ipAddress(remoteAddress) ?? 'unknown')
  }
}

/** The facts of the connection itself. A client cannot forge them. */
export interface Connection {
  /** The peer's IP address; `undefined` when the socket is already closed. */
  readonly peer: string | undefined
  readonly encrypted: boolean
  /** The value of `Host`, or the authority of an absolute-form target. */
  readonly host: string
}

/** Header values by lower-case name; several fields are joined by `, `. */
export type HeaderView = Readonly<Record<string, string | readonly string[] | undefined>>

/** Where a request came from, from the connection and from trusted proxies. */
export interface ForwardedFacts {
  /** The client's address: that of the peer, or the one that a trusted proxy reports. */
  readonly clientAddress: string
  readonly proto: 'http' | 'https'
  /** The value of `Host` that the client sent to the outermost trusted proxy. */
  readonly host: string
  /** `X-Forwarded-For` for the upstream: what trusted proxies report, then the peer. */
  readonly forwardedFor: string
}

/** What one proxy reports about the request that it received. */
interface Hop {
  readonly from: string | undefined
  readonly proto: string | undefined
  readonly host: string | undefined
}

/**
 * The maximum length of a header value, in characters. Longer values are ignored. In a longer list
 * of addresses, only the end is read, which has the addresses nearest to the gateway.
 */
const maxValueLength = 4096
/** The schemes that proxies report. Some, such as Traefik, report the scheme of a WebSocket. */
export const reportedSchemes: ReadonlyMap<string | undefined, 'http' | 'https'> = new Map([
  ['http', 'http'],
  ['https', 'https'],
  ['ws', 'http'],
  ['wss', 'https'],
])

/**
 * Where a request came from. Each proxy reports the address of its own peer, so the chain is read
 * from the right. Everything left of the first untrusted address is ignored, because the client may
 * have forged it.
 */
export function forwardedFacts(connection: Connection, headers: HeaderView, trusted: TrustedProxies): ForwardedFacts {
  const peer = (connection.peer && ipAddress(connection.peer)) ?? 'unknown'
  let proto: 'http' | 'https' = connection.encrypted ? 'https' : 'http'
  let host = withoutEmptyPort(connection.host)
  if (!trusted.has(peer)) return { clientAddress: peer, proto, host, forwardedFor: peer }

  const chain = [peer]
  for (const hop of hops(headers)) {
    proto = reportedSchemes.get(hop.proto?.toLowerCase()) ?? proto
    if (hop.host !== undefined && isAuthority(hop.host)) host = withoutEmptyPort(hop.host)
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

/** What the proxies report, the nearest proxy first. */
function hops(headers: HeaderView): Hop[] {
  const addresses = nearestOf(textOf(headers, 'x-forwarded-for'))
  const proto = valueOf(headers, 'x-forwarded-proto')
  const host = valueOf(headers, 'x-forwarded-host')
  // If one of these fields is present, even if it is too long to be read, `Forwarded` is ignored.
  // The proxy writes these fields, so `Forwarded` may come from the client.
  if (!['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host'].some((name) => headers[name] !== undefined))
    return forwardedElements(valueOf(headers, 'forwarded') ?? '').reverse()

  // Protocol and host are those of the nearest proxy. If they are lists, it is not known which
  // member belongs to which address.
  const [nearest, ...others] = (addresses ?? '').split(',').reverse()
  const hop = { from: nearest?.trim(), proto: lastOf(proto), host: lastOf(host) }
  return [hop, ...others.map((address) => ({ from: address.trim(), proto: undefined, host: undefined }))]
}

function lastOf(list: string | undefined): string | undefined {
  return list?.slice(list.lastIndexOf(',') + 1).trim()
}

function valueOf(headers: HeaderView, name: string): string | undefined {
  const text = textOf(headers, name)
  return text !== undefined && text.length <= maxValueLength ? text : undefined
}

/** The end of a list, which a proxy appended. A client can make the list long. */
function nearestOf(text: string | undefined): string | undefined {
  if (text === undefined || text.length <= maxValueLength) return text
  const end = text.slice(-maxValueLength)
  return end.slice(end.indexOf(',') + 1)
}

/** The value of a field. Several fields of one name are joined. */
export function textOf(headers: HeaderView, name: string, separator = ', '): string | undefined {
  const value = headers[name]
  return typeof value === 'object' ? value.join(separator) : value
}

const forwardedPair = /[\t ]*(?:([\w!#$%&'*+.^`|~-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s",;=]+)))?[\t ]*([,;]|$)/y

/** The elements of `Forwarded` (RFC 7239 §4); empty if one of them is malformed. */
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
 * The IP address of a node: `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1` or `[2001:db8::1]:_hidden`.
 * `undefined` for `unknown` and for names such as `_proxy` (RFC 7239 §6).
 */
export function nodeAddress(node: string): string | undefined {
  const [, bracketed, v4, port] = /^(?:\[([\da-f:.]+)\]|([\d.]+)(?=:))(?::(\d{1,5}|_[\w.-]+))?$/i.exec(node) ?? []
  return port?.startsWith('_') === false && !isPort(port) ? undefined : ipAddress(bracketed ?? v4 ?? node)
}

/** The fields in which a proxy describes the client of a request. */
const fields = ['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'forwarded'] as const

/** How many peers are named. Any client can send these fields, and must not fill the log. */
const maxPeers = 8

/**
 * Says in the log, once for each peer, that a peer sends fields of a proxy and is not in
 * `trusted_proxies`. Otherwise nothing would show why all people have the address of the proxy.
 */
export class UntrustedProxies {
  readonly #peers = new Set<string>()
  readonly #trusted: TrustedProxies
  readonly #log: Log

  constructor(trusted: TrustedProxies, log: Log) {
    this.#trusted = trusted
    this.#log = log
  }

  note(remoteAddress: string | undefined, headers: HeaderView): void {
    if (this.#peers.size >= maxPeers || remoteAddress === undefined) return
    const sent = fields.filter((name) => headers[name] !== undefined)
    if (sent.length === 0) return
    const peer = ipAddress(remoteAddress)
    if (peer === undefined || this.#peers.has(peer) || this.#trusted.has(peer)) return
    this.#peers.add(peer)
    const hint = `The gateway ignores these fields and takes ${peer} for the client. If ${peer} is a proxy of yours, set trusted_proxies: [${peer}]. If it is a client, ignore this line.`
    this.#log.warn('proxy.not_trusted', { peer, fields: sent.join(', '), hint })
  }
}

/** Safe in logs, pages and headers without escaping. */
const wellFormed = /^[\w.:@+/=-]{1,128}$/

/**
 * The id of a request. A trusted proxy may send it, so that its log and ours have the same id.
 * Otherwise the id is new, because other clients must not choose the ids in the log.
 */
export function requestId(headers: HeaderView, peer: string | undefined, trusted: TrustedProxies): string {
  const given = headers['x-request-id']
  const isTrusted = typeof given === 'string' && peer !== undefined && wellFormed.test(given) && trusted.hasPeer(peer)
  return isTrusted ? given : randomId()
}
