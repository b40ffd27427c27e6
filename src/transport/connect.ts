import { connect as connectTcp, isIP, type OnReadOpts, type Socket } from 'node:net'
import { connect as connectTls, type ConnectionOptions } from 'node:tls'
import type { TransportTarget } from './transport.ts'

export type ConnectTarget = Pick<TransportTarget, 'host' | 'port' | 'tls'>

/** A socket that is connecting, and the event that says that requests may be written to it. */
export interface Connecting {
  readonly socket: Socket
  readonly readyEvent: 'connect' | 'secureConnect'
}

/** @param onread the buffer that the socket reads into */
export type Connect = (onread: OnReadOpts) => Connecting

const keepAliveProbeMs = 60_000

/** Opens connections to a target. */
export function createConnect({ host, port, tls }: ConnectTarget): Connect {
  const options = { host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: keepAliveProbeMs }
  if (tls === undefined) {
    return (onread) => ({
      socket: connectTcp({ ...options, onread }),
      readyEvent: 'connect',
    })
  }
  const tlsOptions: ConnectionOptions = {
    ...options,
    ALPNProtocols: ['http/1.1'],
    // An IP address is not a name for SNI (RFC 6066 §3). The certificate is then checked for the
    // address.
    ...(isIP(host) === 0 ? { servername: host } : {}),
    ...(tls.ca === undefined ? {} : { ca: tls.ca }),
  }
  // The latest TLS session, which makes the next handshake shorter (RFC 8446 §2.2).
  let session: Buffer | undefined
  return (onread) => {
    const resumed = session === undefined ? tlsOptions : { ...tlsOptions, session }
    // Node.js passes `onread` on to the socket, although its types do not name it for TLS.
    const socket = connectTls({ ...resumed, onread } as ConnectionOptions)
    socket.setNoDelay(true).setKeepAlive(true, keepAliveProbeMs)
    socket.on('session', (latest) => (session = latest))
    return { socket, readyEvent: 'secureConnect' }
  }
}
