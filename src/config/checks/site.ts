import { isDomainOf } from '../../core/addresses.ts'
import { isLoopback } from '../addresses.ts'
import { areValid } from '../document/report.ts'
import { isWildcard } from '../hosts.ts'
import type { GatewayConfig } from '../model/gateway.ts'
import type { UpstreamConfig } from '../model/upstream.ts'
import { type At, type Check, ofEachUpstream } from './check.ts'

/** The checks of hosts that share the session cookie. */
export const siteChecks: readonly Check[] = [cookieDomain, publicSuffix, ofEachUpstream(wildcard), sharedPorts]

function cookieDomain({ externalUrl, upstreams, session }: GatewayConfig, at: At): void {
  const { domain } = session.cookie
  const domainAt = at('session', 'cookie', 'domain')
  if (domain === undefined || !areValid(domainAt, at('external_url'))) return
  if (externalUrl.protocol === 'http:')
    return domainAt.error(
      'needs https: over http anybody on the network could read the cookie at each host of the domain',
      'write https:// in external_url, or remove domain',
    )
  const all = upstreams.map(({ name, externalUrl: { hostname } }) => ({
    urlAt: at('upstreams', name, 'external_url'),
    hostname,
  }))
  const own = all.filter(({ urlAt }) => urlAt.isSet && urlAt.isValid)
  const above = commonDomain([externalUrl.hostname, ...own.map(({ hostname }) => hostname)])
  const hint = `${above === undefined ? '' : `write session.cookie.domain: ${above}, or `}remove session.cookie.domain`
  const why = 'browsers would not send the session cookie there'
  const isMeant = ({ hostname }: { readonly hostname: string }) => isDomainOf(domain, hostname)
  if (!isMeant(externalUrl) && !own.some(isMeant))
    return domainAt.error(`does not include ${externalUrl.hostname}, the host of external_url: ${why}`, hint)
  for (const { urlAt, hostname } of [{ urlAt: at('external_url'), hostname: externalUrl.hostname }, ...own])
    if (!isDomainOf(domain, hostname))
      urlAt.error(
        `is not below session.cookie.domain, which is ${domain}: ${why}`,
        `write a host below ${domain}, or ${hint}`,
      )
  const isAlone = own.every(({ hostname }) => hostname === externalUrl.hostname)
  if (isAlone && all.every(({ urlAt }) => urlAt.isValid))
    domainAt.warning(
      `has no use: ${externalUrl.hostname} is the only host of this file, and the cookie goes to all hosts of ${domain}`,
      'give upstreams their own external_url, or remove domain',
    )
}

/** The longest domain of at least two labels that includes all hosts. */
function commonDomain([first = '', ...others]: readonly string[]): string | undefined {
  const labels = first.split('.')
  const above = labels.slice(labels.length > 2 ? 1 : 0)
  const domains = above
    .map((_, index) => above.slice(index).join('.'))
    .filter((domain) => domain.includes('.') && !looksPublic(domain))
  return domains.find((domain) => others.every((host) => isDomainOf(domain, host)))
}

/**
 * Labels below which registries of countries register names, as in `co.uk`. Other public suffixes
 * are not known without their list, which changes daily.
 */
const registryLabels: ReadonlySet<string> = new Set(['ac', 'co', 'com', 'edu', 'gov', 'go', 'net', 'ne', 'or', 'org'])

function looksPublic(domain: string): boolean {
  const [label = '', country = '', ...more] = domain.split('.')
  return more.length === 0 && country.length === 2 && registryLabels.has(label)
}

function publicSuffix({ session }: GatewayConfig, at: At): void {
  const { domain } = session.cookie
  const domainAt = at('session', 'cookie', 'domain')
  if (domain === undefined || !looksPublic(domain) || !domainAt.isValid) return
  domainAt.warning(
    `looks like a public suffix, below which anybody can register names: browsers ignore a cookie for ${domain}`,
    'write the domain of your organization',
  )
}

function wildcard({ externalUrl }: UpstreamConfig, at: At, { session }: GatewayConfig, file: At): void {
  if (!at('external_url').isSet || !areValid(at('external_url'), file('session', 'cookie', 'domain'))) return
  if (!isWildcard(externalUrl.hostname)) return
  if (session.cookie.domain === undefined)
    at('external_url').error(
      'has a wildcard, which needs one session for all hosts: a provider accepts no redirect URI with a wildcard',
      `set session.cookie.domain, such as ${externalUrl.hostname.slice(2)}, after you have read about its risks`,
    )
}

/**
 * Browsers send a cookie to all ports of its host (RFC 6265 §8.5). A host with a port of its own
 * usually has more than one gateway.
 */
function sharedPorts({ externalUrl, upstreams, listen }: GatewayConfig, at: At): void {
  if (at('session', 'cookie', 'name').isSet || !at('session', 'cookie').isValid) return
  const ofUpstreams = upstreams.map(
    ({ name, externalUrl: url }) => [at('upstreams', name, 'external_url'), url] as const,
  )
  // A port with the scheme of another one has a diagnostic of its own.
  const isOwn = ({ port, protocol }: URL) =>
    Number(port) === listen.port && (protocol === 'https:') !== (listen.tls !== undefined)
  for (const [urlAt, url] of [[at('external_url'), externalUrl] as const, ...ofUpstreams])
    if (urlAt.isSet && urlAt.isValid && url.port !== '' && !isLoopback(url.hostname) && !isOwn(url))
      urlAt.warning(
        `has the port ${url.port}: browsers send cookies to all ports of ${url.hostname}, so two gateways there replace each other's sessions`,
        'give each gateway at this host its own session.cookie.name',
      )
}
