import type { ApplicationCookie } from '../config/model.ts'
import type { Cause } from '../observe/audit.ts'

/** What an endpoint knows of a request. */
export interface EndpointRequest {
  readonly method: string
  /** The path and query, as the client sent them. */
  readonly url: string
  /** The parameters of the query. */
  readonly query: URLSearchParams
  /** The content of a form; empty when there is none. */
  readonly form: URLSearchParams
  readonly cookie: string | undefined
  /** The value of `Host` as the client sent it, with or without a port. */
  readonly host: string
  /**
   * `Sec-Fetch-Site`, `Sec-Fetch-Mode`, `Sec-Fetch-Dest`, `Origin` and `Referer`, as far as they
   * were sent.
   */
  readonly secFetchSite: string | undefined
  readonly secFetchMode: string | undefined
  readonly secFetchDest: string | undefined
  /**
   * `Sec-Purpose`, `Purpose` and `X-Moz`: how browsers announce a load that nobody has asked for.
   */
  readonly purpose: string
  readonly origin: string | undefined
  readonly referer: string | undefined
  /** It has a field that scripts send: `X-Requested-With`, or `Accept` with JSON. */
  readonly mayBeScript: boolean
  /** A page load in a browser. */
  readonly isPage: boolean
  /** A page load in a frame. */
  readonly isFrame: boolean
  /**
   * The path and query of the page that has the frame or makes the request, when it is on this
   * host.
   */
  readonly embeddingPage: string | undefined
  /**
   * The origin by which browsers know this gateway, for the requested host; from the configuration,
   * never from `Host`.
   */
  readonly externalUrl: URL
  /** The cookies of the applications on this host, which are expired with the session. */
  readonly applicationCookies: readonly ApplicationCookie[]
  /** The path of the start page of the requested host. */
  readonly home: string
  /** Identifies the request in the log. */
  readonly requestId: string
  readonly acceptLanguage: string | undefined
  readonly cause: Cause
}
