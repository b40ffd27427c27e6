// An application that knows nothing of sign-in. It records each request, and responds with the
// identity that it has received.
import { createHash, randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, Server, type ServerResponse } from 'node:http'
import { constants, createSecureServer, Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { WebSocketServer } from 'ws'
import { freePort } from '../test/support/free-port.ts'
import type { RedisTls, Scope } from '../test/support/redis.ts'
import { type HistoryEvent, type Identity, now, type Receipt } from './history.ts'
import type { Network } from './network.ts'
import { applicationOf } from './parties.ts'

/** Of the sessions of applications: each has its own, by its path. */
export const cookieName = 'APPLICATION'
/** Between two messages of a stream, in ms. */
const tickMs = 500
/** How a download is sent: its lines, its parts, and the pauses between the parts in ms. */
const download = { lines: 120, parts: 6, pauseMs: 50 } as const
/** How often the application breaks off a download, and how often it fails at a form. */
const failures = { download: 0.15, form: 0.06 } as const

export interface ApplicationParts {
  readonly network: Network
  readonly record: (event: HistoryEvent) => void
  /** With it, `orders` speaks HTTP/2 and `files` HTTP/1.1 over TLS. */
  readonly certificate: RedisTls | undefined
}

/** Whether an application never has TLS. */
export function isPlain(application: string): boolean {
  return application === 'live' || application === 'api'
}

type Respond = (req: IncomingMessage, res: ServerResponse) => void

function serverOf(application: string, certificate: RedisTls | undefined, respond: Respond) {
  if (certificate === undefined || isPlain(application)) return createServer(respond)
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
  const note = (req: IncomingMessage, more: Pick<Receipt, 'digest' | 'failed'> = {}) => {
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
      ...(application === 'api' && { exchanged: exchangedIn(field(req, 'authorization')) }),
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
    if (req.url?.endsWith('/download')) return sendDownload(req, res)
    req.on('data', (bytes: Buffer) => digest.update(bytes))
    // Content that broke off did not arrive: the receipt has no digest.
    req.once('close', () => {
      if (!req.complete) note(req)
    })
    // Over HTTP/2, Node.js emits `end` for content that was reset too, and then `aborted`.
    return void req.once('end', () => setImmediate(() => answer(req, res, digest.digest('hex'))))
  }
  const sendDownload = (req: IncomingMessage, res: ServerResponse) => {
    const failed = Math.random() < failures.download
    const line = `${messageTo(req, note(req, failed ? { failed } : {}))}\n`
    res.writeHead(200, { 'content-type': 'text/plain', 'x-application': application })
    let parts = 0
    const send = () => {
      parts += 1
      if (failed && parts > download.parts / 2) return breakOff(res)
      res.write(line.repeat(download.lines / download.parts))
      if (parts === download.parts) res.end()
    }
    send()
    const sending = setInterval(send, download.pauseMs)
    res.once('close', () => clearInterval(sending))
  }
  const answer = (req: IncomingMessage, res: ServerResponse, hash: string) => {
    if (isReset(req)) return void note(req)
    const failed = req.method === 'POST' && Math.random() < failures.form
    const identity = note(req, { ...(req.method !== 'GET' && { digest: hash }), ...(failed && { failed }) })
    if (failed) return breakOff(res)
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

/** Whether the content of a response is what the application sends for this path. */
export function isWhole(path: string, content: string): boolean {
  if (!path.endsWith('/download')) return content.endsWith('}')
  const [line = ''] = content.split('\n')
  return content === `${line}\n`.repeat(download.lines)
}

/** Ends a response before its end, over HTTP/2 also with a code that looks like none. */
function breakOff(res: ServerResponse | Http2ServerResponse): void {
  if (res instanceof Http2ServerResponse)
    res.stream.close(Math.random() < 0.5 ? constants.NGHTTP2_NO_ERROR : constants.NGHTTP2_INTERNAL_ERROR)
  else res.destroy()
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

/** Reads an exchanged token. Its signature is not verified, because nobody forges one here. */
function exchangedIn(authorization: string): { readonly sub: string; readonly aud: string } {
  const [, payload = ''] = /^Bearer [\w-]+\.([\w-]+)\.[\w-]+$/.exec(authorization) ?? []
  const { sub = '', aud = '' } =
    payload === '' ? {} : (JSON.parse(Buffer.from(payload, 'base64url').toString()) as Partial<Record<string, string>>)
  return { sub, aud }
}

function field({ headers }: IncomingMessage, name: string): string {
  return String(headers[name] ?? '')
}
