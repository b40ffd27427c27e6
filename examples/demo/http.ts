import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { isIPv4, isIPv6, type AddressInfo } from 'node:net'
import { OperatorError, reason } from '../../src/core/errors.ts'
import type { Markup } from './html.ts'

/** The name of a server in messages, and the setting that contains its address. */
export interface Listener {
  readonly what: string
  readonly setting: string
}

/**
 * Starts to listen; returns the address.
 * @throws {OperatorError} when the host is not loopback or the port cannot be used; says what to do
 */
export async function listen(server: Server, listener: Listener, given: string, port: number): Promise<URL> {
  const host = given.replace(/^\[(.+)\]$/, '$1')
  // The demo provider needs no password, so only programs on this machine may reach it.
  if (!isLoopback(host))
    throw new OperatorError(
      `${listener.what} listens on loopback only: "${host}" in ${listener.setting} must be 127.0.0.1, ::1 or localhost.`,
    )

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port }, () => {
      server.off('error', reject)
      resolve()
    })
  }).catch((cause: unknown) => {
    throw new OperatorError(listenFault(listener, host, port, cause), { cause })
  })
  const bound = server.address() as AddressInfo
  return new URL(`http://${bracketed(host)}:${bound.port}`)
}

/** Whether `listen` has failed because another program listens at the address. */
export function isAddressTaken(error: unknown): boolean {
  const cause = error instanceof OperatorError ? error.cause : undefined
  return cause instanceof Error && 'code' in cause && cause.code === 'EADDRINUSE'
}

function listenFault({ what, setting }: Listener, host: string, port: number, cause: unknown): string {
  const at = `${bracketed(host)}:${port}`
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
  if (code === 'EADDRINUSE')
    return (
      `${what} cannot listen on ${at}: port ${port} is taken. Is a demo running already? ` +
      `Stop the program that uses it, or choose another port in ${setting}.`
    )
  if (code === 'EACCES')
    return `${what} cannot listen on ${at}: port ${port} needs more permissions. Choose a port above 1023 in ${setting}.`
  return `${what} cannot listen on ${at}: ${reason(cause)}`
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || (isIPv4(host) && host.startsWith('127.')) || host === '::1'
}

function bracketed(host: string): string {
  return isIPv6(host) ? `[${host}]` : host
}

/** Stops the server at once and closes all connections. */
export async function close(server: Server): Promise<void> {
  await new Promise<void>((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}

/** The fields of a posted form; `undefined` for another content type or more than 16 KiB. */
export async function readForm(request: IncomingMessage): Promise<URLSearchParams | undefined> {
  if (!/^application\/x-www-form-urlencoded\s*(;|$)/i.test(request.headers['content-type'] ?? '')) return undefined
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > 16_384) return undefined
    chunks.push(chunk)
  }
  return new URLSearchParams(Buffer.concat(chunks).toString())
}

export function sendHtml(response: ServerResponse, status: number, markup: Markup, headers: PageHeaders = {}): void {
  response.writeHead(status, { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store', ...headers })
  response.end(markup.text)
}

type PageHeaders = Readonly<Record<string, string>>

export function sendJson(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' })
  response.end(`${JSON.stringify(value, null, 2)}\n`)
}

export function redirect(response: ServerResponse, location: string): void {
  response.writeHead(303, { location, 'cache-control': 'no-store' })
  response.end()
}
