import { AddressSet, ipAddress, isDomainOf, portOf } from '../core/addresses.ts'
import type { Site } from '../core/site.ts'
import { isLoopback } from './addresses.ts'
import type { NoProxy } from './document/address-formats.ts'
import type { GatewayConfig } from './model/gateway.ts'
import type { EgressProxyConfig } from './model/provider.ts'
import type { UpstreamConfig } from './model/upstream.ts'

type HostConfig = Pick<GatewayConfig, 'externalUrl' | 'upstreams' | 'session'>

/** Whether a host name in `hosts`, or in an `external_url`, means any one label. */
export function isWildcard(host: string): boolean {
  return host.startsWith('*.')
}

/** The longest label of a host name, in characters (RFC 1035 §2.3.4). */
const longestLabel = 63

/**
 * The wildcard that a host matches: `a.example.com` → `*.example.com`. It means exactly one label
 * (RFC 9525 §6.3), so each host matches one wildcard at most. `undefined` for a host whose first
 * label is empty or invalid.
 */
export function wildcardOf(host: string): string | undefined {
  const dot = host.indexOf('.')
  if (dot <= 0 || dot > longestLabel) return undefined
  if (host.startsWith('xn--') && !URL.canParse(`https://${host}`)) return undefined
  return `*${host.slice(dot)}`
}

/** Whether an upstream names a host: as such, or by a wildcard. */
export function namesHost({ hosts }: Pick<UpstreamConfig, 'hosts'>, host: string): boolean {
  const wildcard = wildcardOf(host)
  return hosts.includes(host) || (wildcard !== undefined && hosts.includes(wildcard))
}

/**
 * The upstreams that serve a host: first those that name it, then those with a wildcard, then those
 * of any host. `host` is in lower case, without port.
 */
export function upstreamsOfHost(host: string, upstreams: readonly UpstreamConfig[]): readonly UpstreamConfig[] {
  const wildcard = wildcardOf(host)
  return [
    ...upstreams.filter(({ hosts }) => hosts.includes(host)),
    ...(wildcard === undefined ? [] : upstreams.filter(({ hosts }) => hosts.includes(wildcard))),
    ...upstreams.filter(({ hosts }) => hosts.length === 0),
  ]
}

/**
 * The path of a host's start page: `/`, or the path of the first upstream of this host when no
 * upstream serves `/`.
 */
export function startPageOf(host: string, upstreams: readonly UpstreamConfig[]): string {
  const paths = upstreamsOfHost(host, upstreams).map(({ path }) => path)
  return paths.includes('/') ? '/' : (paths[0] ?? '/')
}

/**
 * The external URL at a host (in lower case, without port). With one session for a domain, it has
 * that host if an upstream names it. Otherwise a browser at an upstream that serves several hosts
 * belongs at its `external_url`.
 */
export function externalUrlAt(host: string, config: HostConfig): URL {
  const [first] = upstreamsOfHost(host, config.upstreams)
  if (first === undefined) return config.externalUrl
  const { externalUrl } = first
  const { domain } = config.session.cookie
  if (externalUrl.hostname === host || domain === undefined) return externalUrl
  return namesHost(first, host) && isDomainOf(domain, host) ? withHost(externalUrl, host) : externalUrl
}

/** The hosts that share a session. `undefined`: each host has a session of its own. */
export function siteOf(config: HostConfig): Site | undefined {
  if (config.session.cookie.domain === undefined) return undefined
  return {
    signInUrl: config.externalUrl,
    originOf: (host) => {
      const url = externalUrlAt(host, config)
      return url.hostname === host ? url.origin : undefined
    },
  }
}

/** An upstream at one of its hosts, if its `external_url` has a wildcard. */
export function upstreamAt(upstream: UpstreamConfig, host: string): UpstreamConfig {
  const { externalUrl } = upstream
  return isWildcard(externalUrl.hostname)
    ? { ...upstream, externalUrl: withHost(externalUrl, host), hosts: [host] }
    : upstream
}

/** The same origin at another host. */
export function withHost({ protocol, port }: URL, host: string): URL {
  return new URL(`${protocol}//${host}${port === '' ? '' : `:${port}`}`)
}

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
