import { GatewayError } from '../core/errors.ts'
import { type ForwardedFacts, forwardedFacts, type HeaderView, type TrustedProxies } from './forwarded.ts'
import { canonicalTarget, type CanonicalTarget, wholeServer } from './request-target.ts'

/** All of a request that the decision may look at. */
export interface RequestFacts {
  readonly method: string
  readonly target: CanonicalTarget
  /**
   * The host name the client asked for: lower case, without port and trailing dot. Of a trusted
   * proxy: what it says it was asked for.
   */
  readonly host: string
  /** A page load in a browser, which may be redirected; everything else gets 401. */
  readonly isPage: boolean
  /**
   * A page load in a frame of another page. A redirect to the sign-in would end there: providers do
   * not show themselves in frames.
   */
  readonly isFrame: boolean
  /** It asks for another protocol, which is a WebSocket nearly always. */
  readonly isUpgrade: boolean
  /**
   * What the browser says of the page that makes the request: `Sec-Fetch-Site` and `Origin`, as far
   * as they were sent.
   */
  readonly secFetchSite: string | undefined
  readonly origin: string | undefined
  /** The `Cookie` header; several lines joined by `; `. */
  readonly cookie: string | undefined
  readonly forwarded: ForwardedFacts
}

/** What is needed of a request; Node's `IncomingMessage` is one. */
export interface ReceivedRequest {
  readonly method?: string | undefined
  readonly url?: string | undefined
  readonly headers: HeaderView
  readonly socket: { readonly remoteAddress?: string | undefined; readonly encrypted?: boolean }
}

const hostSyntax = /^(\[[\da-f:.]+\]|[\w.-]*?)\.?(?::\d{0,5})?$/i

/**
 * @param defaultHost the host that a request without `Host` is for (RFC 9112 §3.3)
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
    cookie: textOf(headers, 'cookie', '; '),
    forwarded,
  }
}

/**
 * `Orders.Example.com.:8443` → `orders.example.com`.
 * @throws {GatewayError} ERR_REQUEST_MALFORMED
 */
export function hostName(host: string): string {
  const name = hostSyntax.exec(host)?.[1]
  if (name === undefined) throw new GatewayError('ERR_REQUEST_MALFORMED', 'Host is malformed')
  return name.toLowerCase()
}

/**
 * Whether a browser would show the answer as a page. What the browser says of itself counts first:
 * scripts cannot set `Sec-Fetch-*`.
 */
export function isPage(method: string, headers: HeaderView): boolean {
  if (method !== 'GET' && method !== 'HEAD' && method !== 'POST') return false
  if (headers['upgrade'] !== undefined) return false

  const mode = textOf(headers, 'sec-fetch-mode')
  const dest = textOf(headers, 'sec-fetch-dest')
  if (mode !== undefined) return mode === 'navigate' && (dest === undefined || dest === 'document')
  if (dest !== undefined) return dest === 'document'

  if (textOf(headers, 'x-requested-with')?.toLowerCase() === 'xmlhttprequest') return false
  return acceptsHtml(textOf(headers, 'accept'))
}

/**
 * Whether the browser loads a page into a frame. Only browsers that send `Sec-Fetch-Dest` say so.
 */
export function isFrame(headers: HeaderView): boolean {
  const dest = textOf(headers, 'sec-fetch-dest')
  return (dest === 'iframe' || dest === 'frame') && textOf(headers, 'sec-fetch-mode') === 'navigate'
}

/**
 * The path and query of the page that has the frame, for the request that loads the frame.
 * `undefined` when the browser does not say, or when that page is on another host.
 */
export function embeddingPage(headers: HeaderView, host: string): string | undefined {
  const referer = textOf(headers, 'referer') ?? ''
  if (!URL.canParse(referer)) return undefined
  const page = new URL(referer)
  return page.host === host.toLowerCase() ? page.pathname + page.search : undefined
}

/**
 * Whether a script makes the request, and not an element such as an image, which anybody can write
 * into a page, or a load in advance. Only a script sends another method than GET and POST.
 */
export function isScript(method: string, headers: HeaderView): boolean {
  if (headers['upgrade'] !== undefined || isAnnouncedLoad(headers)) return false
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

/** A load that the browser makes in advance, before the person goes there. */
function isAnnouncedLoad(headers: HeaderView): boolean {
  return ['sec-purpose', 'purpose', 'x-moz'].some((name) => /\bprefetch\b/i.test(textOf(headers, name) ?? ''))
}

function acceptsHtml(accept: string | undefined): boolean {
  return (
    accept?.split(',').some((range) => {
      const [type = '', ...parameters] = range.toLowerCase().split(';')
      if (type.trim() !== 'text/html' && type.trim() !== 'application/xhtml+xml') return false
      const weight = parameters.map((parameter) => parameter.trim()).find((parameter) => parameter.startsWith('q='))
      return weight === undefined || Number(weight.slice(2)) > 0
    }) ?? false
  )
}

function textOf(headers: HeaderView, name: string, separator = ', '): string | undefined {
  const value = headers[name]
  return typeof value === 'object' ? value.join(separator) : value
}
