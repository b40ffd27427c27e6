import type { GatewayConfig } from '../config/model/gateway.ts'
import { GatewayError } from '../core/errors.ts'
import { foldCase } from '../core/patterns.ts'
import { ownText } from '../wire/fields.ts'
import { frameSuffix, withoutCookies } from './cookies.ts'
import { forwardedFacts, type ForwardedFacts, type HeaderView, textOf, type TrustedProxies } from './forwarded.ts'
import { isGrpcCall } from './grpc-request.ts'
import { mcpRequest, type McpRequest } from './mcp-request.ts'
import { type CanonicalTarget, canonicalTarget, hostName, isAuthority, wholeServer } from './request-target.ts'
import { isFromSite } from './requesting-page.ts'

/** The facts about a request that the decision depends on. */
export interface RequestFacts {
  readonly method: string
  readonly target: CanonicalTarget
  /** The requested host: lower case, no port, no trailing dot; as trusted proxies report it. */
  readonly host: string
  /** Whether a browser loads a page. Only a page load is redirected to the sign-in. */
  readonly isPage: boolean
  /**
   * Whether a browser loads a page in a frame. Such a load is not redirected to the sign-in,
   * because providers refuse to appear in frames.
   */
  readonly isFrame: boolean
  /** Whether it has `Upgrade`. The protocol is nearly always WebSocket. */
  readonly isUpgrade: boolean
  /** `Sec-Fetch-Site`, with which the browser describes the page that makes the request. */
  readonly secFetchSite: string | undefined
  readonly origin: string | undefined
  /** It asks which requests a page of another origin may send. */
  readonly isPreflight?: boolean
  /**
   * The `Cookie` header; several fields are joined by `; `. Session cookies for frames are in it
   * only if a page of this origin makes the request, or a frame loads a page: as if browsers sent
   * them like `Lax` ones.
   */
  readonly cookie: string | undefined
  /** The `Authorization` header; several fields are joined by `, `. */
  readonly authorization?: string | undefined
  /**
   * The TLS connection of the client, which may have shown a certificate. That of a trusted proxy
   * carries the requests of others, and its certificate is not theirs.
   */
  readonly tls?: ReceivedRequest['socket'] | undefined
  /** The `Client-Cert` header of a trusted proxy (RFC 9440). */
  readonly clientCert?: string | undefined
  /**
   * `Secure-Session-Skipped`: why the browser did not renew the cookie that proves its device (W3C
   * Device Bound Session Credentials §8.5).
   */
  readonly skippedSession?: string | undefined
  /** The message that an MCP client sends. Absent: there is no `Mcp-Method`. */
  readonly mcp?: McpRequest | undefined
  readonly forwarded: ForwardedFacts
  /** The header fields, for the one in which a program sends its key. */
  readonly headers: HeaderView
  /**
   * Another proxy asks about the request, and carries it. `first`: it asks a second time for the
   * response to a refused request, because only the status of the first response counts.
   */
  readonly isAsked?: 'once' | 'first'
}

/** The part of Node's `IncomingMessage` that the facts come from. */
export interface ReceivedRequest {
  readonly method?: string | undefined
  readonly url?: string | undefined
  readonly headers: HeaderView
  /** Names and values, alternating. Absent: no field is repeated. */
  readonly rawHeaders?: readonly string[]
  readonly socket: { readonly remoteAddress?: string | undefined; readonly encrypted?: boolean }
}

/**
 * @param defaultHost the host of a request without `Host` (RFC 9112 §3.3)
 * @throws {GatewayError} ERR_REQUEST_TARGET, or ERR_REQUEST_MALFORMED when `Host` is malformed
 */
