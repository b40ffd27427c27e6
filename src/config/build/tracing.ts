import { parseHttpUrl } from '../addresses.ts'
import { below } from '../document/report.ts'
import type { TracingConfig } from '../model.ts'
import type { TracingSettings } from '../settings.ts'
import { type Building, standInUrl } from './building.ts'
import { readAuthorities } from './certificates.ts'
import { readSecret } from './secrets.ts'

/** What belongs to how a batch is sent. */
const ours = /^(?:content-.*|transfer-encoding|connection|host|user-agent|expect|te|upgrade|keep-alive)$/i

export function buildTracing(
  written: TracingSettings | undefined,
  at: string,
  { env, report }: Building,
): TracingConfig | undefined {
  if (written?.otlp === undefined) return undefined
  const { otlp } = written
  if ('service.name' in written.resource)
    report.errorAtKey(below(below(at, 'resource'), 'service.name'), 'is what service_name says', 'write it there')
  const headers = Object.entries(written.headers).flatMap(([name, secret]) => {
    const headerAt = below(below(at, 'headers'), name)
    if (ours.test(name)) report.errorAtKey(headerAt, 'is written by the gateway itself')
    const value = readSecret(secret, headerAt, env, report)
    if (value !== undefined && /[^\x20-\x7e]/.test(value)) report.error(headerAt, 'must be letters and digits of ASCII')
    return value === undefined ? [] : [[name, value] as const]
  })
  return {
    otlp: report.parse(below(at, 'otlp'), standInUrl, () => collectorUrl(otlp)),
    sample: written.sample,
    serviceName: written.service_name,
    resource: written.resource,
    headers: Object.fromEntries(headers),
    ca: readAuthorities(written.ca_file, below(at, 'ca_file'), report),
  }
}

/** Like OTEL_EXPORTER_OTLP_ENDPOINT: the address of the collector, or exactly where traces go. */
function collectorUrl(text: string): URL {
  const url = parseHttpUrl(text, 'http://127.0.0.1:4318')
  if (url.pathname === '/') url.pathname = '/v1/traces'
  return url
}
