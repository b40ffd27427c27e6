import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import {
  connectionAdvice,
  type Environment,
  type GatewayConfig,
  isLoopback,
  originsOf,
  type ProviderConfig,
} from '../../src/entries/doctor.ts'
import { addressesOf, type HttpOutcome, isPrivate, request } from './connect.ts'
import { fault, type Finding, found, ok, warning } from './finding.ts'

const day = 86_400_000

/** The findings about how browsers and the provider reach the gateway, and about its cookie. */
export async function gatewayFindings(config: GatewayConfig, env: Environment, now: number): Promise<Finding[]> {
  // One host that a wildcard matches shows whether its name and its certificate exist.
  const origins = originsOf(config).map((origin) => origin.replace('//*.', '//gatehouse-doctor.'))
  const [reach, reached] = await Promise.all([
    Promise.all(config.providers.map((provider) => providerReachFinding(provider, config))),
    Promise.all(origins.map((origin) => originFindings(origin, config.reservedPrefix, now))),
  ])
  const own = [tlsFinding(config), cookieFinding(config), deviceFinding(config)]
  const files = certificateFileFindings(config, now)
  return found(...reached.flat(), ...files, ...own, ...reach, environmentFinding(env))
}

async function originFindings(origin: string, reservedPrefix: string, now: number): Promise<(Finding | undefined)[]> {
  const url = new URL(`${reservedPrefix}session`, origin)
  const outcome = await request(url, { method: 'GET', headers: { accept: 'application/json' } })
  return [externalUrlFinding(origin, outcome), certificateFinding(outcome, origin, now)]
}

function externalUrlFinding(origin: string, outcome: HttpOutcome): Finding {
  const id = 'gateway.external_url'
  const why = 'browsers use this URL, and the provider redirects them to it'
  if ('why' in outcome)
    return warning(id, `${origin} does not respond to this machine: ${outcome.why}`, {
      why: `${why}; this is expected while the gateway does not run, or when this machine has no access to it`,
      todo: `start the gateway and run doctor again; if it runs: ${connectionAdvice(outcome, 'external_url', 'the trust store of this machine')}`,
    })
  const challenge = [outcome.headers['www-authenticate'] ?? []].flat().join()
  if (
    challenge.startsWith('Gatehouse ') &&
    origin.startsWith('https:') &&
    outcome.headers['gatehouse-scheme'] === 'http'
  )
    return fault(id, `${origin} leads to a Gatehouse, which takes the request for one over http`, {
      why: 'the proxy in front of it is not in trusted_proxies, or does not send X-Forwarded-Proto: applications get the scheme http, and the access log and limits the address of the proxy instead of that of the client',
      todo: 'add the address of that proxy to trusted_proxies: proxy.not_trusted in the log of the gateway names it; without such a line, let the proxy send X-Forwarded-Proto: https',
    })
  if (challenge.startsWith('Gatehouse ')) return ok(id, `${origin} leads to a Gatehouse`)
  return fault(id, `${origin} leads to another server, which responds with ${outcome.status}`, {
    why,
    todo: 'check that the proxy in front of the gateway forwards all paths of this host to it, and that DNS names that proxy',
  })
}

function certificateFinding(outcome: HttpOutcome, origin: string, now: number): Finding | undefined {
  const { certificateEndsAt } = 'why' in outcome ? {} : outcome
  return certificateEndsAt && endingFinding(`the certificate of ${origin}`, certificateEndsAt, now)
}

/** The files of `listen.tls`, of which a host of `external_url` shows one only. */
function certificateFileFindings({ listen: { tls } }: GatewayConfig, now: number): (Finding | undefined)[] {
  const files = tls === undefined ? [] : [tls, ...tls.certificates]
  return files.map(({ certFile }) =>
    endingFinding(`the certificate in ${certFile}`, new Date(new X509Certificate(readFileSync(certFile)).validTo), now),
  )
}

function endingFinding(what: string, endsAt: Date, now: number): Finding | undefined {
  if (endsAt.getTime() - now > 14 * day) return undefined
  return warning('gateway.certificate', `${what} ends on ${endsAt.toISOString().slice(0, 10)}`, {
    why: 'after that, browsers show an error instead of the page',
    todo: 'renew it, and check why it was not renewed automatically',
  })
}

