import type { UpstreamConfig } from '../config/model.ts'

/**
 * The upstreams that serve a host: first those that name it, then those of any host. `host` is in
 * lower case, without port.
 */
export function upstreamsOfHost(host: string, upstreams: readonly UpstreamConfig[]): readonly UpstreamConfig[] {
  return [
    ...upstreams.filter(({ hosts }) => hosts.includes(host)),
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