export function requestFacts(request: ReceivedRequest, trusted: TrustedProxies, defaultHost: string): RequestFacts {
  const { headers, socket, method = '', url = '' } = request
  const target = method === 'OPTIONS' && url === '*' ? wholeServer : canonicalTarget(url)
  const connection = {
    peer: socket.remoteAddress,
    encrypted: socket.encrypted === true,
    host: target.authority ?? textOf(headers, 'host') ?? defaultHost,
  }
  const forwarded = forwardedFacts(connection, headers, trusted)
  return {
    method,
    target,
    host: hostName(forwarded.host),
    isPage: isPage(method, headers),
    isFrame: isFrame(headers),
    isUpgrade: headers['upgrade'] !== undefined,
    secFetchSite: textOf(headers, 'sec-fetch-site'),
    origin: textOf(headers, 'origin'),
    // Fetch §3.2.2.
    isPreflight:
      method === 'OPTIONS' &&
      headers['origin'] !== undefined &&
      headers['access-control-request-method'] !== undefined &&
      headers['upgrade'] === undefined,
    cookie: cookieOf(method, headers, forwarded),
    authorization: headers['authorization'] === undefined ? undefined : authorizationOf(request),
    tls: connection.encrypted && !trusted.hasPeer(socket.remoteAddress ?? '') ? socket : undefined,
    clientCert:
      headers['client-cert'] !== undefined && trusted.hasPeer(socket.remoteAddress ?? '')
        ? textOf(headers, 'client-cert')
        : undefined,
    skippedSession: textOf(headers, 'secure-session-skipped'),
    mcp: headers['mcp-method'] === undefined ? undefined : mcpRequest(headers),
    forwarded,
    headers,
  }
}

function cookieOf(method: string, headers: HeaderView, { host }: ForwardedFacts): string | undefined {
  const cookie = textOf(headers, 'cookie', '; ')
  // The name is looked for first, because this is part of each request.
  if (cookie === undefined || !cookie.includes(`-${frameSuffix}=`)) return cookie
  const page = { secFetchSite: textOf(headers, 'sec-fetch-site'), origin: textOf(headers, 'origin') }
  const isLoad = (method === 'GET' || method === 'HEAD') && isFrame(headers)
  // The cookies have the prefix __Host-, so the scheme is https.
  if (isLoad || isFromSite('frame', page, [`https://${host}`])) return cookie
  return withoutCookies(cookie, (name) => name.endsWith(`-${frameSuffix}`))
}

/** Node keeps only the first of several fields in `headers`, but the upstream would get all. */
function authorizationOf({ headers, rawHeaders = [] }: ReceivedRequest): string | undefined {
  const isAuthorization = (name: string) => name.length === 13 && name.toLowerCase() === 'authorization'
  const all = rawHeaders.filter((_, at) => at % 2 === 1 && isAuthorization(rawHeaders[at - 1] ?? ''))
  return all.length > 1 ? all.join(', ') : textOf(headers, 'authorization')
}

/**
 * Whether a browser would show the response as a page. `Sec-Fetch-*` takes precedence over
 * `Accept`, because scripts cannot set it.
 */
export function isPage(method: string, headers: HeaderView): boolean {
  if (method !== 'GET' && method !== 'HEAD' && method !== 'POST') return false
  if (headers['upgrade'] !== undefined) return false

  const mode = textOf(headers, 'sec-fetch-mode')
  const dest = textOf(headers, 'sec-fetch-dest')
  let isShown = dest === 'document'
  if (mode !== undefined) isShown = mode === 'navigate' && (dest === undefined || dest === 'document')
  else if (dest === undefined) {
    const isByScript = textOf(headers, 'x-requested-with')?.toLowerCase() === 'xmlhttprequest'
    isShown = !isByScript && acceptsHtml(textOf(headers, 'accept'))
  }
  return isShown && !(method === 'POST' && isGrpcCall(headers))
}

/** Whether the browser loads a page into a frame, according to `Sec-Fetch-Dest`. */
export function isFrame(headers: HeaderView): boolean {
  const dest = textOf(headers, 'sec-fetch-dest')
  return (dest === 'iframe' || dest === 'frame') && textOf(headers, 'sec-fetch-mode') === 'navigate'
}

/**
 * The path and query of the page that contains the frame, for the request that loads the frame.
 * `undefined` without `Referer`, or when that page is on another host.
 */
export function embeddingPage(headers: HeaderView, host: string): string | undefined {
  const referer = textOf(headers, 'referer') ?? ''
  if (!URL.canParse(referer)) return undefined
  const page = new URL(referer)
  // "//name" would be another host.
  return page.host === host.toLowerCase() && !page.pathname.startsWith('//') ? page.pathname + page.search : undefined
}

