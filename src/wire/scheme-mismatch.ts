import { connect } from 'node:net'
import { portOf } from '../core/addresses.ts'

/** How long to wait for the first byte of a server, in ms. */
const firstByteMs = 1_000

/**
 * A TLS record (RFC 8446 §5.1) whose content is not a ClientHello. A TLS server responds with an
 * alert. Other servers read a line of text. It contains no NUL, because Redis stops reading there.
 */
const notAClientHello = Buffer.concat([
  Buffer.from([0x16, 0x03, 0x01, 0x01, 0x01]),
  Buffer.from([0x02, 0x01, 0x01, 0x01]),
  Buffer.alloc(251, 'x'),
  Buffer.from('\r\n\r\n\r\n'),
])

/**
 * Whether a server speaks TLS, by its first byte; `undefined` when it sends none within a second.
 * Never rejects. `host` may be an IPv6 address in brackets.
 */
export function speaksTls(host: string, port: number): Promise<boolean | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host: host.replace(/^\[(.*)\]$/, '$1'), port })
    const settle = (result: boolean | undefined) => {
      clearTimeout(timer)
      socket.destroy()
      resolve(result)
    }
    const timer = setTimeout(settle, firstByteMs, undefined)
    socket
      .once('connect', () => socket.write(notAClientHello))
      // Alert or handshake: RFC 8446 §5.1.
      .once('data', ([first]) => settle(first === 0x15 || first === 0x16))
      .once('error', () => settle(undefined))
      .once('close', () => settle(undefined))
  })
}

/** Errors of connections that have another cause than the scheme. */
const otherReasons =
  /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|certificate|CERT|SELF_SIGNED|UNABLE_TO|ALTNAME|NOAUTH|WRONGPASS|NOPERM/

/**
 * Explains that a server does not speak the protocol of its URL, and what to write. Returns
 * `undefined` when the failure has another cause. `why` is the error of the failed connection. This
 * connects to the server and takes at most a second. `plainScheme`: absent where TLS is required.
 */
export async function schemeMismatch(
  why: string,
  server: {
    readonly host: string
    readonly port: number
    readonly isTls: boolean
    readonly tlsScheme: string
    readonly plainScheme?: string
  },
): Promise<string | undefined> {
  if (otherReasons.test(why)) return undefined
  const { host, port, isTls, tlsScheme, plainScheme } = server
  const foundTls = await speaksTls(host, port)
  if (foundTls === undefined || foundTls === isTls) return undefined
  if (foundTls) return `port ${port} speaks TLS: write ${tlsScheme}`
  const orPlain = plainScheme === undefined ? '' : `, or write ${plainScheme}`
  return `port ${port} does not speak TLS, which ${tlsScheme} needs: name the port that does${orPlain}`
}

/** `schemeMismatch` for an http or https URL. */
export function httpSchemeMismatch(why: string, url: URL): Promise<string | undefined> {
  const isTls = url.protocol === 'https:'
  const server = { host: url.hostname, port: portOf(url), isTls, tlsScheme: 'https://', plainScheme: 'http://' }
  return schemeMismatch(why, server)
}
