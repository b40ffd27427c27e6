import {
  constants,
  createServer,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { AddressInfo } from 'node:net'
import type { Address } from '../config/addresses.ts'
import type { ExtAuthzConfig } from '../config/model/gateway.ts'
import { listenError } from '../core/connection-advice.ts'
import { OperatorError, reason } from '../core/errors.ts'
import { grpcFields, type GrpcStatus, grpcStatuses as statuses } from '../core/grpc.ts'
import { readContent } from '../http/read-content.ts'
import type { Log } from '../observe/log.ts'
import { replaceAfterCancellations } from '../wire/http2-cancellations.ts'

/** A method that takes one message and returns one. */
export type UnaryMethod = (message: Uint8Array, peer: string | undefined) => Promise<Uint8Array>

/** The listener of a gRPC server. */
export interface GrpcListener {
  readonly address: Address
  /** Closes all connections. */
  close(): Promise<void>
}

/** A prefix: one byte that says whether the message is compressed, then its length. */
const prefixBytes = 5
/** How long a client may take to send a message, in ms. */
const messageTimeoutMs = 10_000

export interface GrpcParts {
  /** The methods, by their path. */
  readonly methods: Readonly<Record<string, UnaryMethod>>
  /** Whether a client may connect. Others are disconnected at once. */
  readonly admits: (peer: string) => boolean
  readonly log: Log
}

/**
 * A gRPC server for unary methods (gRPC over HTTP/2), without TLS. Messages are not compressed, and
 * not longer than `messageSizeBytes`.
 * @throws {OperatorError} when the address cannot be listened on
 */
export async function listenForGrpc(
  { host, port, messageSizeBytes }: ExtAuthzConfig,
  { methods, admits, log }: GrpcParts,
): Promise<GrpcListener> {
  const server = createServer({ settings: { maxConcurrentStreams: 1000, enablePush: false } })
  const sessions = new Set<ServerHttp2Session>()
  server.on('session', (session) => {
    session.on('error', () => {})
    if (!admits(session.socket.remoteAddress ?? '')) return session.destroy()
    sessions.add(session)
    session.on('close', () => sessions.delete(session))
    replaceAfterCancellations(session)
  })
  server.on('sessionError', () => {})
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {})
    const path = headers[':path'] ?? ''
    // A path such as "constructor" names a member of every object.
    const method = Object.hasOwn(methods, path) ? methods[path] : undefined
    if (!isCall(headers)) return stream.respond({ ':status': 415 }, { endStream: true })
    if (method === undefined) return refuse(stream, statuses.unimplemented, 'the method is unknown')
    const peer = stream.session?.socket.remoteAddress
    serve(stream, (message) => method(message, peer), messageSizeBytes).catch((error: unknown) => {
      log.error('ext_authz.failed', { reason: reason(error) })
      refuse(stream, statuses.internal, 'internal error')
    })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) =>
      reject(new OperatorError(listenError(cause, { host, port }, 'ext_authz.listen'), { cause })),
    )
    server.listen({ host, port }, () => resolve())
  })
  server.on('error', (error) => log.error('ext_authz.listener_failed', { reason: reason(error) }))
  return {
    address: { host, port: (server.address() as AddressInfo).port },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const session of sessions) session.destroy()
      }),
  }
}

function isCall({ ':method': method, 'content-type': type = '' }: IncomingHttpHeaders): boolean {
  return method === 'POST' && /^application\/grpc(?:\+proto)?(?:$|;)/i.test(type)
}

async function serve(
  stream: ServerHttp2Stream,
  method: (message: Uint8Array) => Promise<Uint8Array>,
  maxBytes: number,
): Promise<void> {
  // The timeout of a stream would begin again with each byte.
  const timer = setTimeout(() => stream.close(constants.NGHTTP2_CANCEL), messageTimeoutMs)
  // The response may take longer, for example while tokens are refreshed.
  const received = await readCall(stream, maxBytes).finally(() => clearTimeout(timer))
  if (received === undefined) return
  if (!('message' in received)) return refuse(stream, received.status, received.why)
  const message = await method(received.message)
  if (stream.destroyed) return
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': String(statuses.ok) }))
  const prefix = Buffer.alloc(prefixBytes)
  prefix.writeUInt32BE(message.length, 1)
  stream.end(Buffer.concat([prefix, message]))
}

type Received = { readonly message: Uint8Array } | { readonly status: GrpcStatus; readonly why: string }

/** Reads the one message of a call; `undefined` when the client has cancelled it. */
async function readCall(stream: ServerHttp2Stream, maxBytes: number): Promise<Received | undefined> {
  const all = await readContent(stream, prefixBytes + maxBytes)
  // For Node.js, content also ends when the client resets the stream.
  if (all === 'incomplete' || stream.aborted || stream.destroyed) return undefined
  // More cannot be one message within the limit, whatever its prefix says.
  if (all === 'too_large')
    return { status: statuses.resourceExhausted, why: `the message is longer than ${maxBytes} bytes` }
  if (all.length < prefixBytes) return { status: statuses.invalidArgument, why: 'there is no message' }
  if (all[0] !== 0) return { status: statuses.unimplemented, why: 'the message is compressed' }
  if (all.readUInt32BE(1) !== all.length - prefixBytes)
    return { status: statuses.invalidArgument, why: 'the message has not the length that it states' }
  return { message: all.subarray(prefixBytes) }
}

function refuse(stream: ServerHttp2Stream, status: GrpcStatus, message: string): void {
  if (stream.destroyed || stream.headersSent) return
  const fields = grpcFields(status, message)
  stream.respond({ ':status': 200, 'content-type': 'application/grpc', ...fields }, { endStream: true })
  // The client need not send the rest of its message (RFC 9113 §8.1). Node.js 22 sends no response
  // when the stream is closed in the same turn.
  stream.resume()
  setImmediate(() => stream.close(constants.NGHTTP2_NO_ERROR))
}
