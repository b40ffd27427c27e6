import { connect as connectPlain, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

/**
 * X25519 for the key exchange, which all contenders have; P-256 is for the certificate. With other
 * groups, a newer library of one contender would do more work than an older one of another.
 */
const ecdhCurve = 'X25519:P-256'

/** Resolves when the socket is connected; with TLS, after the handshake. */
export function openSocket({
  port,
  tls,
  protocol = 'http/1.1',
}: {
  readonly port: number
  readonly tls: boolean
  readonly protocol?: 'http/1.1' | 'h2'
}): Promise<Socket> {
  const where = { host: '127.0.0.1', port }
  const socket = tls
    ? connectTls({ ...where, rejectUnauthorized: false, ALPNProtocols: [protocol], ecdhCurve })
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
