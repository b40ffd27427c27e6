/** A signed-in person. */
export interface Visitor {
  /** The `Cookie` header. Empty for a contender without sign-in. */
  readonly cookie: string
  /**
   * The person whose identity headers the upstream must receive. Absent for a contender without
   * sign-in.
   */
  readonly person?: number
}

/** As few as possible, or as many as those of browsers and applications usually are. */
export type Fields = 'few' | 'typical'

interface Order {
  /** The port on loopback. */
  readonly port: number
  readonly tls: boolean
  /** The signed-in people, whose sessions are used in turn. */
  readonly visitors: readonly Visitor[]
  readonly connections: number
  readonly ms: number
}

export interface RequestsOrder extends Order {
  readonly kind: 'requests'
  /** The size of a response body, in bytes. */
  readonly bodyBytes: number
  /** How many header fields requests and responses have. */
  readonly fields: Fields
  /** The size of a POST body, in bytes. Absent: GET. */
  readonly uploadBytes?: number
  /** How many streams each connection has, over HTTP/2. Absent: HTTP/1.1. */
  readonly streams?: number
  /** Each request has a connection of its own; with TLS, after a handshake without resumption. */
  readonly reconnects?: boolean
  /**
   * Requests per second, sent without waiting for earlier responses. Absent: each client sends a
   * request after each response.
   */
  readonly rate?: number
}

/**
 * WebSockets. Each sends a message when the previous one has returned, or nothing if they are idle.
 */
export interface WebSocketsOrder extends Order {
  readonly kind: 'websockets'
  readonly areIdle: boolean
}

/** An order to the clients. */
export type LoadOrder = RequestsOrder | WebSocketsOrder

export interface LoadResult {
  /** The number of responses, or of returned messages. */
  readonly count: number
  readonly seconds: number
  /**
   * The 50th and 99th percentile of the latency, in ms. With a rate, the latency begins when the
   * request is due.
   */
  readonly p50: number
  readonly p99: number
}

/**
 * Messages from the clients: all are connected and wait for the start; then the result, or the
 * error.
 */
export type LoadMessage =
  | { readonly kind: 'connected' }
  | { readonly kind: 'done'; readonly result: LoadResult }
  | { readonly kind: 'failed'; readonly reason: string }
