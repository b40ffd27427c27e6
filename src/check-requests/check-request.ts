import { METHODS } from 'node:http'
import { ipAddress } from '../core/addresses.ts'
import { GatewayError } from '../core/errors.ts'
import { type HeaderView, nodeAddress, reportedSchemes, type TrustedProxies } from '../http/forwarded.ts'
import { type RequestFacts, requestFacts, requireForwardable } from '../http/request-facts.ts'
import { canonicalTarget, type CanonicalTarget, decodeUnreserved, isAuthority } from '../http/request-target.ts'

/**
 * A check request: another proxy describes a request, and asks whether it may send the request to
 * the application.
 */
export interface CheckRequest {
  readonly method: string
  /** Path and query, as the proxy will send them to the application. */
  readonly target: string
  readonly proto: 'http' | 'https'
  /** The value of `Host` that the client sent. */
  readonly host: string
  /** As in `X-Forwarded-For`. The last address is that of the client of the asking proxy. */
  readonly forwardedFor: string
  /** The other header fields, by lower-case name. */
  readonly headers: HeaderView
  /** The address of the asking proxy. */
  readonly peer: string | undefined
  /**
   * Whether the proxy removes exactly the header fields that the response lists. Other proxies
   * remove only those that their configuration names.
   */
  readonly removesListed: boolean
  /** See {@link RequestFacts.isAsked}. */
  readonly isFirst?: boolean
}

/** The part of Node's `IncomingMessage` that a check request is read from. */
interface ReceivedRequest {
  readonly method?: string | undefined
  readonly headers: HeaderView
  readonly rawHeaders: readonly string[]
  readonly socket: { readonly remoteAddress?: string | undefined }
}

/** The fields with which proxies describe a request. */
const names = [
  ...(['X-Forwarded-Method', 'X-Forwarded-Proto', 'X-Forwarded-Host', 'X-Forwarded-Uri', 'X-Forwarded-For'] as const),
  ...(['X-Original-URL', 'X-Original-Method', 'X-Original-URI'] as const),
] as const
type Name = (typeof names)[number]
const byLowerCase: ReadonlyMap<string, Name> = new Map(names.map((name) => [name.toLowerCase(), name]))

/** A part of the description, and the field that it comes from. */
type Statement = readonly [field: string, value: string | undefined]

