import { isDomainOf } from '../../core/addresses.ts'
import { areValid, type Setting } from '../document/report.ts'
import type { GatewayConfig } from '../model/gateway.ts'
import type { At } from './check.ts'

/** Checks `session.embedded_in`. Its cookie must not weaken the session outside frames. */
export function embedding(config: GatewayConfig, at: At): void {
  const { embeddedIn, cookie, deviceBinding } = config.session
  const own = at('session', 'embedded_in')
  if (embeddedIn.length === 0 || !areValid(own, at('external_url'), at('session', 'cookie'))) return
  if (config.externalUrl.protocol === 'http:')
    own.error('needs an https external_url: browsers keep a cookie for frames of other sites over https only')
  if (cookie.domain !== undefined)
    own.error('cannot be beside session.cookie.domain: the session of a frame is for one host', 'remove one of them')
  if (cookie.sameSite === 'strict')
    own.error(
      'contradicts session.cookie.same_site: strict, which withholds the session from requests that other sites cause',
      'remove one of them',
    )
  if (deviceBinding.isRequired)
    own.error('cannot be met with session.device_binding: required: the sessions of frames are not bound to devices')
  for (const [index, origin] of embeddedIn.entries()) checkOrigin(new URL(origin), config, own.below(index))
}

function checkOrigin({ protocol, hostname }: URL, { externalUrl, upstreams }: GatewayConfig, at: Setting): void {
  if (protocol !== 'https:')
    return at.error('must begin with https://: over http, an attacker on the network could replace the page')
  const hosts = [externalUrl, ...upstreams.map((upstream) => upstream.externalUrl)].map((url) => url.hostname)
  const same = hosts.find((host) => isDomainOf(host, hostname) || isDomainOf(hostname, host))
  if (same !== undefined)
    return at.error(
      `is of the same site as ${same}: browsers send the session cookie in its frames already`,
      'remove it, and name it in response_headers.frame_ancestors if the application needs that',
    )
  const near = hosts.find((host) => twoLabels(host) === twoLabels(hostname))
  if (near !== undefined)
    at.warning(
      `is not needed if it is of the same site as ${near}: browsers send the session cookie in its frames then`,
      'keep it only if other people can register names there, as in github.io',
    )
}

function twoLabels(host: string): string {
  return host.split('.').slice(-2).join('.')
}
