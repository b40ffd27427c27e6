import { createServer, type ServerHttp2Session } from 'node:http2'
import type { AddressInfo } from 'node:net'
import type { SeenRequest, StrictUpstream } from './strict-upstream.ts'

interface Scope {
  after(over: () => unknown): void
}

/** RFC 9113 §8.2.2: fields of a connection, which an application may take for those of HTTP/1.1. */
const ofConnection = /^(?:connection|keep-alive|proxy-connection|transfer-encoding|upgrade)$/

/** An application that speaks HTTP/2 without TLS, and records everything as the one of HTTP/1.1. */
export async function startStrictHttp2Upstream(t: Scope): Promise<StrictUpstream> {
  let seen: SeenRequest[] = []
  const sessions = new Set<ServerHttp2Session>()
  const server = createServer()
  server.on('session', (session) => {
    sessions.add(session)
    session.on('error', () => {}).on('close', () => sessions.delete(session))
  })
  server.on('stream', (stream, { ':method': method = '' }, _flags, raw) => {
    const request = read(raw)
    seen.push(request)
    stream.on('error', () => {})
    stream.on('data', (part: Buffer) => (request.body += part.toString('latin1')))
    stream.on('trailers', (_fields, _flags, raw) =>
      request.trailers.push(...fieldsOf(raw).map(([name, value]) => `${name}: ${value}`)),
    )
    stream.on('end', () => {
      if (stream.aborted || stream.destroyed) return
      request.isWhole = true
      stream.respond({ ':status': 200, 'content-type': 'application/json' }, { endStream: method === 'HEAD' })
      if (method !== 'HEAD') stream.end('{"seenByUpstream":true}')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    for (const session of sessions) session.destroy()
  })
  return {
    url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
    get seen() {
      return seen
    },
    forget: () => void (seen = []),
  }
}

interface Reading extends SeenRequest {
  body: string
  readonly trailers: string[]
  isWhole: boolean
}

function read(raw: readonly string[]): Reading {
  const fields = fieldsOf(raw)
  const pseudo = (name: string) => fields.filter(([each]) => each === name).map(([, value]) => value)
  const [[method = ''], [target = ''], authorities] = [pseudo(':method'), pseudo(':path'), pseudo(':authority')]
  const headers = fields.filter(([name]) => !name.startsWith(':'))
  const faults = headers.filter(([name, value]) => ofConnection.test(name) || (name === 'te' && value !== 'trailers'))
  const lengths = headers.filter(([name]) => name === 'content-length')
  return {
    requestLine: `${method} ${target} HTTP/2`,
    method,
    target,
    headers: [...authorities.map((authority) => ['Host', authority] as const), ...headers],
    body: '',
    trailers: [],
    faults: [
      ...faults.map(([name, value]) => `${name}: ${value}`),
      ...(authorities.length !== 1 || headers.some(([name]) => name === 'host') ? ['not one :authority'] : []),
      ...(lengths.length > 1 ? [`${lengths.length} Content-Length fields`] : []),
    ],
    isWhole: false,
  }
}

/** As names and values, in order. */
function fieldsOf(raw: readonly string[]): (readonly [string, string])[] {
  return raw.flatMap((name, at) => (at % 2 === 0 ? [[name, raw[at + 1] ?? ''] as const] : []))
}
