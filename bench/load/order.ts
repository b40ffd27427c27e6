/** Somebody who is signed in. */
export interface Visitor {
  /** The `Cookie` header; empty where nobody signs in. */
  readonly cookie: string
  /** `person-N`, whose identity headers the upstream has to see; absent where nobody signs in. */
  readonly person?: string
}

/** What the clients are to do. */
export interface LoadOrder {
  readonly port: number
  readonly tls: boolean
  /** Of an answer, in bytes. */
  readonly bodyBytes: number
  /** Of what is sent with POST, in bytes; absent: GET. */
  readonly uploadBytes?: number
  /** Taken in turn. */
  readonly visitors: readonly Visitor[]
  readonly connections: number
  readonly ms: number
  /** Requests per second, sent when it is time whether or not earlier ones were answered; absent: as fast as they are answered. */
  readonly rate?: number
}

export interface LoadResult {
  readonly requests: number
  readonly seconds: number
  /** In ms, the p-th of 100 answers, in the order of how long they took; with a rate since the request should have been sent. */
  readonly p50: number
  readonly p99: number
}

/** Between the bench and its clients: connected, then told to go, then the result, or what went wrong. */
export type LoadMessage =
  | { readonly kind: 'connected' }
  | { readonly kind: 'done'; readonly result: LoadResult }
  | { readonly kind: 'failed'; readonly reason: string }
