import { portOf } from '../../core/addresses.ts'
import { type Address, isEveryAddress, isLoopback } from '../addresses.ts'
import { areValid, type Setting } from '../document/report.ts'
import type { GatewayConfig } from '../model/gateway.ts'
import type { TargetConfig, UpstreamConfig } from '../model/upstream.ts'
import { targetName } from '../target-addresses.ts'
import type { At, UpstreamCheck } from './check.ts'

/** The settings that say how requests are spread over several targets. */
const settingsOfTargets = ['balance', 'eject', 'slow_start', 'retry_budget', 'connections_per_target']

/** The checks of the addresses of an upstream. */
export const targetChecks: readonly UpstreamCheck[] = [loops, ports, certificates, protocols, spreading, basePaths]

/** The setting with the address of each target. */
function urlsOf(
  { targets, resolve }: UpstreamConfig,
  at: At,
): readonly (readonly [target: TargetConfig, at: Setting])[] {
  const [first] = targets
  if (first !== undefined && resolve !== undefined) return [[first, at('targets', 'resolve')]]
  if (!at('targets').isSet) return targets.map((target) => [target, at('url')])
  return targets.map((target, index) => [target, at('targets', index, 'url')])
}

function loops(upstream: UpstreamConfig, at: At, { listen, externalUrl }: GatewayConfig, file: At): void {
  const own = [externalUrl.origin, upstream.externalUrl.origin]
  for (const [target, urlAt] of urlsOf(upstream, at)) {
    if (areValid(urlAt, file('listen')) && target.socketPath === undefined && isAddressOf(target.url, listen))
      urlAt.error('is the address of the gateway itself: requests would loop')
    // The name may lead to the application from here, if not for browsers.
    else if (own.includes(target.url.origin) && areValid(urlAt, at('external_url'), file('external_url')))
      urlAt.warning(
        'is external_url, the address of the gateway: requests would come back to it',
        'write the address at which the application listens, such as http://127.0.0.1:3000',
      )
  }
}

/** The port of the other scheme. */
function ports(upstream: UpstreamConfig, at: At): void {
  for (const [{ url, socketPath }, urlAt] of urlsOf(upstream, at)) {
    const other = { 'http:443': 'https', 'https:80': 'http' }[url.protocol + url.port]
    if (other !== undefined && socketPath === undefined && urlAt.isValid)
      urlAt.warning(
        `is ${url.protocol.slice(0, -1)} at the port of ${other}`,
        `write ${other}://${url.hostname}${url.pathname.replace(/\/$/, '')}, or the port that the application has`,
      )
  }
}

function isAddressOf(url: URL, listen: Address): boolean {
  if (portOf(url) !== listen.port) return false
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  return (
    host === listen.host ||
    isEveryAddress(host) ||
    (isLoopback(host) && (isEveryAddress(listen.host) || isLoopback(listen.host)))
  )
}

/** The settings that have no effect when no target is https. */
const settingsOfTls = ['ca_file', 'server_name', 'client_certificate', 'pinned_keys']

function certificates(upstream: UpstreamConfig, at: At): void {
  const urls = urlsOf(upstream, at)
  if (!areValid(at('targets'), ...urls.map(([, urlAt]) => urlAt))) return
  if (upstream.targets.some(({ url }) => url.protocol === 'https:')) return
  for (const name of settingsOfTls)
    if (at(name).isSet && at(name).isValid)
      at(name).error(`has no effect: ${at('targets').isSet ? 'all targets are' : 'the url is'} http`)
}

function protocols({ protocol, targets, upgrade }: UpstreamConfig, at: At): void {
  const [protocolAt, upgradeAt] = [at('protocol'), at('upgrade')]
  if (protocol === 'http1') {
    if (protocolAt.isValid && at('streams_per_connection').isSet)
      at('streams_per_connection').warning('has no effect: it is for HTTP/2', 'set protocol to h2 or h2c')
    return
  }
  if (!areValid(protocolAt, at('url'), at('targets'))) return
  const isTls = targets.some(({ url }) => url.protocol === 'https:')
  if (protocol === 'h2' && targets.some(({ url }) => url.protocol !== 'https:'))
    protocolAt.error('is HTTP/2 over TLS, but the url is not https', 'set protocol: h2c, or write https://')
  if (protocol === 'h2c' && isTls)
    protocolAt.error('is HTTP/2 without TLS, but the url is https', 'set protocol: h2, or write http://')
  if (upgradeAt.isSet && upgradeAt.isValid && upgrade.length > 0)
    upgradeAt.warning(
      'has no effect: the gateway opens no WebSockets over HTTP/2',
      'make the paths of the WebSockets an upstream of their own, with protocol: http1',
    )
}

function spreading(upstream: UpstreamConfig, at: At): void {
  const { targets } = upstream
  const urls = urlsOf(upstream, at)
  if (!areValid(at('targets'), ...urls.map(([, urlAt]) => urlAt))) return
  const seen = new Set<string>()
  for (const [target, urlAt] of urls) {
    const name = targetName(target)
    if (seen.has(name)) urlAt.error(`is in the list twice: ${name}`, 'give one of them a larger weight instead')
    seen.add(name)
    if (target.url.pathname !== targets[0]?.url.pathname)
      urlAt.error(
        `has another path than the first target: ${target.url.pathname}`,
        'make it an upstream of its own, with a path',
      )
  }
  if (targets.every(({ backup }) => backup))
    at('targets').error('has backups only', 'remove backup from at least one of them')
  if (at('eject').isValid && upstream.eject !== undefined && upstream.eject.atMostMs < upstream.eject.forMs)
    at('eject', 'at_most').error('is shorter than for')
  if (targets.length === 1 && upstream.resolve === undefined)
    // With one target, a health check still shows whether it works.
    for (const name of settingsOfTargets)
      if (at(name).isSet)
        at(name).warning('has no effect: there is one target', 'name all addresses of the application in targets')
}

function basePaths({ path, url, stripPath }: UpstreamConfig, at: At): void {
  const urlAt = at('targets').isSet ? at('targets', 0, 'url') : at('url')
  if (!areValid(at('targets'), urlAt, at('path'), at('strip_path')) || !urlAt.isSet) return
  if (stripPath && path === '/')
    at('strip_path').warning('has no effect: the path of this upstream is /', 'name the path to remove in path')
  const base = url.pathname.replace(/\/$/, '')
  if (!stripPath && path !== '/' && `${base}/`.endsWith(path))
    urlAt.warning(
      `ends in ${path}, which the path of a request has too: the upstream gets ${base}${path}`,
      'remove the path from url, or set strip_path: true',
    )
}
