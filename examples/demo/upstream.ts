// A demo application that trusts the identity headers of the gateway, and shows all headers.
import { createServer, STATUS_CODES, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebSocketServer, type WebSocket } from 'ws'
import { reason } from '../../src/core/errors.ts'
import { randomToken } from '../../src/core/random.ts'
import { close, listen, sendHtml, sendJson } from './http.ts'
import { applicationPage, plainPage, type HeaderPair, type UpstreamLinks } from './upstream-page.ts'

export interface DemoUpstreamOptions {
  /** Loopback only. */
  readonly host: string
  readonly port: number
  /** The target of the link to the sessions at the provider. */
  readonly provider?: URL | undefined
  /** The path prefix of the gateway's endpoints. Default: `/.gatehouse/`. */
  readonly reservedPrefix?: string | undefined
  /** Whether the gateway has a page with the sessions of a person. */
  readonly hasSessionsPage?: boolean | undefined
}

export interface DemoUpstream {
  readonly url: URL
  close(): Promise<void>
}

const listener = { what: 'The demo application', setting: "the upstream's url" }

/**
 * Starts the application: pages at `/` and `/admin/`, `/api/me` (JSON), `/events` and `/ws` (a tick
 * at once and then each second), `/static/about.txt`. For tests: `/echo` (the received request as
 * JSON) and `/status/NNN`.
 * @throws {OperatorError} when the port is taken, or the host is not loopback
 */
export async function startDemoUpstream(options: DemoUpstreamOptions): Promise<DemoUpstream> {
  const { reservedPrefix = '/.gatehouse/', provider, hasSessionsPage = false } = options
  const links = { reservedPrefix, provider, hasSessionsPage }
  const server = createServer((request, response) => {
    respond(request, response, links).catch((error: unknown) => fail(response, error))
  })
  const sockets = acceptWebSockets(server)
  const url = await listen(server, listener, options.host, options.port)
  return {
    url,
    close: async () => {
      for (const socket of sockets.clients) socket.terminate()
      await close(server)
    },
  }
}

function fail(response: ServerResponse, error: unknown): void {
  if (response.headersSent) response.destroy()
  else sendJson(response, 500, { error: reason(error) })
}

async function respond(request: IncomingMessage, response: ServerResponse, links: UpstreamLinks): Promise<void> {
  const path = (request.url ?? '/').replace(/[?#].*$/s, '')
  const status = /^\/status\/([2-5]\d\d)$/.exec(path)?.[1]
  if (status !== undefined) return sendStatus(response, Number(status))
  if (path === '/echo') return echo(request, response)
  if (path === '/') return sendApplication(request, response, 'Welcome', links)
  if (path === '/admin' || path.startsWith('/admin/'))
    return sendApplication(request, response, 'Administration', links)
  if (path === '/api/me') return sendJson(response, 200, { headers: Object.fromEntries(readable(request)) })
  if (path === '/events') return streamEvents(response)
  if (path === '/static/about.txt') return sendText(response, 200, 'Stock Ledger 4.2. Everybody may read this.\n')
  // Browsers request it by themselves and log an error for a 404.
  if (path === '/favicon.ico') return sendStatus(response, 204)
  if (path === '/logout') return sendHtml(response, 200, plainPage('Logged out', ownLogout, links))
  sendHtml(response, 404, plainPage('Not found', 'There is no such page in this application.', links))
}

const ownLogout =
  'You are signed out of the application only. A gateway that handles this path also signs you out of the provider.'

function sendApplication(
  request: IncomingMessage,
  response: ServerResponse,
  heading: string,
  links: UpstreamLinks,
): void {
  // A session cookie of the application. The gateway expires it when the session ends.
  const hasCookie = /(?:^|; *)JSESSIONID=/.test(request.headers.cookie ?? '')
  const cookie = { 'set-cookie': `JSESSIONID=${randomToken(16)}; Path=/; HttpOnly; SameSite=Lax` }
  sendHtml(response, 200, applicationPage(heading, readable(request), links), hasCookie ? {} : cookie)
}

function sendStatus(response: ServerResponse, status: number): void {
  // Responses with these statuses have no content (RFC 9110 §15.3.5, §15.4.5).
  if (status === 204 || status === 304) return void response.writeHead(status).end()
  sendText(response, status, `${status} ${STATUS_CODES[status] ?? ''}\n`)
}

function sendText(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' })
  response.end(text)
}

/** Returns the received request to a test: the raw headers and the length of the content. */
async function echo(request: IncomingMessage, response: ServerResponse): Promise<void> {
  let bodyLength = 0
  for await (const chunk of request as AsyncIterable<Buffer>) bodyLength += chunk.length
  sendJson(response, 200, { method: request.method, url: request.url, headers: received(request), bodyLength })
}

function received(request: IncomingMessage): readonly HeaderPair[] {
  const { rawHeaders } = request
  return rawHeaders.flatMap((name, index) => (index % 2 === 0 ? [[name, rawHeaders[index + 1] ?? ''] as const] : []))
}

/**
 * The headers for people. node:http decodes bytes as Latin-1, but most values beyond ASCII are
 * UTF-8.
 */
function readable(request: IncomingMessage): readonly HeaderPair[] {
  return received(request).map(([name, value]) => [name, utf8(value)])
}

function utf8(value: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(value, 'latin1'))
  } catch {
    return value
  }
}

function streamEvents(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' })
  const stop = eachSecond((tick) => response.write(`data: ${tick}\n\n`))
  response.on('close', stop)
}

function acceptWebSockets(server: Server): WebSocketServer {
  const sockets = new WebSocketServer({ noServer: true, maxPayload: 65_536 })
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    if (request.url === '/ws') return sockets.handleUpgrade(request, socket, head, tickAndEcho)
    socket.end('HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
  })
  return sockets
}

/** Sends a tick each second, and sends each received message back. */
function tickAndEcho(socket: WebSocket): void {
  const stop = eachSecond((tick) => socket.send(tick))
  socket.on('close', stop)
  socket.on('error', () => socket.terminate())
  socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }))
}

/** Sends a tick at once and then each second. Returns a function that stops it. */
function eachSecond(send: (tick: string) => void): () => void {
  let count = 0
  const tick = () => send(`tick ${(count += 1)} at ${new Date().toTimeString().slice(0, 8)}`)
  tick()
  const timer = setInterval(tick, 1000)
  return () => clearInterval(timer)
}
