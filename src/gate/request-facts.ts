import type { CanonicalTarget } from './request-target.ts'

/** All of a request that the decision may look at. */
export interface RequestFacts {
  readonly method: string
  readonly target: CanonicalTarget
  /** The host name the client asked for: lower case, without port and trailing dot. Of a trusted proxy: what it says it was asked for. */
  readonly host: string
  /** A page load in a browser, which may be redirected; everything else gets 401. */
  readonly isPage: boolean
  /** The `Cookie` header; several lines joined by `; `. */
  readonly cookie: string | undefined
  readonly forwarded: ForwardedFacts
}

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
