import { createRequire } from 'node:module'
import type undici from 'undici'

/** The versions of undici whose files were tested. */
export const testedWith = /^7\./

type Undici = typeof undici

// The main module of undici also loads `fetch`, WebSocket, caches and mocks, which costs 10 MB of
// memory and 20 ms of each start (docs/performance.md). Its files are not part of its public
// interface. The build includes them (docs/decisions/0021-one-bundled-program.md), so it fails with
// a version that lacks one.
const require = createRequire(import.meta.url)
export const Agent = require('undici/lib/dispatcher/agent.js') as Undici['Agent']
export const Client = require('undici/lib/dispatcher/client.js') as Undici['Client']
export type Agent = undici.Agent
// The main module adds these methods to every dispatcher.
const requestOf = require('undici/lib/api/api-request.js') as undici.Dispatcher['request']
const connectOf = require('undici/lib/api/api-connect.js') as undici.Dispatcher['connect']

/** Sends a request through a dispatcher. */
export async function request(
  dispatcher: undici.Dispatcher,
  options: undici.Dispatcher.RequestOptions,
): Promise<undici.Dispatcher.ResponseData<unknown>> {
  return requestOf.call(dispatcher, options)
}

/**
 * Sends requests through an HTTP proxy. `tunnelTimeoutMs` is how long the proxy may take to open a
 * tunnel: without it, requests would wait five minutes for tunnels that a proxy began to open
 * before it hung.
 */
export function createProxyAgent(options: undici.ProxyAgent.Options, tunnelTimeoutMs: number): undici.Dispatcher {
  const Pool = require('undici/lib/dispatcher/pool.js') as Undici['Pool']
  const ProxyAgent = require('undici/lib/dispatcher/proxy-agent.js') as Undici['ProxyAgent']
  const clientFactory = (origin: URL, ofClient: object) =>
    Object.assign(new Pool(origin, { ...ofClient, headersTimeout: tunnelTimeoutMs }), { connect: connectOf })
  return new ProxyAgent({ ...options, clientFactory })
}

/** The origin and path of a URL, as a dispatcher takes them. */
export function addressOf(url: string | URL): { readonly origin: string; readonly path: string } {
  const { origin, pathname, search } = new URL(url)
  return { origin, path: pathname + search }
}