function tlsFinding({ externalUrl, listen, trustedProxies }: GatewayConfig): Finding {
  const id = 'gateway.https'
  if (externalUrl.protocol === 'http:')
    return isLoopback(externalUrl.hostname)
      ? warning(id, 'external_url is http, on this machine only', {
          why: 'this is for trial use: the cookie has neither Secure nor __Host-, so other programs on this host can read and set it',
          todo: 'use https:// before other people use it',
        })
      : fault(id, 'external_url is http', {
          why: 'the session cookie has neither Secure nor __Host-: anyone on the network path can read it, and another host below the same domain can set it',
          todo: 'serve https, with listen.tls or with a proxy in front of the gateway',
        })
  if (listen.tls !== undefined) return ok(id, 'external_url is https, and TLS ends in the gateway')
  if (trustedProxies.length > 0) return ok(id, 'external_url is https, and TLS ends in a proxy of trusted_proxies')
  return warning(id, 'external_url is https, but neither listen.tls nor trusted_proxies is set', {
    why: 'the gateway does not trust the proxy that terminates TLS, so applications get the scheme http, and the address of the proxy instead of the client’s',
    todo: 'add the addresses of the proxy that terminates TLS to trusted_proxies; without such a proxy, set listen.tls',
  })
}

/** Without https, the finding `gateway.https` is about the cookie too. */
function cookieFinding(config: GatewayConfig): Finding | undefined {
  const { name, secure, sameSite, domain } = config.session.cookie
  const hosts = originsOf(config).map((origin) => new URL(origin).hostname)
  if (!secure) return undefined
  if (domain !== undefined)
    return warning('gateway.cookie', `the cookie ${name} is sent to all hosts of ${domain} (session.cookie.domain)`, {
      why: `a host of ${domain} that is not behind the gateway can read it, and act in the name of its visitors; doctor cannot see which hosts there are, and whether ${domain} is a public suffix, for which browsers ignore cookies`,
      todo: `check that you operate or trust every host of ${domain}`,
    })
  // A cookie without Domain is for one host, so public suffixes do not matter (RFC 6265bis §5.7).
  const what = `the cookie ${name} has no Domain attribute: it is sent to ${hosts.join(', ')} only, over https only (SameSite=${sameSite}); no other host below the same domain or public suffix can read or set it`
  return ok('gateway.cookie', what)
}

/** Without https, browsers bind no sessions, and the finding `gateway.https` says more. */
function deviceFinding({ session, upstreams }: GatewayConfig): Finding | undefined {
  const id = 'gateway.device_binding'
  const { isOn, cookieLifetimeMs } = session.deviceBinding
  if (!session.cookie.secure) return undefined
  if (!isOn)
    return warning(id, 'no session is bound to its device', {
      why: 'a copied session cookie works on every machine until the session ends',
      todo:
        session.cookie.domain === undefined
          ? 'set session.device_binding to when_supported'
          : 'browsers bind a session to one host, so this is not possible with session.cookie.domain; a short idle_timeout and absolute_timeout limit the risk',
    })
  const isRequired = upstreams.some(
    ({ needsDeviceBinding, rules }) => needsDeviceBinding || rules.some((rule) => rule.needsDeviceBinding),
  )
  const others = isRequired
    ? 'where one is required, other sessions have no access'
    : 'sessions of other browsers are not protected'
  const limits = 'it stops neither malware that stays on the device nor a thief of the provider’s cookies'
  return ok(
    id,
    `browsers that can bind a session to their device do: elsewhere its cookies are worthless ${cookieLifetimeMs / 60_000} minutes after they were copied; ${others}; ${limits}`,
  )
}

/** A provider on the internet cannot send Logout Tokens to a private address. */
async function providerReachFinding(
  { issuer, prefix }: ProviderConfig,
  { externalUrl }: GatewayConfig,
): Promise<Finding | undefined> {
  const [ours, theirs] = await Promise.all([addressesOf(externalUrl.hostname), addressesOf(new URL(issuer).hostname)])
  const isFar = theirs.length > 0 && theirs.every((address) => !isPrivate(address))
  if (ours.length === 0 || theirs.length === 0 || !isFar || ours.some((address) => !isPrivate(address)))
    return undefined
  return warning(
    'gateway.backchannel_way',
    `${externalUrl.hostname} has private addresses only (${ours.join(', ')}), and the provider is on the internet`,
    {
      why: `the servers of the provider have to reach ${externalUrl.origin}${prefix}backchannel-logout, otherwise logouts at the provider never arrive; the provider may resolve the name to other addresses, which doctor cannot see`,
      todo: 'publish that path, or set session.poll_userinfo, for example to 60s',
    },
  )
}

function environmentFinding(env: Environment): Finding | undefined {
  if (env['NODE_TLS_REJECT_UNAUTHORIZED'] !== '0') return undefined
  return fault('gateway.environment', 'NODE_TLS_REJECT_UNAUTHORIZED=0 is set', {
    why: 'certificates are not checked: anyone on the network path can pose as the provider, and sign in as anybody',
    todo: 'remove it; use ca_file for an authority of your own',
  })
}
