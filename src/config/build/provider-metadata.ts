import { isLoopback, parseHttpUrl } from '../addresses.ts'
import { below, type Report } from '../document/report.ts'
import type { ProviderMetadata } from '../model/provider.ts'
import type { List, ProviderMetadataSettings } from '../settings.ts'
import { valuesOf } from './build-context.ts'

/**
 * The metadata of a provider without a discovery document. Its URLs get the same checks as those of
 * a discovery document: https, or http when the issuer is on loopback.
 */
export function readMetadata(
  settings: ProviderMetadataSettings | undefined,
  issuer: string | undefined,
  at: string,
  report: Report,
): ProviderMetadata | undefined {
  if (settings === undefined) return undefined
  const onLoopback = issuer?.startsWith('http:') === true
  const { mtls_endpoint_aliases: aliases, ...others } = settings
  checkUrls(others, at, onLoopback, report)
  if (aliases !== undefined) checkUrls(aliases, below(at, 'mtls_endpoint_aliases'), onLoopback, report)
  const members = Object.entries(settings).flatMap(([name, value]: [string, unknown]) =>
    value === undefined ? [] : [[name, Array.isArray(value) ? valuesOf(value as List<string>) : value]],
  )
  return Object.fromEntries(members) as ProviderMetadata
}

function checkUrls(settings: object, at: string, onLoopback: boolean, report: Report): void {
  for (const [name, text] of Object.entries(settings)) {
    if (typeof text !== 'string') continue
    const url = report.parse(below(at, name), undefined, () =>
      parseHttpUrl(withoutQuery(text), `https://id.example.com`),
    )
    if (url?.protocol === 'http:' && !(onLoopback && isLoopback(url.hostname)))
      report.error(below(at, name), 'must be https; plain http is possible when issuer is http on this machine')
  }
}

/** Endpoints may have a query (RFC 6749 §3.1). */
function withoutQuery(text: string): string {
  return text.replace(/\?[^#]*/, '')
}
