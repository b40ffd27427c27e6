import { upstreamsOfHost } from '../config/hosts.ts'
import type { UpstreamConfig } from '../config/model/upstream.ts'

/**
 * The path of a host's start page: `/`, or the path of the first upstream of this host when no
 * upstream serves `/`.
 */
export function startPageOf(host: string, upstreams: readonly UpstreamConfig[]): string {
  const paths = upstreamsOfHost(host, upstreams).map(({ path }) => path)
  return paths.includes('/') ? '/' : (paths[0] ?? '/')
}
