import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { createServer as createTcpServer, type AddressInfo, type Server, type Socket } from 'node:net'
import type { RedisTls, Scope } from './redis.ts'

async function listening(scope: Scope, server: Server): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  scope.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return (server.address() as AddressInfo).port
}

/** Starts an HTTP server without TLS. Resolves to its port. */
export function plainServer(scope: Scope): Promise<number> {
  return listening(
    scope,
    createServer((_req, res) => res.end('plain')),
  )
}

/** Starts an HTTPS server that closes connections without TLS. Resolves to its port. */
export function tlsServer(scope: Scope, { cert, key }: RedisTls): Promise<number> {
  const files = { cert: readFileSync(cert), key: readFileSync(key) }
  return listening(
    scope,
    createSecureServer(files, (_req, res) => res.end('secure')),
  )
}

/**
 * Responds as nginx and Go do on a port with TLS: with 400 to HTTP, and with an alert to a
 * malformed TLS record.
 */
export function explainingTlsServer(scope: Scope): Promise<number> {
  const alert = Buffer.from([0x15, 0x03, 0x01, 0x00, 0x02, 0x02, 0x0a])
  const response = 'HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n'
  return listening(
    scope,
    createTcpServer((socket) => socket.once('data', ([first]) => socket.end(first === 0x16 ? alert : response))),
  )
}

/** Accepts connections and never sends a byte. */
export function silentServer(scope: Scope): Promise<number> {
  return listening(
    scope,
    createTcpServer(() => {}),
  )
}
