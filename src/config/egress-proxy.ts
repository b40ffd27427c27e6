import { AddressSet, ipAddress, portOf } from '../core/addresses.ts'
import { isLoopback } from './addresses.ts'
import type { EgressProxyConfig, NoProxy } from './model/provider.ts'

/**
 * The proxy for a request to the provider. A provider on this machine is reached without it,
 * because the proxy would look for it on its own machine.
 * @returns `undefined` when the request needs no proxy
 */
export function proxyFor(url: URL, proxy: EgressProxyConfig | undefined): EgressProxyConfig | undefined {
  if (proxy === undefined || isLoopback(url.hostname)) return undefined
  return proxy.noProxy.some((entry) => isMeant(entry, url)) ? undefined : proxy
}

function isMeant(entry: NoProxy, url: URL): boolean {
  if (entry.kind === 'all') return true
  if (entry.port !== undefined && entry.port !== portOf(url)) return false
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  if (entry.kind === 'host') return host === entry.host || host.endsWith(`.${entry.host}`)
  const address = ipAddress(host)
  return address !== undefined && new AddressSet([entry.subnet]).has(address)
}

/** The proxy and where it is configured, as text for people. It contains no credentials. */
export function proxyText({ url, from }: EgressProxyConfig): string {
  return `${url.origin} (${from})`
}