const absoluteUrl = /^(https?):\/\/([^/?#]*)(\/.*)$/is
const methods: ReadonlySet<string> = new Set(METHODS)

/**
 * The check request of a proxy that describes the request in header fields: `X-Forwarded-Method`,
 * `-Proto`, `-Host`, `-Uri` and `-For`, or `X-Original-URL` and `X-Original-Method` with
 * `X-Forwarded-For`. With fields of both forms, both must describe the same request.
 * @throws {GatewayError} ERR_FORWARD_AUTH, which names the field that is missing, repeated,
 * malformed or contradicts another one
 */
export function checkRequestInFields({ rawHeaders, headers, socket }: ReceivedRequest): CheckRequest {
  const field = describingFields(rawHeaders)
  const url = field('X-Original-URL')
  const [, scheme, authority, path] = (url === undefined ? undefined : absoluteUrl.exec(url)) ?? []
  if (url !== undefined && path === undefined) refuse('X-Original-URL is not an absolute http or https URL')
  const forwarded = (name: Name): Statement => [name, field(name)]
  const statements = {
    method: [forwarded('X-Forwarded-Method'), forwarded('X-Original-Method')],
    proto: [forwarded('X-Forwarded-Proto'), ['X-Original-URL', scheme]],
    host: [forwarded('X-Forwarded-Host'), ['X-Original-URL', authority]],
    target: [forwarded('X-Forwarded-Uri'), ['X-Original-URL', path], forwarded('X-Original-URI')],
  } as const
  // Many examples for nginx send only this field.
  if (field('X-Original-URI') !== undefined && statements.method.every(([, value]) => value === undefined))
    refuse('X-Original-URI names no method and no host: let nginx send X-Original-URL and X-Original-Method too')
  const isOriginal = url !== undefined || field('X-Original-Method') !== undefined
  const described = (part: keyof typeof statements) =>
    isOriginal
      ? statements[part].toSorted(([a], [b]) => Number(isForwarded(a)) - Number(isForwarded(b)))
      : statements[part]
  return validCheckRequest({
    method: agreed(described('method')),
    target: agreed(described('target')),
    proto: agreed(described('proto'), protocolOf),
    host: agreed(described('host'), (text) => text.toLowerCase()),
    forwardedFor: field('X-Forwarded-For'),
    headers,
    peer: socket.remoteAddress,
    removesListed: false,
  })
}

/**
 * The check request of a proxy that uses the method and `Host` of the request, and with its path
 * and query behind those of the endpoint: the HTTP service of Envoy's `ext_authz`.
 * @param target path and query
 * @throws {GatewayError} ERR_FORWARD_AUTH: see {@link checkRequestInFields}
 */
export function checkRequestInTarget(
  { method = '', rawHeaders, headers, socket }: ReceivedRequest,
  target: string,
): CheckRequest {
  const field = describingFields(rawHeaders)
  const forwarded = (name: Name): Statement => [name, field(name)]
  return validCheckRequest({
    method: agreed([['the method', method], forwarded('X-Forwarded-Method'), forwarded('X-Original-Method')]),
    target: agreed([['the path', target], forwarded('X-Forwarded-Uri'), forwarded('X-Original-URI')]),
    proto: agreed([forwarded('X-Forwarded-Proto')], protocolOf),
    host: agreed([['Host', textOf(headers['host'])], forwarded('X-Forwarded-Host')], (text) => text.toLowerCase()),
    forwardedFor: field('X-Forwarded-For'),
    headers,
    peer: socket.remoteAddress,
    removesListed: true,
  })
}

/** A check request before its parts are checked. */
type Description = Omit<CheckRequest, 'proto' | 'forwardedFor'> & {
  readonly proto: string
  readonly forwardedFor: string | undefined
}

/**
 * Checks the parts of a check request.
 * @throws {GatewayError} ERR_FORWARD_AUTH, or ERR_METHOD_UNKNOWN
 */
export function validCheckRequest(description: Description): CheckRequest {
  const { method, target, host, forwardedFor } = description
  requireForwardable(method)
  if (!methods.has(method)) refuse('the method of the request (X-Forwarded-Method) is not a known method')
  if (!target.startsWith('/')) refuse('the address of the request (X-Forwarded-Uri) is not a path with a query')
  if (!isAuthority(host)) refuse('the host of the request (X-Forwarded-Host) is malformed')
  const proto = reportedSchemes.get(description.proto)
  if (proto === undefined) refuse('the scheme of the request (X-Forwarded-Proto) is neither http nor https')
  const client = forwardedFor?.slice(forwardedFor.lastIndexOf(',') + 1).trim()
  if (forwardedFor === undefined || client === undefined) return refuse('X-Forwarded-For is missing')
  if (nodeAddress(client) === undefined) refuse('X-Forwarded-For does not end in the IP address of the client')
  return { ...description, proto, forwardedFor }
}

/**
 * The facts about the described request, from the same code as for requests that the gateway
 * carries.
 * @throws {GatewayError} ERR_FORWARD_AUTH when the asking proxy is not in `trusted_proxies`;
 * ERR_REQUEST_TARGET
 */
export function checkedFacts(checkRequest: CheckRequest, trusted: TrustedProxies): RequestFacts {
  const { method, target, proto, host, forwardedFor, headers, peer } = checkRequest
  if (peer === undefined || ipAddress(peer) === undefined || !trusted.hasPeer(peer))
    refuse('the client that asks is not in trusted_proxies')
  const described = {
    ...headers,
    host,
    forwarded: undefined,
    upgrade: opensWebSocket(checkRequest) ? 'websocket' : headers['upgrade'],
    'x-forwarded-for': forwardedFor,
    'x-forwarded-proto': proto,
    'x-forwarded-host': host,
  }
  const facts = requestFacts(
    { method, url: target, headers: described, socket: { remoteAddress: peer } },
    trusted,
    host,
  )
  return asAsked(facts, target, checkRequest.isFirst === true ? 'first' : 'once')
}

/**
 * The facts about a request that another proxy carries.
 * @param received path and query as the proxy received them
 */
export function asAsked(
  facts: RequestFacts,
  received: string,
  isAsked: RequestFacts['isAsked'] & string = 'once',
): RequestFacts {
  return { ...facts, target: asCarried(facts.target, received), isAsked }
}

/**
 * Whether the request opens a WebSocket. Proxies ask without `Upgrade`, because it is for one
 * connection only, so the other fields of the handshake count too (RFC 6455 §4.1).
 */
function opensWebSocket({ headers }: CheckRequest): boolean {
  return (
    ['sec-websocket-key', 'sec-websocket-version'].some((name) => headers[name] !== undefined) ||
    /^wss?$/i.test(textOf(headers['x-forwarded-proto']) ?? '') ||
    textOf(headers['sec-fetch-mode']) === 'websocket'
  )
}

/**
 * The target as the application will get it. The gateway forwards the canonical path, but another
 * proxy forwards the path as it is, so this is one more reading of it.
 */
function asCarried(target: CanonicalTarget, received: string): CanonicalTarget {
  const path = received.replace(/\?.*$/s, '')
  if (path === target.path) return target
  const literal = decodeUnreserved(path).slice(1).split('/')
  // Programs differ in what they resolve, decode and trim first. Browsers never send such a path.
  if (literal.some((segment) => segment === '.' || segment === '..'))
    throw new GatewayError('ERR_REQUEST_TARGET', 'the path has a dot segment, which another proxy may not resolve')
  const readings = [...(target.otherReadings ?? []), path.slice(1).split('/'), literal]
  return { ...target, otherReadings: [...readings, ...readingsWithoutAuthority(path)] }
}

/**
 * How programs read a path that begins with `//`: as an authority and its path (RFC 3986 §4.2).
 * `new URL('//a/admin', base)` has the path `/admin`; three slashes are two for it (URL Standard).
 */
function readingsWithoutAuthority(path: string): readonly (readonly string[])[] {
  if (!path.startsWith('//')) return []
  const rest = path.replace(/^\/+[^/]*/, '') || '/'
  const { segments, otherReadings = [] } = canonicalTarget(rest)
  return [segments, ...otherReadings, rest.slice(1).split('/'), decodeUnreserved(rest).slice(1).split('/')]
}

/** Reads the fields that describe a request. Each one may occur once. */
function describingFields(rawHeaders: readonly string[]): (name: Name) => string | undefined {
  const found = new Map<Name, string>()
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = byLowerCase.get((rawHeaders[at] as string).toLowerCase())
    if (name === undefined) continue
    if (found.has(name)) refuse(`${name} occurs more than once`)
    found.set(name, rawHeaders[at + 1] as string)
  }
  return (name) => found.get(name)
}

/** The one value of several statements. The first one names the field that proxies usually send. */
function agreed(statements: readonly Statement[], normalize: (text: string) => string = (text) => text): string {
  const made = statements.flatMap(([field, value]) => (value === undefined ? [] : [[field, normalize(value)] as const]))
  const [first, ...others] = made
  if (first === undefined) return refuse(`${statements[0]?.[0] ?? 'a field'} is missing`)
  const other = others.find(([, value]) => value !== first[1])
  if (other !== undefined) refuse(`${first[0]} and ${other[0]} differ`)
  return first[1]
}

function isForwarded(field: string): boolean {
  return field.startsWith('X-Forwarded-')
}

function protocolOf(text: string): string {
  const lower = text.toLowerCase()
  return reportedSchemes.get(lower) ?? lower
}

function textOf(value: HeaderView[string]): string | undefined {
  return typeof value === 'object' ? value.join(', ') : value
}

function refuse(why: string): never {
  throw new GatewayError('ERR_FORWARD_AUTH', why)
}
