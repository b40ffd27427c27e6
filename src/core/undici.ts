import { createRequire } from 'node:module'
import type undici from 'undici'

/** The versions of undici that {@link readParts} was tested with. */
export const testedWith = /^7\./

interface Parts {
  readonly Agent: typeof undici.Agent
  readonly Client: typeof undici.Client
  /** A method of every dispatcher in undici's main module. */
  readonly request: undici.Dispatcher['request']
}

const require = createRequire(import.meta.url)
const parts = readParts()

export const { Agent, Client } = parts
export type Agent = undici.Agent

/** Sends a request through a dispatcher. */
export async function request(
  dispatcher: undici.Dispatcher,
  options: undici.Dispatcher.RequestOptions,
): Promise<undici.Dispatcher.ResponseData<unknown>> {
  return parts.request.call(dispatcher, options)
}

/**
 * Loads only the clients of undici. Its main module also loads `fetch`, WebSocket, caches and
 * mocks, which costs 10 MB of memory and 20 ms of each start (docs/performance.md). The files of
 * undici are not part of its public interface. A version without them is loaded as a whole.
 */
function readParts(): Parts {
  try {
    return {
      Agent: require('undici/lib/dispatcher/agent.js') as Parts['Agent'],
      Client: require('undici/lib/dispatcher/client.js') as Parts['Client'],
      request: require('undici/lib/api/api-request.js') as Parts['request'],
    }
  } catch {
    const whole = require('undici') as typeof undici
    return { Agent: whole.Agent, Client: whole.Client, request: whole.Dispatcher.prototype.request }
  }
}

/**
 * Sends requests through an HTTP proxy. It needs the whole of undici, which is loaded only when a
 * proxy is configured. `tunnelTimeoutMs` is how long the proxy may take to open a tunnel: without
 * it, requests would wait five minutes for tunnels that a proxy began to open before it hung.
 */
export function createProxyAgent(options: undici.ProxyAgent.Options, tunnelTimeoutMs: number): undici.Dispatcher {
  const { Pool, ProxyAgent } = require('undici') as typeof undici
  const clientFactory = (origin: URL, ofClient: object) =>
    new Pool(origin, { ...ofClient, headersTimeout: tunnelTimeoutMs })
  return new ProxyAgent({ ...options, clientFactory })
}

/** The origin and path of a URL, as a dispatcher takes them. */
export function addressOf(url: string | URL): { readonly origin: string; readonly path: string } {
  const { origin, pathname, search } = new URL(url)
  return { origin, path: pathname + search }
}
