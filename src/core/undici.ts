import { createRequire } from 'node:module'
import type undici from 'undici'

/**
 * Loads only the clients of undici. Its main module also loads `fetch`, WebSocket, caches and
 * mocks, which costs 10 MB of memory and 20 ms of each start (docs/performance.md).
 */
const require = createRequire(import.meta.url)

export const Agent = require('undici/lib/dispatcher/agent.js') as typeof undici.Agent
export type Agent = undici.Agent
export const Client = require('undici/lib/dispatcher/client.js') as typeof undici.Client

// `request` and the like are methods of every dispatcher, as in undici's main module.
const { prototype } = require('undici/lib/dispatcher/dispatcher.js') as typeof undici.Dispatcher
Object.assign(prototype, require('undici/lib/api/index.js'))

/** The origin and path of a URL, as a dispatcher takes them. */
export function addressOf(url: string | URL): { readonly origin: string; readonly path: string } {
  const { origin, pathname, search } = new URL(url)
  return { origin, path: pathname + search }
}
