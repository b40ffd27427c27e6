import { connect as connectPlain, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

/** Resolves when the socket is connected; with TLS, after the handshake. */
export function openSocket({ port, tls }: { readonly port: number; readonly tls: boolean }): Promise<Socket> {
  const where = { host: '127.0.0.1', port }
  const socket = tls
    ? connectTls({ ...where, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] })
    : connectPlain(where)
  socket.setNoDelay(true)
  return new Promise((resolve, reject) => {
    socket.once('error', reject)
    socket.once(tls ? 'secureConnect' : 'connect', () => {
      socket.off('error', reject)
      resolve(socket)
    })
  })
}
