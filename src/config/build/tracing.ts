import { parseHttpUrl } from '../addresses.ts'
import type { Setting } from '../document/report.ts'
import type { TracingConfig } from '../model/gateway.ts'
import type { TracingSettings } from '../settings.ts'
import { standInUrl } from './build-context.ts'
import { readAuthorities } from './certificates.ts'
import { readSecret } from './secrets.ts'

/** Headers that the exporter sets itself. */
const ours = /^(?:content-.*|transfer-encoding|connection|host|user-agent|expect|te|upgrade|keep-alive)$/i

export function buildTracing(settings: TracingSettings | undefined, at: Setting): TracingConfig | undefined {
  if (settings?.otlp === undefined) return undefined
  const { otlp } = settings
  if ('service.name' in settings.resource)
    at.below('resource', 'service.name').errorAtKey('is set by service_name', 'write it there')
  const headers = Object.entries(settings.headers).flatMap(([name, secret]) => {
    const headerAt = at.below('headers', name)
    if (ours.test(name)) headerAt.errorAtKey('is a header that the gateway sets itself')
    const value = readSecret(secret, headerAt)
    if (value !== undefined && /[^\x20-\x7e]/.test(value)) headerAt.error('must consist of printable ASCII characters')
    return value === undefined ? [] : [[name, value] as const]
  })
  const { caFile, ...others } = settings
  return {
    ...others,
    otlp: at.below('otlp').parse(standInUrl, () => collectorUrl(otlp)),
    headers: Object.fromEntries(headers),
    ca: readAuthorities(caFile, at.below('ca_file')),
  }
}

/** Like OTEL_EXPORTER_OTLP_ENDPOINT: the address of the collector, or the full URL for traces. */
function collectorUrl(text: string): URL {
  const url = parseHttpUrl(text, 'http://127.0.0.1:4318')
  if (url.pathname === '/') url.pathname = '/v1/traces'
  return url
}
