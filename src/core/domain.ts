/**
 * Whether a host is a domain, or below it: RFC 6265bis §5.1.3. An IP address has no hosts below it.
 */
export function isDomainOf(domain: string, host: string): boolean {
  return domain === host || (host.endsWith(`.${domain}`) && !/\.\d+$/.test(host))
}
