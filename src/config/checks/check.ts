import type { Setting } from '../document/report.ts'
import type { GatewayConfig } from '../model/gateway.ts'
import type { ProviderConfig } from '../model/provider.ts'
import type { UpstreamConfig } from '../model/upstream.ts'
import type { GatewaySettings } from '../settings.ts'

/** Finds a setting: `at('upstreams', name, 'url')`. */
export type At = Setting['below']

/** A check of the whole configuration. */
export type Check = (config: GatewayConfig, at: At, settings: GatewaySettings) => void

/** A check of one provider. `at` finds its settings. */
export type ProviderCheck = (provider: ProviderConfig, at: At) => void

/** A check of one upstream. `at` finds its settings, `file` those of the whole configuration. */
export type UpstreamCheck = (upstream: UpstreamConfig, at: At, config: GatewayConfig, file: At) => void

/** The check of each upstream, as one of the whole configuration. */
export function ofEachUpstream(check: UpstreamCheck): Check {
  return (config, file) => {
    for (const upstream of config.upstreams)
      check(upstream, (...names) => file('upstreams', upstream.name, ...names), config, file)
  }
}
