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

type Probe = (processes: Processes) => Promise<Response>

/** What monitoring reads with GET, by path. */
const probes: ReadonlyMap<string, Probe> = new Map([
  ['/live', liveProbe],
  ['/ready', readyProbe],
  ['/metrics', metricsProbe],
])

/**
 * Starts the administration listener, which has the probes, and the page if it is configured.
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
    const response = page?.(req) ?? probe(req, processes, page !== undefined)
    void response.then((value) => writeResponse({ req, res }, value))
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

async function probe({ method, url = '' }: IncomingMessage, processes: Processes, hasPage: boolean): Promise<Response> {
  if (method !== 'GET' && method !== 'HEAD') return json(405, { status: 'method not allowed' }, { Allow: 'GET, HEAD' })
  const found = probes.get(url)
  const hint = hasPage ? {} : { hint: 'admin.page opens a page for browsers at /' }
  if (found === undefined) return json(404, { status: 'not found', there: [...probes.keys()], ...hint })
  return found(processes).catch((error: unknown) => json(503, { status: 'not available', reason: reason(error) }))
}

/** 200 when a process responds. */
async function liveProbe(processes: Processes): Promise<Response> {
  await processes.call('live')
  return json(200, { status: 'live' })
}

/**
 * 200 when a process may get requests: it is not shutting down, and the session store responds or
 * `session.store_outage_grace` lasts. An unreachable provider does not matter, because signed-in
 * people are still served.
 */
async function readyProbe(processes: Processes): Promise<Response> {
  const { ready: isReady, ...details } = await processes.call('readiness')
  return json(isReady ? 200 : 503, { status: isReady ? 'ready' : 'not ready', ...details })
}

/** The metrics, for Prometheus. */
async function metricsProbe(processes: Processes): Promise<Response> {
  const body = exposition(await processes.metrics())
  return { status: 200, headers: { ...ownHeaders, 'Content-Type': expositionType }, body }
}
