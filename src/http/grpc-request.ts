import type { ClientMessage } from './client-messages.ts'
import { type HeaderView, textOf } from './forwarded.ts'

const grpcType = /^application\/grpc(-web(?:-text)?)?(?:\+[a-z0-9.-]+)?(?=$|[;\s])/i

/** Whether a request is a call of gRPC or gRPC-Web, according to its media type. */
export function isGrpcCall(headers: HeaderView): boolean {
  return grpcType.test(textOf(headers, 'content-type') ?? '')
}

/**
 * Whether a request is a call of gRPC-Web. Its response has the status in the content, in a frame
 * that only the application can write, because pages do not get the trailer section.
 */
export function isGrpcWebCall(headers: HeaderView): boolean {
  return grpcType.exec(textOf(headers, 'content-type') ?? '')?.[1] !== undefined
}

/**
 * The media type of a response to a call; `undefined` when the request is none. Without HTTP/2, a
 * call of gRPC is like any other request, because its response could have no trailer section.
 * gRPC-Web has its status in the content, or in the head.
 */
export function grpcTypeOf({
  headers,
  httpVersion,
}: Pick<ClientMessage, 'headers' | 'httpVersion'>): string | undefined {
  const [type, isWeb] = grpcType.exec(headers['content-type'] ?? '') ?? []
  return httpVersion === '2.0' || isWeb !== undefined ? type?.toLowerCase() : undefined
}