/**
 * The path and query of the page that a person returns to when the gateway refuses the request: the
 * requested page. For a form, and in a frame, it is the page that makes the request; `undefined`
 * when that is unknown.
 */
export function returnPage(
  { method, isFrame, target, forwarded }: Pick<RequestFacts, 'method' | 'isFrame' | 'target' | 'forwarded'>,
  headers: HeaderView,
): string | undefined {
  const isLoad = method === 'GET' || method === 'HEAD'
  return isLoad && !isFrame ? target.path + target.query : embeddingPage(headers, forwarded.host)
}

/**
 * Whether a script makes the request. Otherwise it comes from an element of a page, such as an
 * image, or is a prefetch. Only scripts send methods other than GET and POST.
 */
export function isScript(method: string, headers: HeaderView): boolean {
  if (headers['upgrade'] !== undefined || isPrefetch(headers)) return false
  if (method !== 'GET' && method !== 'POST') return true
  const mode = textOf(headers, 'sec-fetch-mode')
  const dest = textOf(headers, 'sec-fetch-dest')
  if (mode !== undefined || dest !== undefined) {
    if (mode === 'navigate' || (dest !== undefined && dest !== 'empty')) return false
    // `navigator.sendBeacon` posts in the mode "no-cors".
    return method === 'POST' || mode !== 'no-cors'
  }
  if (isPage(method, headers)) return false
  return (
    method === 'POST' || headers['x-requested-with'] !== undefined || /\bjson\b/i.test(textOf(headers, 'accept') ?? '')
  )
}

/** Whether the request is a prefetch: the browser loads a page before the person opens it. */
export function isPrefetch(headers: HeaderView): boolean {
  return ['sec-purpose', 'purpose', 'x-moz'].some((name) => /\bprefetch\b/i.test(textOf(headers, name) ?? ''))
}

/** The key is `Accept`. Clients use few different values. */
const knownAccepts = new Map<string, boolean>()
const maxKnownAccepts = 256
const maxKnownAcceptLength = 256

function acceptsHtml(accept: string | undefined): boolean {
  if (accept === undefined) return false
  const known = knownAccepts.get(accept)
  if (known !== undefined) return known
  const accepts = accept.split(',').some((range) => {
    const [type = '', ...parameters] = range.toLowerCase().split(';')
    if (type.trim() !== 'text/html' && type.trim() !== 'application/xhtml+xml') return false
    const weight = parameters.map((parameter) => parameter.trim()).find((parameter) => parameter.startsWith('q='))
    return weight === undefined || Number(weight.slice(2)) > 0
  })
  if (knownAccepts.size < maxKnownAccepts && accept.length <= maxKnownAcceptLength)
    knownAccepts.set(ownText(accept), accepts)
  return accepts
}

/** The part of Node's `IncomingMessage` that says how a request is framed. */
export interface FramedRequest {
  readonly httpVersion: string
  readonly rawHeaders: readonly string[]
  readonly headers: {
    readonly host?: string | undefined
    readonly 'content-length'?: string | undefined
    readonly 'transfer-encoding'?: string | undefined
  }
  readonly url?: string | undefined
  /** The scheme that a request of HTTP/2 states; empty for CONNECT. */
  readonly scheme?: string
}

