import { connect } from 'node:net'
import { portOf } from './addresses.ts'

/** How long to wait for the first byte of a server, in ms. */
const patienceMs = 1_000

/**
 * A TLS record (RFC 8446 §5.1) whose content is no ClientHello. A TLS server answers with an alert.
 * To other servers it is a line of text, without NUL because Redis reads no further than that.
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
    const settle = (answer: boolean | undefined) => {
      clearTimeout(timer)
      socket.destroy()
      resolve(answer)
    }
    const timer = setTimeout(settle, patienceMs, undefined)
    socket
      .once('connect', () => socket.write(notAClientHello))
      // Alert or handshake: RFC 8446 §5.1.
      .once('data', ([first]) => settle(first === 0x15 || first === 0x16))
      .once('error', () => settle(undefined))
      .once('close', () => settle(undefined))
  })
}

/** Reasons of a failed connection that have another cause. */
const otherReasons =
  /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|certificate|CERT|SELF_SIGNED|UNABLE_TO|ALTNAME|NOAUTH|WRONGPASS|NOPERM/

/**
 * Explains that a server does not speak the protocol of its URL, and what to write; `undefined`
 * when the cause is another one. `why` is the reason of the failed connection. It connects to the
 * server and takes at most a second. `plainScheme`: absent where TLS is required.
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
  const answersTls = await speaksTls(host, port)
  if (answersTls === undefined || answersTls === isTls) return undefined
  if (answersTls) return `port ${port} speaks TLS: write ${tlsScheme}`
  const orPlain = plainScheme === undefined ? '' : `, or write ${plainScheme}`
  return `port ${port} does not speak TLS, which ${tlsScheme} needs: name the port that does${orPlain}`
}

/** `schemeMismatch` for an http or https URL. */
export function httpSchemeMismatch(why: string, url: URL): Promise<string | undefined> {
  const isTls = url.protocol === 'https:'
  const server = { host: url.hostname, port: portOf(url), isTls, tlsScheme: 'https://', plainScheme: 'http://' }
  return schemeMismatch(why, server)
}
