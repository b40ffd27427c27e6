/** Whether a host is a domain, or below it (RFC 6265bis §5.1.3). Nothing is below an IP address. */
export function isDomainOf(domain: string, host: string): boolean {
  return domain === host || (host.endsWith(`.${domain}`) && !/\.\d+$/.test(host))
}
