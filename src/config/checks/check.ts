import { below, type Report } from '../document/report.ts'
import type { GatewayConfig } from '../model/gateway.ts'
import type { GatewaySettings } from '../settings.ts'

export type Check = (config: GatewayConfig, report: Report, settings: GatewaySettings) => void

/** The pointer of a setting of an upstream. */
export function settingOf(upstream: string, name: string): string {
  return below(below('/upstreams', upstream), name)
}
