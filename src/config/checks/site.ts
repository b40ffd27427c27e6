import { isDomainOf } from '../../core/domain.ts'
import { isLoopback } from '../addresses.ts'
import { below, type Report } from '../document/report.ts'
import { isWildcard } from '../hosts.ts'
import type { GatewayConfig } from '../model/gateway.ts'
import { type Check, settingOf } from './check.ts'

/** The checks of hosts that share the session cookie. */
export const siteChecks: readonly Check[] = [cookieDomain, publicSuffix, wildcards, sharedPorts]

const domainAt = '/session/cookie/domain'

function cookieDomain({ externalUrl, upstreams, session }: GatewayConfig, report: Report): void {
  const { domain } = session.cookie
  if (domain === undefined || !report.isValid(domainAt, '/external_url')) return
  if (externalUrl.protocol === 'http:')
    return report.error(
      domainAt,
      'needs https: over http anybody on the network could read the cookie at each host of the domain',
      'write https:// in external_url, or remove domain',
    )
  const why = `is not below session.cookie.domain, which is ${domain}: browsers would not send the session cookie there`
  if (!isDomainOf(domain, externalUrl.hostname)) report.error('/external_url', why)
  const own = upstreams.filter(({ name }) => {
    const at = settingOf(name, 'external_url')
    return report.isSet(at) && report.isValid(at)
  })
  for (const { name, externalUrl: url } of own)
    if (!isDomainOf(domain, url.hostname)) report.error(settingOf(name, 'external_url'), why)
  const isAlone = own.every(({ externalUrl: url }) => url.hostname === externalUrl.hostname)
  if (isAlone && upstreams.every(({ name }) => report.isValid(settingOf(name, 'external_url'))))
    report.warning(
      domainAt,
      `has no use: ${externalUrl.hostname} is the only host of this file, and the cookie goes to all hosts of ${domain}`,
      'give upstreams their own external_url, or remove domain',
    )
}

/**
 * Labels below which registries of countries register names, as in `co.uk`. Other public suffixes
 * are not known without their list, which changes daily.
 */
const registryLabels: ReadonlySet<string> = new Set(['ac', 'co', 'com', 'edu', 'gov', 'go', 'net', 'ne', 'or', 'org'])

function publicSuffix({ session }: GatewayConfig, report: Report): void {
  const { domain } = session.cookie
  const [label = '', country = '', ...more] = domain?.split('.') ?? []
  if (more.length > 0 || country.length !== 2 || !registryLabels.has(label) || !report.isValid(domainAt)) return
  report.warning(
    domainAt,
    `looks like a public suffix, below which anybody can register names: browsers ignore a cookie for ${String(domain)}`,
    'write the domain of your organization',
  )
}

function wildcards({ upstreams, session }: GatewayConfig, report: Report): void {
  for (const { name, externalUrl, accessTokens } of upstreams) {
    const own = (setting: string) => settingOf(name, setting)
    if (!report.isSet(own('external_url')) || !report.isValid(own('external_url'), domainAt)) continue
    if (!isWildcard(externalUrl.hostname)) continue
    if (session.cookie.domain === undefined)
      report.error(
        own('external_url'),
        'has a wildcard, which needs one session for all hosts: a provider accepts no redirect URI with a wildcard',
        `set session.cookie.domain, such as ${externalUrl.hostname.slice(2)}, after you have read about its risks`,
      )
    if (report.isSet(own('hosts')))
      report.errorAtKey(own('hosts'), 'cannot be beside an external_url with a wildcard', 'remove hosts')
    if (accessTokens?.metadata === true)
      report.error(
        below(own('access_tokens'), 'metadata'),
        'needs one host: the metadata names the URL of the API',
        'give the API an upstream with its own external_url',
      )
  }
}

/**
 * Browsers send a cookie to all ports of its host (RFC 6265 §8.5). A host with a port of its own
 * usually has more than one gateway.
 */
function sharedPorts({ externalUrl, upstreams }: GatewayConfig, report: Report): void {
  if (report.isSet('/session/cookie/name') || !report.isValid('/session/cookie')) return
  const ofUpstreams = upstreams.map(({ name, externalUrl: url }) => [settingOf(name, 'external_url'), url] as const)
  for (const [at, { port, hostname }] of [['/external_url', externalUrl] as const, ...ofUpstreams]) {
    if (!report.isSet(at) || !report.isValid(at) || port === '' || isLoopback(hostname)) continue
    report.warning(
      at,
      `has the port ${port}: browsers send cookies to all ports of ${hostname}, so two gateways there replace each other's sessions`,
      'give each gateway at this host its own session.cookie.name',
    )
  }
}
