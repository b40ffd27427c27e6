import { type ClientHttp2Session, connect, type OutgoingHttpHeaders } from 'node:http2'
import type { Socket } from 'node:net'
import type { Asker } from './loads.ts'
import { openSocket } from './sockets.ts'

/** Opens a connection with HTTP/2, whose socket fails the load when it ends. */
export async function openSession(
  port: number,
): Promise<{ readonly session: ClientHttp2Session; readonly socket: Socket }> {
  const socket = await openSocket({ port, tls: true, protocol: 'h2' })
  const session = connect(`https://127.0.0.1:${port}`, { createConnection: () => socket })
  session.on('error', () => {})
  return { session, socket }
}

/** A stream after the other on a connection that others use too. Expects 200 of a known length. */
export class StreamAsker implements Asker {
  readonly #session: ClientHttp2Session
  readonly #bodyBytes: number
  readonly #fail: (reason: string) => void

  constructor(session: ClientHttp2Session, bodyBytes: number, fail: (reason: string) => void) {
    this.#session = session
    this.#bodyBytes = bodyBytes
    this.#fail = fail
  }

  ask(request: Buffer, answered: () => void): void {
    let [status, bytes] = [0, 0]
    this.#session
      .request(fieldsOf(request), { endStream: true })
      .on('response', (fields) => (status = Number(fields[':status'])))
      .on('data', (part: Buffer) => (bytes += part.length))
      .on('end', () => {
        if (status === 200 && bytes === this.#bodyBytes) answered()
        else this.#fail(`not a 200 of ${this.#bodyBytes} bytes but ${status} of ${bytes}`)
      })
      .on('error', (error: Error) => this.#fail(error.message))
  }
}

const known = new WeakMap<Buffer, OutgoingHttpHeaders>()

/** The fields of a request that is written as HTTP/1.1. */
function fieldsOf(request: Buffer): OutgoingHttpHeaders {
  const found = known.get(request)
  if (found !== undefined) return found
  const [first = '', ...lines] = request.toString('latin1').split('\r\n\r\n', 1)[0]?.split('\r\n') ?? []
  const [method, path] = first.split(' ')
  const pairs = lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)] as const)
  const { host, ...others } = Object.fromEntries(pairs)
  const fields = { ':method': method, ':path': path, ':authority': host, ...others }
  known.set(request, fields)
  return fields
}
