// An application that knows nothing of sign-in. It records each request, and responds with the
// identity that it has received.
import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { WebSocketServer } from 'ws'
import { freePort } from '../test/support/free-port.ts'
import type { Scope } from '../test/support/redis.ts'
import { type HistoryEvent, type Identity, now } from './history.ts'
import type { Network } from './network.ts'

/** Between two messages of a stream, in ms. */
const tickMs = 500

/** Starts an application, and returns its address behind the network. */
export async function startApplication(
  scope: Scope,
  name: string,
  { network, record }: { readonly network: Network; readonly record: (event: HistoryEvent) => void },
): Promise<string> {
  const note = (req: IncomingMessage, more: { readonly digest?: string } = {}) => {
    const form = field(req, 'x-form')
    const identity: Identity = { sub: field(req, 'x-sub'), sid: field(req, 'x-sid') }
    const request = field(req, 'x-chaos-request')
    record({ type: 'receipt', at: now(), request, application: name, identity, ...(form && { form }), ...more })
    return identity
  }
  const server = createServer((req, res) => {
    const digest = createHash('sha256')
    if (req.headers.accept === 'text/event-stream') {
      res.writeHead(200, { 'content-type': 'text/event-stream', 'x-application': name })
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
    return void req.once('end', () => {
      const hash = digest.digest('hex')
      const identity = note(req, req.method === 'GET' ? {} : { digest: hash })
      res.writeHead(200, { 'content-type': 'application/json', 'x-application': name })
      res.end(messageTo(req, identity))
    })
  })
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', (socket, req) => {
    const message = messageTo(req, note(req))
    socket.send(message)
    const ticking = setInterval(() => socket.send(message), tickMs)
    socket.on('close', () => clearInterval(ticking)).on('error', () => {})
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  scope.after(() => {
    server.close()
    server.closeAllConnections()
    for (const socket of sockets.clients) socket.terminate()
  })
  const port = await freePort()
  await network.link(name, port, (server.address() as AddressInfo).port)
  return `http://${network.host(name)}:${port}`
}

/** Each response and each message of a stream names the person and the request. */
function messageTo(req: IncomingMessage, identity: Identity): string {
  return JSON.stringify({ identity, echo: field(req, 'x-chaos-request') })
}

function field({ headers }: IncomingMessage, name: string): string {
  return String(headers[name] ?? '')
}
