import { createHash, X509Certificate } from 'node:crypto'
import { connect as connectTcp, isIP, type NetConnectOpts, type OnReadOpts, type Socket } from 'node:net'
import { checkServerIdentity, connect as connectTls, type ConnectionOptions, type PeerCertificate } from 'node:tls'
import { proxyHeader } from './proxy-protocol.ts'
import type { TargetTls, TransportTarget } from './transport.ts'

/** How a target is reached. */
export type ConnectTarget = Pick<TransportTarget, 'host' | 'port' | 'socketPath' | 'tls' | 'tellsClient'>

/** A socket that is connecting, and the event that says that requests may be written to it. */
export interface Connecting {
  readonly socket: Socket
  readonly readyEvent: 'connect' | 'secureConnect'
}

/**
 * @param onread the buffer that the socket reads into. Absent: it is read as a stream
 * @param client the address of the client, for the PROXY header (`tellsClient`)
 */
export type Connect = (onread: OnReadOpts | undefined, client: string | undefined) => Connecting

/** After how long without data the kernel probes the other side (TCP keep-alive), in ms. */
const keepAliveProbeMs = 60_000

/**
 * Opens connections to a target.
 * @param protocol the application protocol that the target has to speak over TLS (RFC 7301)
 */
export function createConnect(target: ConnectTarget, protocol: 'http/1.1' | 'h2'): Connect {
  const { tls, tellsClient } = target
  const address = addressOf(target)
  const connectPlain = (client: string | undefined, onread?: OnReadOpts): Socket => {
    const socket = connectTcp({ ...address, ...(onread === undefined ? {} : { onread }) } as NetConnectOpts)
    if (tellsClient === true) socket.once('connect', () => socket.write(proxyHeader(client, socket)))
    return socket
  }
  if (tls === undefined) return (onread, client) => ({ socket: connectPlain(client, onread), readyEvent: 'connect' })
  const options = { ...tlsOptions(tls, target.host), ALPNProtocols: [protocol] }
  // The latest TLS session, which makes the next handshake shorter (RFC 8446 §2.2).
  let session: Buffer | undefined
  return (onread, client) => {
    // The PROXY header precedes the handshake, so it needs a socket of its own. Node.js passes
    // `onread` on to the socket, although its types do not name it for TLS.
    const base = tellsClient === true ? { socket: connectPlain(client) } : { ...address, ...(onread && { onread }) }
    const socket = connectTls({ ...base, ...options, ...(session && { session }) } as ConnectionOptions)
    if (tellsClient === true && onread !== undefined) passData(socket, onread)
    socket.setNoDelay(true).setKeepAlive(true, keepAliveProbeMs)
    socket.on('session', (latest) => (session = latest))
    return { socket, readyEvent: 'secureConnect' }
  }
}

/**
 * Copies the data of a socket into the buffer of `onread`, which Node.js ignores for TLS over a
 * socket that exists already.
 */
function passData(socket: Socket, { buffer, callback }: OnReadOpts): void {
  socket.on('data', (data: Buffer) => {
    for (let at = 0; at < data.length;) {
      const memory = typeof buffer === 'function' ? buffer() : buffer
      const length = data.copy(memory, 0, at)
      callback(length, memory)
      at += length
    }
  })
}

function addressOf({ host, port, socketPath }: ConnectTarget) {
  if (socketPath !== undefined) return { path: socketPath }
  return { host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: keepAliveProbeMs }
}

function tlsOptions(
  { ca, serverName, clientCertificate, pinnedKeys = [] }: TargetTls,
  host: string,
): ConnectionOptions {
  // An IP address is not a name for SNI (RFC 6066 §3). The certificate is then checked for the
  // address.
  const name = serverName ?? (isIP(host) === 0 ? host : undefined)
  return {
    ...(name === undefined ? {} : { servername: name }),
    ...(ca === undefined ? {} : { ca }),
    ...clientCertificate,
    ...(pinnedKeys.length > 0 && {
      checkServerIdentity: (checked: string, certificate: PeerCertificate) =>
        checkServerIdentity(checked, certificate) ?? checkPinnedKey(certificate, pinnedKeys),
    }),
  }
}

/** The error for a certificate whose public key is not one of the pinned ones (RFC 7469 §2.4). */
function checkPinnedKey(certificate: PeerCertificate, pinnedKeys: readonly string[]): Error | undefined {
  const key = new X509Certificate(certificate.raw).publicKey.export({ type: 'spki', format: 'der' })
  const digest = createHash('sha256').update(key).digest('base64')
  if (pinnedKeys.includes(digest)) return undefined
  return new Error(`the certificate has the public key sha256/${digest}, which pinned_keys does not contain`)
}
