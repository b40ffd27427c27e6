// An application that knows nothing of sign-in. It records each request, and responds with the
// identity that it has received.
import { createHash, randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, Server, type ServerResponse } from 'node:http'
import { createSecureServer, Http2ServerRequest, type Http2ServerResponse } from 'node:http2'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { WebSocketServer } from 'ws'
import { freePort } from '../test/support/free-port.ts'
import type { RedisTls, Scope } from '../test/support/redis.ts'
import { type HistoryEvent, type Identity, now } from './history.ts'
import type { Network } from './network.ts'
import { applicationOf } from './parties.ts'

/** Of the sessions of applications: each has its own, by its path. */
export const cookieName = 'APPLICATION'
/** Between two messages of a stream, in ms. */
const tickMs = 500

export interface ApplicationParts {
  readonly network: Network
  readonly record: (event: HistoryEvent) => void
  /** With it, `orders` speaks HTTP/2 and `files` HTTP/1.1 over TLS. */
  readonly certificate: RedisTls | undefined
}

type Respond = (req: IncomingMessage, res: ServerResponse) => void

function serverOf(application: string, certificate: RedisTls | undefined, respond: Respond) {
  if (certificate === undefined || application === 'live') return createServer(respond)
  const tls = { cert: readFileSync(certificate.cert), key: readFileSync(certificate.key) }
  if (application === 'files') return createTlsServer(tls, respond)
  // The compatible interface of Node.js.
  return createSecureServer(tls, respond as unknown as (req: Http2ServerRequest, res: Http2ServerResponse) => void)
}

/** Starts an application, and returns its address behind the network. */
export async function startApplication(
  scope: Scope,
  name: string,
  { network, record, certificate }: ApplicationParts,
): Promise<string> {
  const application = applicationOf(name)
  const note = (req: IncomingMessage, more: { readonly digest?: string } = {}) => {
    const [form, cookie] = [field(req, 'x-form'), cookieOf(req)]
    const identity: Identity = { sub: field(req, 'x-sub'), sid: field(req, 'x-sid') }
    const request = field(req, 'x-chaos-request')
    record({
      type: 'receipt',
      at: now(),
      request,
      application,
      identity,
      ...(form && { form }),
      ...(cookie && { cookie }),
      ...more,
    })
    return identity
  }
  const respond = (req: IncomingMessage, res: ServerResponse) => {
    if (req.url?.endsWith('/logout')) {
      record({ type: 'logout-call', at: now(), application, cookie: cookieOf(req) })
      return void res.end()
    }
    const digest = createHash('sha256')
    if (req.headers.accept === 'text/event-stream') {
      res.writeHead(200, { 'content-type': 'text/event-stream', 'x-application': application })
      const message = messageTo(req, note(req))
      const send = () => res.write(`data: ${message}\n\n`)
      send()
      const ticking = setInterval(send, tickMs)
      return void res.once('close', () => clearInterval(ticking))
    }
    req.on('data', (bytes: Buffer) => digest.update(bytes))
    // Content that broke off did not arrive: the receipt has no digest.
    req.once('close', () => {
      if (!req.complete) note(req)
    })
    // Over HTTP/2, Node.js emits `end` for content that was reset too, and then `aborted`.
    return void req.once('end', () => setImmediate(() => answer(req, res, digest.digest('hex'))))
  }
  const answer = (req: IncomingMessage, res: ServerResponse, hash: string) => {
    if (isReset(req)) return void note(req)
    const identity = note(req, req.method === 'GET' ? {} : { digest: hash })
    const request = field(req, 'x-chaos-request')
    // Each person gets a session of this application, until the gateway ends it.
    if (cookieOf(req) === '' && identity.sub !== '') {
      const cookie = randomUUID()
      record({ type: 'own-session', at: now(), request, application, cookie, identity })
      res.setHeader('set-cookie', `${cookieName}=${cookie}; Path=/${application}`)
    }
    res.writeHead(200, { 'content-type': 'application/json', 'x-application': application })
    return void res.end(messageTo(req, identity))
  }
  const server = serverOf(application, certificate, respond)
  const sockets = new WebSocketServer({ server: server as Server })
  sockets.on('connection', (socket, req) => {
    const message = messageTo(req, note(req))
    socket.send(message)
    const ticking = setInterval(() => socket.send(message), tickMs)
    socket.on('close', () => clearInterval(ticking)).on('error', () => {})
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  scope.after(() => {
    server.close()
    if ('closeAllConnections' in server) server.closeAllConnections()
    for (const socket of sockets.clients) socket.terminate()
  })
  const port = await freePort()
  await network.link(name, port, (server.address() as AddressInfo).port)
  return `${server instanceof Server ? 'http' : 'https'}://${network.host(name)}:${port}`
}

/** Each response and each message of a stream names the person and the request. */
function messageTo(req: IncomingMessage, identity: Identity): string {
  return JSON.stringify({ identity, echo: field(req, 'x-chaos-request') })
}

/** Whether a request over HTTP/2 was reset before its end. */
function isReset(req: IncomingMessage | Http2ServerRequest): boolean {
  return req instanceof Http2ServerRequest && req.aborted
}

/** The cookie of a session of the application, if the request has one. */
function cookieOf(req: IncomingMessage): string {
  return new RegExp(`${cookieName}=([^;]*)`).exec(field(req, 'cookie'))?.[1] ?? ''
}

function field({ headers }: IncomingMessage, name: string): string {
  return String(headers[name] ?? '')
}
