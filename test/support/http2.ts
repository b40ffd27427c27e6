import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { type ClientHttp2Session, type ClientHttp2Stream, connect, type OutgoingHttpHeaders } from 'node:http2'
import type { TestContext } from 'node:test'
import { httpUpstream } from '../proxy/support.ts'
import { issueCertificates } from './certificates.ts'
import { startWorld, type World, type WorldOptions } from './world.ts'

export type Http2World = World & { connect(): ClientHttp2Session }

interface Http2Options extends Omit<WorldOptions, 'listen'> {
  readonly h2c?: boolean
  /** YAML of `listen` behind the other settings, with a comma before it. */
  readonly listen?: string
  /** YAML of `listen.tls.certificates`. */
  readonly certificates?: string
  readonly onUpstream?: (server: Server) => unknown
}

/** A gateway that serves HTTP/2 over TLS, or without TLS where `h2c` is true. */
export async function startHttp2World(
  t: TestContext,
  handler: (req: IncomingMessage, res: ServerResponse) => unknown,
  { h2c = false, listen = '', certificates = '[]', onUpstream = () => {}, ...options }: Http2Options = {},
): Promise<Http2World> {
  const { server: files } = issueCertificates()
  const { port, server } = await httpUpstream(t, handler)
  onUpstream(server)
  const tls = h2c
    ? 'h2c: true'
    : `tls: { cert_file: ${files.cert}, key_file: ${files.key}, certificates: ${certificates} }`
  const ca = readFileSync(files.ca, 'utf8')
  const world = await startWorld(t, {
    listen: (address) => `{ address: "${address}", ${tls}${listen} }`,
    externalUrl: (port) => `${h2c ? 'http' : 'https'}://127.0.0.1:${port}`,
    browserCa: ca,
    upstream: new URL(`http://127.0.0.1:${port}`),
    upstreamSettings: 'rules: [{ path: /public/*, access: public }]',
    ...options,
  })
  const openSession = () => {
    const session = connect(world.url, { ca })
    session.on('error', () => {})
    t.after(() => session.destroy())
    return session
  }
  return { ...world, connect: openSession }
}

export interface Http2Response {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  readonly trailers: Readonly<Record<string, unknown>>
  readonly body: string
}

/** Sends a request and reads its whole response. Rejects when the stream is reset. */
export async function request(
  session: ClientHttp2Session,
  headers: OutgoingHttpHeaders,
  content?: string | Buffer,
): Promise<Http2Response> {
  const stream = session.request(headers, { endStream: content === undefined })
  if (content !== undefined) stream.end(content)
  return readResponse(stream)
}

export async function readResponse(stream: ClientHttp2Stream): Promise<Http2Response> {
  let trailers = {}
  stream.on('trailers', (fields) => (trailers = fields))
  const [headers] = (await once(stream, 'response')) as [Record<string, unknown>]
  let body = ''
  for await (const part of stream) body += (part as Buffer).toString('latin1')
  return { status: Number(headers[':status']), headers, trailers, body }
}
