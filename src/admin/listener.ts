import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Address } from '../config/addresses.ts'
import type { AdminConfig, LimitsConfig } from '../config/model/gateway.ts'
import { listenError } from '../core/connection-advice.ts'
import { OperatorError, reason } from '../core/errors.ts'
import { lingerOnClose, json, ownHeaders, type Response, writeResponse } from '../http/response.ts'
import { formTimeoutMs } from '../limits/endpoint-limits.ts'
import { exposition, expositionType } from '../observe/exposition.ts'
import { type AdminPageParts, createAdminPage } from './page-handler.ts'
import type { Processes } from './processes.ts'

/** What the administration listener needs. It may run in the primary or in the only process. */
export type AdminParts = Omit<AdminPageParts, 'page'>

export interface Admin {
  readonly address: Address
  close(): Promise<void>
}

/**
 * The administration listener:
 * - `GET /live`: 200 when a process responds.
 * - `GET /ready`: 200 when a process may get requests: it is not shutting down, and the session
 *   store responds or `session.store_outage_grace` lasts. An unreachable provider does not matter,
 *   because signed-in people are still served.
 * - `GET /metrics`: metrics for Prometheus.
 * - `GET /`: the administration page.
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
    if (page?.(req, res) === true) return
    respond(req, processes, page !== undefined).then(
      (response) => void writeResponse({ req, res }, response),
      (error: unknown) =>
        void writeResponse({ req, res }, json(503, { status: 'not available', reason: reason(error) })),
    )
  })
  server.on('connection', lingerOnClose)
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

async function respond({ method, url }: IncomingMessage, processes: Processes, hasPage: boolean): Promise<Response> {
  if (method !== 'GET' && method !== 'HEAD') return json(405, { status: 'method not allowed' }, { Allow: 'GET, HEAD' })
  if (url === '/live') {
    await processes.call('live')
    return json(200, { status: 'live' })
  }
  if (url === '/metrics') {
    const body = exposition(await processes.metrics())
    return { status: 200, headers: { ...ownHeaders, 'Content-Type': expositionType }, body }
  }
  if (url === '/ready') {
    const { ready, ...details } = await processes.call('readiness')
    return json(ready ? 200 : 503, { status: ready ? 'ready' : 'not ready', ...details })
  }
  const hint = hasPage ? {} : { hint: 'admin.page opens a page for browsers at /' }
  return json(404, { status: 'not found', there: ['/live', '/ready', '/metrics'], ...hint })
}
