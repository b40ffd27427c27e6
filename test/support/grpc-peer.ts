import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2'
import type { TestContext } from 'node:test'
import { type GrpcParts, listenForGrpc } from '../../src/check-requests/grpc.ts'
import { silent } from './signing-provider.ts'

/** The path of the one method of {@link startGrpc}. */
const method = '/test.Service/Method'
/** A message without content, in its frame. */
export const emptyMessage = Buffer.alloc(5)

/** The gRPC server with one method, and one connection to it that sends raw HTTP/2. */
export async function startGrpc(
  t: TestContext,
  call: GrpcParts['methods'][string],
): Promise<{ session: ClientHttp2Session; request: (path?: string, scheme?: string) => ClientHttp2Stream }> {
  const listen = { host: '127.0.0.1', port: 0, messageSizeBytes: 8192 }
  const server = await listenForGrpc(listen, { methods: { [method]: call }, admits: () => true, log: silent })
  const session = connect(`http://127.0.0.1:${server.address.port}`).on('error', () => {})
  t.after(async () => {
    session.destroy()
    await server.close()
  })
  const fields = { ':method': 'POST', 'content-type': 'application/grpc', te: 'trailers' }
  return {
    session,
    request: (path = method, scheme = 'http') =>
      session.request({ ...fields, ':path': path, ':scheme': scheme }).on('error', () => {}),
  }
}

/** The `grpc-status` of a call; `undefined` when it was reset. */
export function statusOf(stream: ClientHttp2Stream): Promise<unknown> {
  return new Promise((resolve) => {
    let status: unknown
    stream.on('response', (headers) => (status = headers['grpc-status']))
    stream.on('trailers', (trailers) => (status = trailers['grpc-status']))
    stream.on('close', () => resolve(status))
    stream.resume()
  })
}