const absoluteForm = /^[a-z][a-z\d+.-]*:\/\/([^/?#]*)/i

/**
 * Why a request must be rejected: the gateway and an upstream could read its framing or its
 * authority in different ways (RFC 9112 §3.2, §6.1, §11.2). Node's parser accepts these requests.
 * Returns `undefined` for a valid request.
 */
function framingFault(req: FramedRequest): string | undefined {
  // Only a frame of HTTP/2 has a scheme. Node's parser accepts "HTTP/2.0" in a request line too.
  const isHttp2 = req.httpVersion === '2.0' && req.scheme !== undefined
  if (!isHttp2 && req.httpVersion !== '1.1' && req.httpVersion !== '1.0') return `HTTP version ${req.httpVersion}`
  let hosts = 0
  let codings = 0
  let lengths = 0
  for (let index = 0; index < req.rawHeaders.length; index += 2) {
    const name = req.rawHeaders[index] as string
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1
    else if (name.length === 17 && name.toLowerCase() === 'transfer-encoding') codings += 1
    else if (name.length === 14 && name.toLowerCase() === 'content-length') lengths += 1
  }
  if (hosts > 1) return 'more than one Host'
  // RFC 9112 §3.2 requires it in HTTP/1.1. Health checks of load balancers use HTTP/1.0 without it.
  if (hosts === 0 && req.httpVersion !== '1.0') return 'no Host'
  // RFC 9113 §8.3.1.
  if (req.scheme !== undefined && !/^(?:https?)?$/.test(req.scheme)) return 'a scheme other than http and https'
  if (hosts === 1 && !isAuthority(req.headers.host ?? '')) return 'a malformed Host'
  // Both must be equal (RFC 9112 §3.2), because a server may route by either of them.
  const authority = absoluteForm.exec(req.url ?? '')?.[1]
  if (hosts === 1 && authority !== undefined && authority.toLowerCase() !== req.headers.host?.toLowerCase())
    return 'a Host that differs from the request target'
  if (codings + lengths > 1) return 'more than one of Content-Length and Transfer-Encoding'
  // Servers read a number beyond the precision of a double in different ways.
  if (lengths === 1 && !/^\d{1,15}$/.test(req.headers['content-length'] ?? ''))
    return 'a Content-Length that is too long'
  if (codings === 1 && req.httpVersion === '1.0') return 'Transfer-Encoding in HTTP/1.0'
  if (codings === 1 && req.headers['transfer-encoding']?.toLowerCase() !== 'chunked')
    return 'a transfer coding other than chunked'
  return undefined
}

/**
 * The facts of a request that can be interpreted in only one way.
 * @throws {GatewayError} when the request is ambiguous, or has a method that a gateway does not
 * forward
 */
export function unambiguousFacts(
  req: ReceivedRequest & FramedRequest,
  { limits, externalUrl }: Pick<GatewayConfig, 'limits' | 'externalUrl'>,
  trusted: TrustedProxies,
): RequestFacts {
  requireUnambiguous(req, limits)
  requireForwardable(req.method)
  return requestFacts(req, trusted, externalUrl.host)
}

/**
 * @throws {GatewayError} when the end of the request, or its host, can be read in two ways, or when
 * it has too many header fields
 */
export function requireUnambiguous(req: FramedRequest, limits: Pick<GatewayConfig['limits'], 'headerCount'>): void {
  if (req.rawHeaders.length > 2 * limits.headerCount)
    throw new GatewayError('ERR_HEADERS_TOO_LARGE', 'more header fields than limits.header_count')
  const fault = framingFault(req)
  if (fault !== undefined) throw new GatewayError('ERR_REQUEST_MALFORMED', fault)
}

/** Whether a path is below the reserved prefix in any reading and case. No upstream gets it. */
export function isReserved(target: CanonicalTarget, reservedPrefix: string): boolean {
  const reserved = knownSegments.get(reservedPrefix) ?? segmentsOf(reservedPrefix)
  if (isBelow(reserved, target.segments)) return true
  return target.otherReadings !== undefined && target.otherReadings.some((segments) => isBelow(reserved, segments))
}

function isBelow(reserved: readonly string[], segments: readonly string[]): boolean {
  for (let index = 0; index < reserved.length; index++)
    if (foldCase(segments[index] ?? '') !== reserved[index]) return false
  return true
}

/** The folded segments of each reserved prefix. A gateway has one. */
const knownSegments = new Map<string, readonly string[]>()

function segmentsOf(prefix: string): readonly string[] {
  const folded = prefix.split('/').flatMap((segment) => (segment === '' ? [] : foldCase(segment)))
  knownSegments.set(prefix, folded)
  return folded
}

/**
 * A gateway does not forward `TRACE` and `CONNECT` (RFC 9110 §9.3.6, §9.3.8).
 * @throws {GatewayError} ERR_METHOD_UNKNOWN
 */
export function requireForwardable(method: string | undefined): void {
  if (method === 'TRACE' || method === 'CONNECT')
    throw new GatewayError('ERR_METHOD_UNKNOWN', `the method ${method} is not supported`)
}
