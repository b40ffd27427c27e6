import { readFileSync } from 'node:fs'
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import { setTimeout as pause } from 'node:timers/promises'
import type { RedisTls, Scope } from '../support/redis.ts'

/** A replica as the balancer knows it. */
export interface Target {
  readonly name: string
  readonly url: string
  readonly adminUrl: string
}

export interface Balancer {
  /** The responses with a status of 5xx, and the requests without a response. */
  readonly failures: readonly string[]
  /** How many responses each replica has sent, by its name. */
  readonly responses: ReadonlyMap<string, number>
  /** Waits until the replica is ready, and sends it requests from then on. */
  add(target: Target): Promise<void>
}

/**
 * Distributes requests in turn over the replicas that are ready, as a load balancer does. A request
 * without content is sent to another one when the connection fails before a response.
 */
export async function startBalancer(scope: Scope, port: number, tls: RedisTls): Promise<Balancer> {
  const targets = new Set<Target>()
  const failures: string[] = []
  const responses = new Map<string, number>()
  let turn = 0

  const forward = (req: IncomingMessage, res: ServerResponse, left: readonly Target[]) => {
    const [target, ...others] = left
    if (target === undefined) {
      failures.push(`${req.method} ${req.url}: no replica`)
      return res.writeHead(502).end()
    }
    const headers = { ...req.headers, 'x-forwarded-proto': 'https', 'x-forwarded-for': '192.0.2.1' }
    const { port, hostname } = new URL(target.url)
    const onward = request({ hostname, port, path: req.url, method: req.method, headers, agent: false }, (response) => {
      const { statusCode = 0 } = response
      responses.set(target.name, (responses.get(target.name) ?? 0) + 1)
      if (statusCode >= 500) failures.push(`${req.method} ${req.url}: ${statusCode} from ${target.name}`)
      response.on('error', (error) => failures.push(`${req.method} ${req.url}: ${target.name} ${error.message}`))
      response.pipe(res.writeHead(statusCode, response.headers))
    })
    onward.on('error', (error) => {
      if (res.headersSent) return res.destroy()
      if (req.method === 'GET') return forward(req, res, others)
      failures.push(`${req.method} ${req.url}: ${target.name} ${error.message}`)
      return res.writeHead(502).end()
    })
    return req.pipe(onward)
  }

  const server = createServer({ cert: readFileSync(tls.cert), key: readFileSync(tls.key) }, (req, res) => {
    turn += 1
    const all = [...targets]
    const first = turn % Math.max(1, all.length)
    forward(req, res, [...all.slice(first), ...all.slice(0, first)])
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  scope.after(() => void server.close().closeAllConnections())

  /** Takes the replica out when it is not ready any more: it drains, or has ended. */
  const watch = async (target: Target) => {
    while (await isReady(target)) await pause(20)
    targets.delete(target)
  }
  return {
    ...{ failures, responses },
    add: async (target) => {
      while (!(await isReady(target))) await pause(20)
      targets.add(target)
      void watch(target)
    },
  }
}

async function isReady({ adminUrl }: Target): Promise<boolean> {
  const response = await fetch(`${adminUrl}/ready`).catch(() => undefined)
  await response?.text()
  return response?.status === 200
}
