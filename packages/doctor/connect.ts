import { lookup } from 'node:dns/promises'
import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { connect, isIP } from 'node:net'
import { type ConnectionFailure, pauses, reason, type UpstreamTlsConfig } from '../../src/entries/doctor.ts'

export type HttpOutcome =
  | {
      readonly status: number
      readonly headers: NodeJS.Dict<string | string[]>
      readonly ms: number
      /** The beginning of the content, if it was asked for. A character is a byte. */
      readonly content?: string
      readonly certificateEndsAt?: Date
    }
  | ConnectionFailure

export interface RequestOptions {
  readonly method: string
  readonly headers?: Readonly<Record<string, string>>
  readonly tls?: UpstreamTlsConfig
  /** The path of a socket, which is connected to in place of the host and port of the URL. */
  readonly socketPath?: string | undefined
  /** The content to send. Default: none. */
  readonly content?: string
  /** How much of the content to read, in bytes. Default: none. */
  readonly contentBytes?: number
}

/** Sends a request on a new connection. Never rejects. */
export function request(url: URL, options: RequestOptions): Promise<HttpOutcome> {
  const { method, headers = {}, tls, socketPath, contentBytes = 0 } = options
  const began = performance.now()
  return new Promise((resolve) => {
    const signal = AbortSignal.timeout(pauses.examineMs)
    const common = {
      method,
      headers: { ...headers },
      agent: false,
      signal,
      ...(socketPath !== undefined && { socketPath }),
    }
    // By default, Node.js checks the certificate against the Host field. SNI must not be an IP
    // address (RFC 6066 §3).
    const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
    const servername = tls?.serverName ?? (isIP(host) === 0 ? host : '')
    const ca = tls?.ca
    const sent =
      url.protocol === 'https:'
        ? requestHttps(url, { ...common, servername, ...(ca !== undefined && { ca }), ...tls?.clientCertificate })
        : requestHttp(url, common)
    let certificateEndsAt: Date | undefined
    sent.once('socket', (socket) =>
      socket.once('secureConnect', () => {
        const { valid_to } = (socket as unknown as { getPeerCertificate(): { valid_to?: string } }).getPeerCertificate()
        if (valid_to !== undefined) certificateEndsAt = new Date(valid_to)
      }),
    )
    sent.once('response', (response) => {
      const ms = performance.now() - began
      const end = certificateEndsAt === undefined ? {} : { certificateEndsAt }
      const outcome = { status: response.statusCode ?? 0, headers: response.headers, ms, ...end }
      if (contentBytes === 0) {
        response.destroy()
        resolve(outcome)
        return
      }
      let content = ''
      const finish = () => resolve({ ...outcome, content: content.slice(0, contentBytes) })
      response.setEncoding('latin1').on('data', (text: string) => {
        content += text
        if (content.length >= contentBytes) response.destroy()
      })
      response.once('error', finish).once('close', finish)
    })
    sent.once('error', (error) =>
      resolve(
        signal.aborted
          ? { why: `no response within ${pauses.examineMs / 1000} s`, isTimeout: true }
          : { why: reason(error) },
      ),
    )
    sent.end(options.content)
  })
}

/** Whether an address accepts connections. */
export function listens(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: 1_000 })
    const finish = (open: boolean) => {
      socket.destroy()
      resolve(open)
    }
    socket
      .once('connect', () => finish(true))
      .once('error', () => finish(false))
      .once('timeout', () => finish(false))
  })
}

/** The addresses of a host name; none when it cannot be resolved. */
export async function addressesOf(host: string): Promise<readonly string[]> {
  const bare = host.replace(/^\[(.*)\]$/, '$1')
  if (isIP(bare) !== 0) return [bare]
  const timeout = new Promise<[]>((resolve) => setTimeout(() => resolve([]), pauses.examineMs).unref())
  const found = lookup(bare, { all: true })
    .then((all) => all.map(({ address }) => address))
    .catch(() => [])
  return Promise.race([found, timeout])
}

/**
 * Whether an address cannot be reached from the internet: a private one (RFC 1918, RFC 4193), a
 * shared one (RFC 6598), loopback or link-local.
 */
export function isPrivate(address: string): boolean {
  return /^(?:10\.|127\.|169\.254\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.|::1$|f[cd]|fe[89ab])/i.test(
    address,
  )
}
