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
  const why = `is not below session.cookie.domain, which is ${domain}: browsers would not send the session cookie there`
  if (!isDomainOf(domain, externalUrl.hostname)) at('external_url').error(why)
  const all = upstreams.map(({ name, externalUrl: { hostname } }) => ({
    urlAt: at('upstreams', name, 'external_url'),
    hostname,
  }))
  const own = all.filter(({ urlAt }) => urlAt.isSet && urlAt.isValid)
  for (const { urlAt, hostname } of own) if (!isDomainOf(domain, hostname)) urlAt.error(why)
  const isAlone = own.every(({ hostname }) => hostname === externalUrl.hostname)
  if (isAlone && all.every(({ urlAt }) => urlAt.isValid))
    domainAt.warning(
      `has no use: ${externalUrl.hostname} is the only host of this file, and the cookie goes to all hosts of ${domain}`,
      'give upstreams their own external_url, or remove domain',
    )
}

/**
 * Labels below which registries of countries register names, as in `co.uk`. Other public suffixes
 * are not known without their list, which changes daily.
 */
const registryLabels: ReadonlySet<string> = new Set(['ac', 'co', 'com', 'edu', 'gov', 'go', 'net', 'ne', 'or', 'org'])

function publicSuffix({ session }: GatewayConfig, at: At): void {
  const { domain } = session.cookie
  const domainAt = at('session', 'cookie', 'domain')
  const [label = '', country = '', ...more] = domain?.split('.') ?? []
  if (more.length > 0 || country.length !== 2 || !registryLabels.has(label) || !domainAt.isValid) return
  domainAt.warning(
    `looks like a public suffix, below which anybody can register names: browsers ignore a cookie for ${String(domain)}`,
    'write the domain of your organization',
  )
}

function wildcard({ externalUrl, accessTokens }: UpstreamConfig, at: At, { session }: GatewayConfig, file: At): void {
  if (!at('external_url').isSet || !areValid(at('external_url'), file('session', 'cookie', 'domain'))) return
  if (!isWildcard(externalUrl.hostname)) return
  if (session.cookie.domain === undefined)
    at('external_url').error(
      'has a wildcard, which needs one session for all hosts: a provider accepts no redirect URI with a wildcard',
      `set session.cookie.domain, such as ${externalUrl.hostname.slice(2)}, after you have read about its risks`,
    )
  if (at('hosts').isSet) at('hosts').errorAtKey('cannot be beside an external_url with a wildcard', 'remove hosts')
  if (accessTokens?.metadata === true)
    at('access_tokens', 'metadata').error(
      'needs one host: the metadata names the URL of the API',
      'give the API an upstream with its own external_url',
    )
}

/**
 * Browsers send a cookie to all ports of its host (RFC 6265 §8.5). A host with a port of its own
 * usually has more than one gateway.
 */
function sharedPorts({ externalUrl, upstreams }: GatewayConfig, at: At): void {
  if (at('session', 'cookie', 'name').isSet || !at('session', 'cookie').isValid) return
  const ofUpstreams = upstreams.map(
    ({ name, externalUrl: url }) => [at('upstreams', name, 'external_url'), url] as const,
  )
  for (const [urlAt, { port, hostname }] of [[at('external_url'), externalUrl] as const, ...ofUpstreams])
    if (urlAt.isSet && urlAt.isValid && port !== '' && !isLoopback(hostname))
      urlAt.warning(
        `has the port ${port}: browsers send cookies to all ports of ${hostname}, so two gateways there replace each other's sessions`,
        'give each gateway at this host its own session.cookie.name',
      )
}
