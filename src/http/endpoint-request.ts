import type { ApplicationCookie } from '../config/model/upstream.ts'
import type { Cause } from '../observe/audit.ts'
import { type HeaderView, textOf } from './forwarded.ts'
import { embeddingPage, isPrefetch, type RequestFacts } from './request-facts.ts'
import { isFromSite } from './requesting-page.ts'
import type { Incoming } from './response.ts'

/** Header fields that describe the page that makes a request. */
export interface Initiator {
  /** `Sec-Fetch-Site`. Like the others below, `undefined` if the client did not send it. */
  readonly secFetchSite: string | undefined
  readonly secFetchMode: string | undefined
  readonly secFetchDest: string | undefined
  /** No person has requested it. */
  readonly isPrefetch: boolean
  readonly origin: string | undefined
  readonly referer: string | undefined
}

export function initiatorOf(headers: HeaderView): Initiator {
  return {
    secFetchSite: textOf(headers, 'sec-fetch-site'),
    secFetchMode: textOf(headers, 'sec-fetch-mode'),
    secFetchDest: textOf(headers, 'sec-fetch-dest'),
    isPrefetch: isPrefetch(headers),
    origin: textOf(headers, 'origin'),
    referer: textOf(headers, 'referer'),
  }
}

/**
 * Whether a person makes this request, and not a script, an image, a frame, or a prefetch (the
 * browser repeats a prefetched request when the person opens the page). `isPage`: whether a browser
 * loads a page.
 */
export function isByPerson(isPage: boolean, headers: HeaderView): boolean {
  if (isPage) return !isPrefetch(headers)
  const mayBeScript = headers['x-requested-with'] !== undefined || [headers['accept']].flat().join().includes('json')
  return !mayBeScript && headers['sec-fetch-mode'] === undefined
}

/** A request to an endpoint of the gateway. */
export interface EndpointRequest extends Initiator, Pick<RequestFacts, 'method' | 'cookie' | 'isPage' | 'isFrame'> {
  /** The path and query, as the client sent them. */
  readonly url: string
  /** The parameters of the query. */
  readonly query: URLSearchParams
  /** The fields of the form in the content; empty without one. */
  readonly form: URLSearchParams
  /** The scheme of the request: that of the connection, or the one that a trusted proxy reports. */
  readonly proto: 'http' | 'https'
  /** The value of `Host` as the client sent it, with or without a port. */
  readonly host: string
  /** See `isByPerson`. */
  readonly isByPerson: boolean
  /**
   * The path and query of the page that contains the frame or makes the request. `undefined` when
   * that page is on another host.
   */
  readonly embeddingPage: string | undefined
  /** The external URL of the gateway at this host: from the configuration, never from `Host`. */
  readonly externalUrl: URL
  /** The cookies of the applications on this host. They expire when the session ends. */
  readonly applicationCookies: readonly ApplicationCookie[]
  /** The path of the start page of the requested host. */
  readonly home: string
  /** Identifies the request in the log. */
  readonly requestId: string
  readonly acceptLanguage: string | undefined
  readonly userAgent?: string | undefined
  readonly ifNoneMatch?: string | undefined
  /** `Last-Event-ID`: the last event that an `EventSource` has received. */
  readonly lastEventId?: string | undefined
  /** The content, if it is a Security Event Token by its `Content-Type`. */
  readonly securityEvent?: string | undefined
  /** The content, if it is JSON by its `Content-Type`. */
  readonly json?: string | undefined
  readonly authorization?: string | undefined
  /** `Secure-Session-Response`: a proof that the browser has the key of a session. */
  readonly deviceProof?: string | undefined
  /** `Sec-Secure-Session-Id`: which session the proof is for. */
  readonly deviceSession?: string | undefined
  /** `Secure-Session-Skipped`: why the browser could not renew the cookie of a bound session. */
  readonly skippedSession?: string | undefined
  readonly cause: Cause
}

/** The content of a request to an endpoint, by its `Content-Type`. */
export interface EndpointContent {
  readonly form?: string
  readonly securityEvent?: string
  readonly json?: string
}

/** @param own what the configuration says about the requested host */
export function endpointRequest(
  { req, facts, record }: Incoming,
  { form = '', securityEvent, json }: EndpointContent,
  own: Pick<EndpointRequest, 'externalUrl' | 'home'>,
): EndpointRequest {
  const { headers } = req
  const { method, target, cookie, isPage, isFrame, forwarded } = facts
  return {
    method,
    cookie,
    isPage,
    isFrame,
    url: target.path + target.query,
    query: new URLSearchParams(target.query),
    form: new URLSearchParams(form),
    proto: forwarded.proto,
    host: forwarded.host,
    ...initiatorOf(headers),
    isByPerson: isByPerson(isPage, headers),
    embeddingPage: embeddingPage(headers, forwarded.host),
    ...own,
    // Known with the realm.
    applicationCookies: [],
    requestId: record.id,
    acceptLanguage: headers['accept-language'],
    userAgent: headers['user-agent'],
    ifNoneMatch: headers['if-none-match'],
    lastEventId: [headers['last-event-id']].flat()[0],
    securityEvent,
    json,
    authorization: headers.authorization,
    deviceProof: [headers['secure-session-response']].flat()[0],
    skippedSession: [headers['secure-session-skipped']].flat()[0],
    deviceSession: [headers['sec-secure-session-id']].flat()[0],
    cause: record.cause,
  }
}

/**
 * Whether a request comes from a page of this site. A page of another site must not sign people
 * out, or decide for them.
 */
export function isFromThisSite(request: Initiator & Pick<EndpointRequest, 'method' | 'externalUrl'>): boolean {
  const check = request.method === 'GET' ? 'endpoint' : 'endpoint_form'
  return isFromSite(check, request, [request.externalUrl.origin])
}
