import type { Server as TlsServer } from 'node:https'
import type { Socket } from 'node:net'
import { type MemoryBudget, tlsConnectionBytes } from '../limits/memory-budget.ts'
import type { ListenerRefusals } from './refusals.ts'

/**
 * Counts a connection over TLS until its handshake is complete. Then its TLS socket is counted.
 * @returns closes the connections whose handshake is not complete
 */
export function countHandshakes(
  server: TlsServer,
  memory: Pick<MemoryBudget, 'watch' | 'unwatch'>,
  refusals: ListenerRefusals,
): () => void {
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
    if (error.code === 'ERR_SSL_HTTP_REQUEST') refusals.httpOnTls(socket, handshakes.get(peerOf(socket)), error.code)
  })
  return () => {
    for (const socket of handshakes.values()) socket.destroy()
  }
}
