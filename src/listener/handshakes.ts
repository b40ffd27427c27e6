import type { Server as TlsServer } from 'node:https'
import type { Socket } from 'node:net'
import { writeToSocket } from '../http/response.ts'
import { type MemoryBudget, tlsConnectionBytes } from '../limits/memory-budget.ts'
import { wrongScheme } from './refusals.ts'
import type { UnreadableRequests } from './unreadable-requests.ts'

interface HandshakeParts {
  readonly memory: Pick<MemoryBudget, 'watch' | 'unwatch'>
  readonly unreadable: UnreadableRequests
}

/** Counts a connection over TLS until its handshake is complete. Then its TLS socket is counted. */
export function countHandshakes(server: TlsServer, { memory, unreadable }: HandshakeParts): void {
  const handshakes = new Map<string, Socket>()
  const peerOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`
  server.on('connection', (socket: Socket) => {
    const peer = peerOf(socket)
    handshakes.set(peer, socket)
    socket.once('close', () => handshakes.delete(peer))
    memory.watch(socket, tlsConnectionBytes, { heldBytes: () => 0, close: () => socket.destroy() })
  })
  server.on('secureConnection', (socket: Socket) => {
    const handshake = handshakes.get(peerOf(socket))
    if (handshake !== undefined) memory.unwatch(handshake)
    handshakes.delete(peerOf(socket))
  })
  server.on('tlsClientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    if (error.code !== 'ERR_SSL_HTTP_REQUEST') return
    const handshake = handshakes.get(peerOf(socket))
    unreadable.note('http_on_tls', socket.remoteAddress, error.code)
    // TLS has written nothing, so the client can read a response of http.
    if (handshake !== undefined) writeToSocket(handshake, wrongScheme('https'))
  })
}
