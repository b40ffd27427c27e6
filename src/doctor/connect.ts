import { lookup } from 'node:dns/promises'
import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { connect, isIP } from 'node:net'
import { reason } from '../core/errors.ts'

/** How long each look at a server may take, in ms. */
export const patienceMs = 5_000

export type HttpAnswer =
  | {
      readonly status: number
      readonly headers: NodeJS.Dict<string | string[]>
      readonly ms: number
      readonly certificateEndsAt?: Date
    }
  | { readonly why: string }

/** Asks with a request of its own, on a connection of its own. Never rejects. */
export function ask(
  url: URL,
  options: {
    readonly method: string
    readonly headers?: Readonly<Record<string, string>>
    readonly ca?: string | undefined
  },
): Promise<HttpAnswer> {
  const { method, headers = {}, ca } = options
  const began = performance.now()
  return new Promise((resolve) => {
    const signal = AbortSignal.timeout(patienceMs)
    const common = { method, headers: { ...headers }, agent: false, signal }
    // Node would take the name that the certificate is checked for from the Host header. An address
    // is no name for SNI.
    const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
    const servername = isIP(host) === 0 ? host : ''
    const sent =
      url.protocol === 'https:'
        ? requestHttps(url, { ...common, servername, ...(ca !== undefined && { ca }) })
        : requestHttp(url, common)
    let certificateEndsAt: Date | undefined
    sent.once('socket', (socket) =>
      socket.once('secureConnect', () => {
        const { valid_to } = (socket as unknown as { getPeerCertificate(): { valid_to?: string } }).getPeerCertificate()
        if (valid_to !== undefined) certificateEndsAt = new Date(valid_to)
      }),
    )
    sent.once('response', (answer) => {
      answer.destroy()
      const ms = performance.now() - began
      const end = certificateEndsAt === undefined ? {} : { certificateEndsAt }
      resolve({ status: answer.statusCode ?? 0, headers: answer.headers, ms, ...end })
    })
    sent.once('error', (error) =>
      resolve({ why: signal.aborted ? `no answer within ${patienceMs / 1000} s` : reason(error) }),
    )
    sent.end()
  })
}

/** Whether something takes connections at an address. */
export function listens(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: 1_000 })
    const answer = (open: boolean) => {
      socket.destroy()
      resolve(open)
    }
    socket
      .once('connect', () => answer(true))
      .once('error', () => answer(false))
      .once('timeout', () => answer(false))
  })
}

/** The addresses of a host name; none when it cannot be resolved. */
export async function addressesOf(host: string): Promise<readonly string[]> {
  const bare = host.replace(/^\[(.*)\]$/, '$1')
  if (isIP(bare) !== 0) return [bare]
  const late = new Promise<[]>((resolve) => setTimeout(() => resolve([]), patienceMs).unref())
  const found = lookup(bare, { all: true })
    .then((all) => all.map(({ address }) => address))
    .catch(() => [])
  return Promise.race([found, late])
}

/**
 * Addresses that lead nowhere on the internet: RFC 1918, RFC 4193, RFC 6598, loopback and
 * link-local.
 */
export function isPrivate(address: string): boolean {
  return /^(?:10\.|127\.|169\.254\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.|::1$|f[cd]|fe[89ab])/i.test(
    address,
  )
}
