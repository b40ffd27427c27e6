import { parseHttpUrl } from '../addresses.ts'
import { below } from '../document/report.ts'
import type { TracingConfig } from '../model/gateway.ts'
import type { TracingSettings } from '../settings.ts'
import { type BuildContext, standInUrl } from './build-context.ts'
import { readAuthorities } from './certificates.ts'
import { readSecret } from './secrets.ts'

/** Headers that the exporter sets itself. */
const ours = /^(?:content-.*|transfer-encoding|connection|host|user-agent|expect|te|upgrade|keep-alive)$/i

export function buildTracing(
  settings: TracingSettings | undefined,
  at: string,
  { env, report }: BuildContext,
): TracingConfig | undefined {
  if (settings?.otlp === undefined) return undefined
  const { otlp } = settings
  if ('service.name' in settings.resource)
    report.errorAtKey(below(below(at, 'resource'), 'service.name'), 'is set by service_name', 'write it there')
  const headers = Object.entries(settings.headers).flatMap(([name, secret]) => {
    const headerAt = below(below(at, 'headers'), name)
    if (ours.test(name)) report.errorAtKey(headerAt, 'is a header that the gateway sets itself')
    const value = readSecret(secret, headerAt, env, report)
    if (value !== undefined && /[^\x20-\x7e]/.test(value))
      report.error(headerAt, 'must consist of printable ASCII characters')
    return value === undefined ? [] : [[name, value] as const]
  })
  const { caFile, ...others } = settings
  return {
    ...others,
    otlp: report.parse(below(at, 'otlp'), standInUrl, () => collectorUrl(otlp)),
    headers: Object.fromEntries(headers),
    ca: readAuthorities(caFile, below(at, 'ca_file'), report),
  }
}

/** Like OTEL_EXPORTER_OTLP_ENDPOINT: the address of the collector, or the full URL for traces. */
function collectorUrl(text: string): URL {
  const url = parseHttpUrl(text, 'http://127.0.0.1:4318')
  if (url.pathname === '/') url.pathname = '/v1/traces'
  return url
}
