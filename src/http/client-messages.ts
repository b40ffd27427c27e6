import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { GiveBack } from '../wire/read-buffers.ts'

type Socket = IncomingMessage['socket']

/**
 * What the gateway uses of a request: of Node's `IncomingMessage`, of a `PlainRequest`, or of a
 * `StreamRequest` of HTTP/2.
 */
export interface ClientMessage {
  method?: string | undefined
  url?: string | undefined
  readonly httpVersion: string
  /** 0 for HTTP/1.0 only. */
  readonly httpVersionMinor: number
  /** The scheme that a request of HTTP/2 states. */
  readonly scheme?: string
  /** The values by lower-case name. */
  readonly headers: IncomingMessage['headers']
  /** Names and values in turn, as the client wrote them. */
  readonly rawHeaders: string[]
  readonly socket: Socket
  /** The content has arrived completely. */
  readonly complete: boolean
  readonly destroyed: boolean
  readonly readableEnded: boolean
  /** Without `giveBack`, the memory of the chunk is not used again. */
  on(event: 'data', listener: (chunk: Buffer, giveBack?: GiveBack) => void): unknown
  on(event: 'end', listener: () => void): unknown
  off(event: 'data', listener: (chunk: Buffer, giveBack?: GiveBack) => void): unknown
  off(event: 'end', listener: () => void): unknown
  once(event: 'close', listener: () => void): unknown
  pause(): unknown
  resume(): unknown
  isPaused(): boolean
  /** Emits what has arrived at once. Absent: it is emitted in a later step. */
  deliver?(): void
}

/**
 * What the gateway uses of a response: of Node's `ServerResponse`, of a `PlainResponse`, or of a
 * `StreamResponse` of HTTP/2.
 */
export interface ClientReply {
  readonly socket: Duplex | null
  readonly statusCode: number
  readonly headersSent: boolean
  readonly destroyed: boolean
  readonly writableFinished: boolean
  readonly chunkedEncoding: boolean
  /** The client is behind: `write` should wait for `drain`. */
  readonly writableNeedDrain: boolean
  setHeader(name: string, value: string | number | readonly string[]): unknown
  appendHeader(name: string, value: string | readonly string[]): unknown
  writeHead(status: number, fields?: string[]): unknown
  writeHead(status: number, statusMessage: string, fields: string[]): unknown
  /** `write` and `end` copy a part of at most `shortBytes`. Absent: they keep each part. */
  readonly copiesShortParts?: true
  write(part: Buffer, written?: (error?: Error | null) => void): boolean
  end(): unknown
  end(last: Buffer): unknown
  end(last: string, encoding: 'utf8'): unknown
  addTrailers(fields: readonly [string, string][]): unknown
  flushHeaders(): void
  writeContinue(): void
  writeEarlyHints(hints: { readonly link: string[] }): void
  destroy(): unknown
  on(event: 'error' | 'drain', listener: () => void): this
  once(event: 'close', listener: () => void): this
  off(event: 'close', listener: () => void): this
}

/** The response to a request for another protocol (RFC 9110 §7.8, RFC 8441). */
export interface SwitchingReply extends ClientReply {
  /**
   * The connection, or the stream of HTTP/2, carries the other protocol from now on.
   * @param upstream what the upstream has sent as `Upgrade` and as `Sec-WebSocket-Accept`
   * @returns `false`: the upstream has not accepted the WebSocket
   */
  switchProtocols(fields: readonly string[], upstream: { readonly upgrade: string; readonly accept: string }): boolean
}

/** The client of a request for another protocol. */
export interface UpgradeClient {
  readonly req: ClientMessage
  /** Bytes both ways. In HTTP/1.1, the response is written to it too. */
  readonly socket: Duplex
  readonly reply: SwitchingReply
}
