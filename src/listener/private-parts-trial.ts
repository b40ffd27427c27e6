import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, Socket } from 'node:net'
import { reason } from '../core/errors.ts'
import { leaveOutPrivateParts, privatePartsLeftOut } from '../core/node-private-parts.ts'
import type { ClientMessage, ClientReply } from '../http/client-messages.ts'
import type { Log } from '../observe/log.ts'
import { serveHalfClosedConnections } from './half-closed.ts'
import { IdleConnections } from './idle-connections.ts'
import { Front } from './plain/plain-connection.ts'

/** How long the exchange may take, in ms. It takes a few, also on a busy machine. */
const longestTrialMs = 5000
/** In more than one read, so that Node.js asks for memory again. */
const content = Buffer.from('0123456789abcdef'.repeat(6 * 1024))
const upload = `POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${content.length}\r\n\r\n`
/** `TE` makes Node's server read it. */
const last = 'GET / HTTP/1.1\r\nHost: localhost\r\nTE: trailers\r\nConnection: close\r\n\r\n'
const expected = /^HTTP\/1\.1 200 OK\r\n[^]*\r\nunchanged\r\n[^]*HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\nthe last$/

/** A process tries them once. */
let trial: Promise<void> | undefined

/**
 * Tries the private parts of Node.js before the first request of a client: two requests on a
 * connection of the loopback interface. When anything differs from what the gateway expects, it
 * uses no private part from then on, and logs why.
 */
export async function tryPrivateParts(log: Log): Promise<void> {
  if (privatePartsLeftOut() === undefined)
    await (trial ??= exchange().catch((error: unknown) =>
      leaveOutPrivateParts(`a trial on 127.0.0.1 failed: ${reason(error)}`),
    ))
  const why = privatePartsLeftOut()
  if (why === undefined) return
  const hint =
    'Requests take more processor time. If the reason is a fault of the system, such as EMFILE, mend it and start ' +
    'again. Otherwise, use a version of Node.js that this release was tested with.'
  log.warn('node.private_parts_off', { reason: why, hint })
}

/** @throws {Error} with what differed */
async function exchange(): Promise<void> {
  // Not shared. Otherwise, another worker could get the connection while it closes its server.
  const server = createServer((_req, res) => res.end('the last')).listen({
    port: 0,
    host: '127.0.0.1',
    exclusive: true,
  })
  let client: Socket | undefined
  const { promise: failure, reject: fail } = Promise.withResolvers<never>()
  // A changed part throws where Node.js calls it, which would end the process.
  process.on('uncaughtException', fail)
  const limit = setTimeout(() => fail(new Error(`nothing arrived within ${longestTrialMs / 1000} s`)), longestTrialMs)
  try {
    serve(server)
    await Promise.race([once(server, 'listening'), failure])
    client = connect((server.address() as AddressInfo).port, '127.0.0.1')
    client.write(upload)
    client.write(content)
    client.write(last)
    const responses = await Promise.race([read(client), failure])
    if (!expected.test(responses)) throw new Error('the responses were not complete')
  } finally {
    clearTimeout(limit)
    process.off('uncaughtException', fail)
    client?.destroy()
    server.close()
    server.closeAllConnections()
  }
}

/** Serves the first request like a plain one of a client, and leaves the other to Node's server. */
function serve(server: ReturnType<typeof createServer>): void {
  const idle = new IdleConnections(server)
  serveHalfClosedConnections(server, () => undefined)
  const limits = { maxHeadBytes: 1024, headersTimeoutMs: longestTrialMs, keepAliveMs: longestTrialMs }
  new Front(server, false, {
    ...limits,
    request: respond,
    isDraining: () => false,
    arrived: () => {},
    incomplete: (socket) => socket.destroy(),
    handedOver: (connection) => {
      if (connection instanceof Socket) idle.serve(connection)
    },
  })
}

function respond(req: ClientMessage, res: ClientReply): void {
  let received = 0
  let isUnchanged = true
  req.on('data', (part, giveBack) => {
    isUnchanged &&= part.equals(content.subarray(received, received + part.length))
    received += part.length
    giveBack?.()
  })
  req.on('end', () => res.end(isUnchanged && received === content.length ? 'unchanged' : 'changed', 'utf8'))
}

async function read(client: Socket): Promise<string> {
  let text = ''
  for await (const bytes of client) text += String(bytes)
  return text
}
