import { isLoopback, parseHttpUrl } from '../addresses.ts'
import type { Setting } from '../document/report.ts'
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
  at: Setting,
): ProviderMetadata | undefined {
  if (settings === undefined) return undefined
  const onLoopback = issuer?.startsWith('http:') === true
  const { mtls_endpoint_aliases: aliases, ...others } = settings
  checkUrls(others, at, onLoopback)
  if (aliases !== undefined) checkUrls(aliases, at.below('mtls_endpoint_aliases'), onLoopback)
  const members = Object.entries(settings).flatMap(([name, value]: [string, unknown]) =>
    value === undefined ? [] : [[name, Array.isArray(value) ? valuesOf(value as List<string>) : value]],
  )
  return Object.fromEntries(members) as ProviderMetadata
}

function checkUrls(settings: object, at: Setting, onLoopback: boolean): void {
  for (const [name, text] of Object.entries(settings)) {
    if (typeof text !== 'string') continue
    const url = at.below(name).parse(undefined, () => parseHttpUrl(withoutQuery(text), `https://id.example.com`))
    if (url?.protocol === 'http:' && !(onLoopback && isLoopback(url.hostname)))
      at.below(name).error('must be https; plain http is possible when issuer is http on this machine')
  }
}

/** Endpoints may have a query (RFC 6749 §3.1). */
function withoutQuery(text: string): string {
  return text.replace(/\?[^#]*/, '')
}
