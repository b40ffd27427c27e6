import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Address, AdminConfig, LimitsConfig } from '../config/model.ts'
import { OperatorError, reason } from '../core/errors.ts'
import { listenError } from '../http/listen-error.ts'
import { exposition, expositionType } from '../observe/exposition.ts'
import { type AdminPageParts, createAdminPage } from './page.ts'
import { formTimeoutMs } from '../limits/connection-limits.ts'

/** What is needed of the gateway to administer it, in whichever process that is done. */
export type AdminParts = Omit<AdminPageParts, 'page'>

export interface Admin {
  readonly address: Address
  close(): Promise<void>
}

/**
 * `GET /live`: a process that serves answers. `GET /ready`: it may get requests: it is not shutting down, and the session store answers or
 * the grace of its outage lasts.
 * A provider that is away does not make it unready: whoever is signed in is still served. `GET /metrics`: for Prometheus. `GET /`: the
 * page for administration.
 * @throws {OperatorError} when the address cannot be listened on
 */
export async function startAdmin(listen: AdminConfig, limits: LimitsConfig, parts: AdminParts): Promise<Admin> {
  const { processes } = parts
  const page = listen.page && createAdminPage({ ...parts, page: listen.page })
  const requestTimeout = formTimeoutMs(limits)
  const options = {
    requestTimeout,
    headersTimeout: Math.min(limits.headersTimeoutMs, requestTimeout),
    connectionsCheckingInterval: Math.min(requestTimeout / 2, 1000),
  }
  const server = createServer(options, (req, res) => {
    const send = (status: number, type: string, body: string) =>
      void res.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(body)
    const answer = (status: number, body: unknown) => send(status, 'application/json', `${JSON.stringify(body)}\n`)
    const notAvailable = (error: unknown) => answer(503, { status: 'not available', reason: reason(error) })
    if (page?.(req, res) === true) return
    if (req.method !== 'GET' && req.method !== 'HEAD') return answer(405, { status: 'method not allowed' })
    if (req.url === '/live') return void processes.ask('live').then(() => answer(200, { status: 'live' }), notAvailable)
    if (req.url === '/metrics')
      return void processes.metrics().then((families) => send(200, expositionType, exposition(families)), notAvailable)
    if (req.url === '/ready')
      return void processes
        .ask('readiness')
        .then(
          ({ ready, ...details }) => answer(ready ? 200 : 503, { status: ready ? 'ready' : 'not ready', ...details }),
          notAvailable,
        )
    const hint = page === undefined ? { hint: 'admin.page opens a page for browsers at /' } : {}
    return answer(404, { status: 'not found', there: ['/live', '/ready', '/metrics'], ...hint })
  })
  await new Promise<void>((resolve, fail) => {
    server.once('error', (cause: NodeJS.ErrnoException) =>
      fail(new OperatorError(listenError(cause, listen, 'admin.listen'), { cause })),
    )
    server.listen({ host: listen.host, port: listen.port }, resolve)
  })
  return {
    address: { host: listen.host, port: (server.address() as AddressInfo).port },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
