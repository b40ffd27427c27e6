import { asciiDomain, isDomainOf } from '../core/addresses.ts'

/** The first of these domains that `session.cookie.domain` may have: it needs https. */
export function usableDomain(domains: readonly string[], externalUrl: string): string | undefined {
  const { protocol, hostname } = new URL(externalUrl)
  if (protocol !== 'https:') return undefined
  return domains
    .map((domain) => asciiDomain(domain.replace(/^\./, '')))
    .find((domain) => domain !== undefined && isDomainOf(domain, hostname))
}
