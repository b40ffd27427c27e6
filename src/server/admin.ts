import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Address } from '../config/model.ts'
import { OperatorError, reason } from '../core/errors.ts'
import { exposition, expositionType } from '../observe/exposition.ts'
import type { Family } from '../observe/metrics.ts'
import { bindFault } from './listener.ts'

export interface AdminParts {
  /** Rejects when the session store does not answer. */
  readonly storeAnswers: () => Promise<void>
  /** Whether sessions in memory are served while the store does not answer. */
  readonly mayServeInOutage: () => boolean
  readonly providerIsKnown: () => boolean
  readonly isDraining: () => boolean
  /** Of all workers. Rejects when they do not answer. */
  readonly metrics: () => Promise<readonly Family[]>
}

export interface Admin {
  readonly address: Address
  close(): Promise<void>
}

/**
 * `GET /live`: the process answers. `GET /ready`: it may get requests: it is not shutting down, and the session store answers or
 * the grace of its outage lasts.
 * A provider that is away does not make it unready: whoever is signed in is still served. `GET /metrics`: for Prometheus.
 * @throws {OperatorError} when the address cannot be listened on
 */
export async function startAdmin(listen: Address, parts: AdminParts): Promise<Admin> {
  const server = createServer((req, res) => {
    const send = (status: number, type: string, body: string) =>
      void res.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(body)
    const answer = (status: number, body: unknown) => send(status, 'application/json', `${JSON.stringify(body)}\n`)
    if (req.method !== 'GET' && req.method !== 'HEAD') return answer(405, { status: 'method not allowed' })
    if (req.url === '/live') return answer(200, { status: 'live' })
    if (req.url === '/metrics')
      return void parts.metrics().then(
        (families) => send(200, expositionType, exposition(families)),
        (error: unknown) => answer(503, { status: 'not available', reason: reason(error) }),
      )
    if (req.url !== '/ready') return answer(404, { status: 'not found', there: ['/live', '/ready', '/metrics'] })
    return void readiness(parts).then(({ ready, ...details }) =>
      answer(ready ? 200 : 503, { status: ready ? 'ready' : 'not ready', ...details }),
    )
  })
  await new Promise<void>((resolve, fail) => {
    server.once('error', (cause: NodeJS.ErrnoException) =>
      fail(new OperatorError(bindFault(cause, listen, 'admin.listen'), { cause })),
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

async function readiness(parts: AdminParts) {
  const store = await parts.storeAnswers().then(
    () => 'answers',
    (error: unknown) => reason(error),
  )
  const draining = parts.isDraining()
  // Taken out of service, a process could serve nobody in the grace either.
  const grace = store !== 'answers' && parts.mayServeInOutage()
  return {
    ready: (store === 'answers' || grace) && !draining,
    store,
    ...(grace && { grace }),
    provider: parts.providerIsKnown() ? 'found' : 'not found yet',
    draining,
  }
}
