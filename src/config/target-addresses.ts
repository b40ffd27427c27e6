import { portOf } from '../core/addresses.ts'
import { isEveryAddress, isLoopback } from './addresses.ts'
import type { TargetConfig, UpstreamConfig } from './model/upstream.ts'

/** The address of a target, as logs and metrics name it: its origin, or `unix:` and a path. */
export function targetName({ url, socketPath }: Pick<TargetConfig, 'url' | 'socketPath'>): string {
  return socketPath === undefined ? url.origin : `unix:${socketPath}`
}

/** The setting with the addresses of an upstream: `upstreams.orders.url`. */
export function addressSetting({
  name,
  targets,
  resolve,
}: Pick<UpstreamConfig, 'name' | 'targets' | 'resolve'>): string {
  return `upstreams.${name}.${targets.length > 1 || resolve !== undefined ? 'targets' : 'url'}`
}

/**
 * The places where the application of an upstream listens. Upstreams that share one lead to the
 * same application.
 */
export function placesOf({ targets }: Pick<UpstreamConfig, 'targets'>): ReadonlySet<string> {
  return new Set(targets.map(placeOf))
}

/** The host and port of a target. All names of this machine become `localhost`. */
function placeOf({ url, socketPath }: TargetConfig): string {
  if (socketPath !== undefined) return socketPath
  const host = url.hostname.replaceAll(/^\[|\]$|\.$/g, '')
  return `${isLoopback(host) || isEveryAddress(host) ? 'localhost' : host} ${portOf(url)}`
}
