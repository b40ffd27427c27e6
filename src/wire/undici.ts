import { isIP } from 'node:net'
import type undici from 'undici'
import connectOf from 'undici/lib/api/api-connect.js'
import requestOf from 'undici/lib/api/api-request.js'
import Agent from 'undici/lib/dispatcher/agent.js'
import Client from 'undici/lib/dispatcher/client.js'
import Pool from 'undici/lib/dispatcher/pool.js'
import ProxyAgent from 'undici/lib/dispatcher/proxy-agent.js'

// The main module of undici also loads `fetch`, WebSocket, caches and mocks, which costs 10 MB of
// memory and 20 ms of each start (bench/HISTORY.md). Its files are not part of its public
// interface, and undici-files.d.ts has their types. The build includes them
// (docs/decisions/0021-one-bundled-program.md), so it fails with a version that lacks one.
export { Agent, Client }

/** The versions of undici whose files were tested. */
export const testedWith = /^8\./

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
  const clientFactory = (origin: URL, ofClient: object) =>
    Object.assign(new Pool(origin, { ...named(ofClient), headersTimeout: tunnelTimeoutMs }), { connect: connectOf })
  const factory = (origin: string | URL, ofOrigin: object) => new Pool(origin, named(ofOrigin))
  return new ProxyAgent({ ...options, clientFactory, factory })
}

/**
 * The same options, without an IP address as the server name of TLS (RFC 6066 §3). undici takes it
 * from the URL of the proxy, and Node.js 26 rejects it. The certificate must still name the
 * address.
 */
function named(options: { readonly connect?: undici.buildConnector.connector }): object {
  const { connect } = options
  if (typeof connect !== 'function') return options
  const isAddress = (name = '') => isIP(name.replace(/^\[(.*)\]$/, '$1')) > 0
  const connectByName: undici.buildConnector.connector = ({ servername, ...to }, done) =>
    connect({ ...to, ...(servername !== undefined && !isAddress(servername) && { servername }) }, done)
  return { ...options, connect: connectByName }
}

/** The origin and path of a URL, as a dispatcher takes them. */
export function addressOf(url: string | URL): { readonly origin: string; readonly path: string } {
  const { origin, pathname, search } = new URL(url)
  return { origin, path: pathname + search }
}
