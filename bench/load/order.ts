/** Somebody who is signed in. */
export interface Visitor {
  /** The `Cookie` header; empty where nobody signs in. */
  readonly cookie: string
  /** Whose identity headers the upstream has to see; absent where nobody signs in. */
  readonly person?: number
}

interface Order {
  /** On loopback. */
  readonly port: number
  readonly tls: boolean
  /** Taken in turn. */
  readonly visitors: readonly Visitor[]
  readonly connections: number
  readonly ms: number
}

export interface RequestsOrder extends Order {
  readonly kind: 'requests'
  /** Of an answer, in bytes. */
  readonly bodyBytes: number
  /** Of what is sent with POST, in bytes; absent: GET. */
  readonly uploadBytes?: number
  /**
   * Requests per second, sent when it is time whether or not earlier ones were answered; absent: as
   * fast as they are answered.
   */
  readonly rate?: number
}

/**
 * WebSockets, on each of which a message is sent as soon as the last one has come back; or nothing,
 * if they are idle.
 */
export interface WebSocketsOrder extends Order {
  readonly kind: 'websockets'
  readonly areIdle: boolean
}

/** What the clients are to do. */
export type LoadOrder = RequestsOrder | WebSocketsOrder

export interface LoadResult {
  /** Answers, or messages that have come back. */
  readonly count: number
  readonly seconds: number
  /**
   * In ms: half of the answers, and 99 of 100, took no longer; with a rate since the request should
   * have been sent.
   */
  readonly p50: number
  readonly p99: number
}

/**
 * From the clients: connected, and waiting to be told to go; then the result, or what went wrong.
 */
export type LoadMessage =
  | { readonly kind: 'connected' }
  | { readonly kind: 'done'; readonly result: LoadResult }
  | { readonly kind: 'failed'; readonly reason: string }
