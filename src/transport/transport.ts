import type { Socket } from 'node:net'
import type { GatewayError } from '../core/errors.ts'
import type { ContentReader, GiveBack } from '../wire/read-buffers.ts'

/** One address of an upstream, and how connections to it are opened and kept. */
export interface TransportTarget {
  /** A host name, or an IP address without brackets. */
  readonly host: string
  readonly port: number
  /** The path of a socket in the file system, which takes the place of `host` and `port`. */
  readonly socketPath?: string | undefined
  /** Absent for plain TCP. */
  readonly tls: TargetTls | undefined
  /**
   * A connection begins with the address of the client, and carries requests of one client only.
   */
  readonly tellsClient?: boolean
  readonly maxConnections: number
  readonly connectTimeoutMs: number
  /** How long a connection is kept without a request, in ms. 0: one request for each connection. */
  readonly keepAliveMs: number
  /** After this time a connection takes no further request, so that the host is resolved again. */
  readonly lifetimeMs: number
}

/** TLS of the connections to a target. */
export interface TargetTls {
  /** The trusted certificates (PEM). Absent: those of Node.js. */
  readonly ca: string | undefined
  /** The host name for SNI and the certificate. Absent: the host of the target. */
  readonly serverName?: string | undefined
  /** Certificate and private key (PEM) of the gateway. Absent: it presents none. */
  readonly clientCertificate?: { readonly cert: string; readonly key: string } | undefined
  /** SHA-256 digests of the allowed public keys, as base64. Empty: any key. */
  readonly pinnedKeys?: readonly string[]
}

/** Carries requests to one target, or to several. */
export interface Transport {
  /**
   * Sends a request. Never throws: a request that cannot be sent fails with `onError`.
   * @param observer is told which target gets the request, where there are several
   */
  dispatch(request: UpstreamRequest, handler: ResponseHandler, observer?: TargetObserver): void
  /** Rejects new requests, and resolves when all exchanges have ended. */
  close(): Promise<void>
  /** Ends all exchanges, except those that have switched to another protocol. */
  destroy(): Promise<void>
}

/** Is told about the targets of a request. */
export interface TargetObserver {
  /** The request goes to this target. Called again when it goes to another one. */
  onTarget(target: string): void
  /** The request goes to another target, because this one has failed. */
  onRetry(failed: string, error: GatewayError): void
}

/** The content of a request on its way to the upstream. */
export interface RequestContent {
  /** The client has not sent all of it. */
  readonly isIncomplete: boolean
  /**
   * Begins to read. Called at most once, after the head of the request was written. May pass parts
   * to the reader before it returns.
   */
  begin(reader: ContentReader): void
  /** Stops reading until `resume`. */
  pause(): void
  /** Has no effect on content that is not paused. */
  resume(): void
  /** The reader gets nothing more. */
  destroy(): void
}

/** A request to an upstream. */
export interface UpstreamRequest {
  readonly method: string
  readonly path: string
  /** Field names and values in turn. */
  readonly headers: readonly string[]
  /**
   * The identity fields, which follow `headers`. While they do not change, requests of a session
   * have the same frozen array, so that its text is kept.
   */
  readonly identity: readonly string[]
  readonly body: RequestContent | undefined
  /** The protocols that the upstream may switch to (RFC 9110 §7.8). */
  readonly upgrade: string | undefined
  /** The requests of a session may go to the same target. Absent: it has no session. */
  readonly session?: string | undefined
  /** The address of the client. Absent: the gateway sends the request on its own. */
  readonly client?: string | undefined
  /** Another target may have carried it out, so it is not sent a third time. */
  readonly isRepetition?: boolean
}

/**
 * How far an exchange came until it failed. `unsent`: no byte of the request was written. `sent`:
 * no byte of a response has arrived.
 */
export type Progress = 'unsent' | 'sent' | 'responding'

/** Field names and values in turn, in the order and case of the upstream; a character is a byte. */
export type RawFields = readonly string[]

/** Controls an exchange that has begun. No call has an effect when the exchange is over. */
export interface ExchangeControl {
  /** Stops reading the response until `resume`. */
  pause(): void
  resume(): void
  /** Ends the exchange and closes its connection. */
  abort(reason: Error): void
}

/**
 * Receives the response to one request.
 *
 * Exactly one of `onEnd`, `onSwitch` and `onError` is called, once. `onDone` is also called exactly
 * once. When `onResponse` or a content method throws, the exchange fails with that error.
 */
export interface ResponseHandler {
  /**
   * The request is about to be written. Called again when the request is sent a second time.
   * @returns `false` when the request is not wanted any more: nothing is sent, and only `onDone`
   * follows
   */
  onSend(control: ExchangeControl): boolean
  /** An interim response (1xx, except 100 and 101), or the head of the final response. */
  onResponse(status: number, statusMessage: string, fields: RawFields): void
  /**
   * A part of at most `shortBytes` (`wire/read-buffers.ts`). If it is the last one, its memory is
   * used again after `onEnd`, so a handler copies what it keeps longer.
   */
  onShortPart(part: Buffer): void
  /** A longer part, whose memory is used for other responses after `giveBack` was called. */
  onContent(part: Buffer, giveBack: GiveBack): void
  onEnd(trailers: RawFields): void
  /** The upstream has switched to another protocol. */
  onSwitch(connection: SwitchedConnection, fields: RawFields): void
  /** @param progress as the transport knows it */
  onError(error: GatewayError, progress?: Progress): void
  /** The exchange does not need a connection any more. Comes before `onEnd` and `onError`. */
  onDone(): void
}

/** Receives data. Its memory is used again after the call, so the receiver copies what it keeps. */
export type Receiver = (bytes: Buffer) => void

/**
 * The memory that all connections read into. A read fills it and calls the receiver at once, so no
 * two connections need it at the same time, and a connection without data has no memory of its own.
 */
const memory = Buffer.allocUnsafeSlow(64 * 1024)

/**
 * A connection to an upstream that has switched to another protocol (RFC 9110 §7.8). It is paused
 * until it has a receiver. Its data does not pass through the streams of Node.js, because they cost
 * about as much as the system call that reads a short message.
 */
export class SwitchedConnection {
  /** For all but reading. After a pause, data that was read already may still arrive. */
  readonly socket: Socket
  readonly memory = memory
  /** Data that arrived before there was a receiver. */
  #early: Buffer[]
  #receive: Receiver = (bytes) => void this.#early.push(Buffer.from(bytes))

  /** @param rest what arrived together with the response */
  constructor(socket: Socket, rest: Buffer) {
    this.socket = socket
    this.#early = rest.length === 0 ? [] : [Buffer.from(rest)]
  }

  /** All data goes to `receive` from now on. The socket is read. */
  read(receive: Receiver): void {
    this.#receive = receive
    const early = this.#early
    this.#early = []
    for (const bytes of early) receive(bytes)
    this.socket.resume()
  }

  /** @internal The socket has read this many bytes into the memory. */
  arrive(length: number): void {
    this.#receive(memory.subarray(0, length))
  }
}
