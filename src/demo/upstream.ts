// A toy application as a gateway finds them: it believes its headers, and shows which ones it got.
import { createServer, STATUS_CODES, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebSocketServer, type WebSocket } from 'ws'
import { reason } from '../core/errors.ts'
import { randomToken } from '../core/random.ts'
import { close, listen, sendHtml, sendJson } from './http.ts'
import { applicationPage, plainPage, type HeaderPair, type UpstreamLinks } from './upstream-page.ts'

export interface DemoUpstreamOptions {
  /** Loopback only. */
  readonly host: string
  readonly port: number
  /** Where the page links to for the sessions at the provider. */
  readonly provider?: URL | undefined
  /** Where the gateway's own URLs are. Absent: `/.gatehouse/`. */
  readonly reservedPrefix?: string | undefined
}

export interface DemoUpstream {
  readonly url: URL
  close(): Promise<void>
}

const listener = { what: 'The demo application', setting: "the upstream's url" }

/**
 * Starts the application: pages at `/` and `/admin/`, `/api/me` (JSON), `/events` and `/ws` (a tick
 * at once and then each second), `/static/about.txt`, and for tests `/echo` (what arrived, as JSON)
 * and `/status/NNN`.
 * @throws {OperatorError} when the port is taken, or the host is not loopback
 */
export async function startDemoUpstream(options: DemoUpstreamOptions): Promise<DemoUpstream> {
  const links = { reservedPrefix: options.reservedPrefix ?? '/.gatehouse/', provider: options.provider }
  const server = createServer((request, response) => {
    answer(request, response, links).catch((error: unknown) => fail(response, error))
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

async function answer(request: IncomingMessage, response: ServerResponse, links: UpstreamLinks): Promise<void> {
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
  // Browsers ask for it unasked, and complain when it is not there.
  if (path === '/favicon.ico') return sendStatus(response, 204)
  if (path === '/logout') return sendHtml(response, 200, plainPage('Logged out', ownLogout, links))
  sendHtml(response, 404, plainPage('Not found', 'There is no such page in this application.', links))
}

const ownLogout =
  'The application has forgotten you. Without a gateway that takes this path over, you are still signed in everywhere else.'

function sendApplication(
  request: IncomingMessage,
  response: ServerResponse,
  heading: string,
  links: UpstreamLinks,
): void {
  // A session of its own, as such applications have: the gateway expires it together with the real
  // one.
  const known = /(?:^|; *)JSESSIONID=/.test(request.headers.cookie ?? '')
  const cookie = { 'set-cookie': `JSESSIONID=${randomToken(16)}; Path=/; HttpOnly; SameSite=Lax` }
  sendHtml(response, 200, applicationPage(heading, readable(request), links), known ? {} : cookie)
}

function sendStatus(response: ServerResponse, status: number): void {
  // These two have no body: RFC 9110 §15.3.5, §15.4.5.
  if (status === 204 || status === 304) return void response.writeHead(status).end()
  sendText(response, status, `${status} ${STATUS_CODES[status] ?? ''}\n`)
}

function sendText(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' })
  response.end(text)
}

/**
 * What arrived, so that a test can compare: header lines as they came, and how long the body was.
 */
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
 * The header lines for people: node:http reads bytes as Latin-1, though most of what is beyond
 * ASCII is UTF-8.
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

/** Ticks, and sends back what it is told. */
function tickAndEcho(socket: WebSocket): void {
  const stop = eachSecond((tick) => socket.send(tick))
  socket.on('close', stop)
  socket.on('error', () => socket.terminate())
  socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }))
}

/** The first tick comes at once. Returns what stops it. */
function eachSecond(send: (tick: string) => void): () => void {
  let count = 0
  const tick = () => send(`tick ${(count += 1)} at ${new Date().toTimeString().slice(0, 8)}`)
  tick()
  const timer = setInterval(tick, 1000)
  return () => clearInterval(timer)
}
