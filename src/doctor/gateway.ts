import { isLoopback } from '../config/addresses.ts'
import type { GatewayConfig } from '../config/model.ts'
import { originsOf } from '../config/registration.ts'
import { addressesOf, ask, type HttpAnswer, isPrivate } from './connect.ts'
import { connectionAdvice } from './connection-advice.ts'
import { fault, type Finding, ok, warning } from './finding.ts'
import type { Environment } from './provider.ts'

const day = 86_400_000

/**
 * What there is to say of the way that browsers and the provider have to the gateway, and of its
 * cookie.
 */
export async function gatewayFindings(config: GatewayConfig, env: Environment, now: number): Promise<Finding[]> {
  const origins = originsOf(config)
  const [reach, ...reached] = await Promise.all([
    providerReachFindings(config),
    ...origins.map((origin) => originFindings(origin, config.reservedPrefix, now)),
  ])
  return [...reached.flat(), ...tlsFindings(config), ...cookieFindings(config), ...reach, ...environmentFindings(env)]
}

async function originFindings(origin: string, reservedPrefix: string, now: number): Promise<Finding[]> {
  const url = new URL(`${reservedPrefix}session`, origin)
  const answer = await ask(url, { method: 'GET', headers: { accept: 'application/json' } })
  return [wayFinding(origin, answer), ...('why' in answer ? [] : certificateFindings(answer, origin, now))]
}

function wayFinding(origin: string, answer: HttpAnswer): Finding {
  const id = 'gateway.external_url'
  const why = 'browsers go there, and come back there from the provider'
  if ('why' in answer)
    return warning(id, `${origin} does not answer from here: ${answer.why}`, {
      why: `${why}; it is no fault while the gateway does not run, or when this machine may not reach it`,
      todo: `start the gateway and run this again; if it does run: ${connectionAdvice(answer.why, 'external_url', 'the trust store of this machine')}`,
    })
  const challenge = [answer.headers['www-authenticate'] ?? []].flat().join()
  if (challenge.startsWith('Gatehouse ')) return ok(id, `${origin} leads to a Gatehouse`)
  return fault(id, `${origin} leads to something else, which answers with ${answer.status}`, {
    why,
    todo: 'see that the proxy before the gateway passes all paths of this host on to it, and that DNS names that proxy',
  })
}

function certificateFindings(answer: Exclude<HttpAnswer, { why: string }>, origin: string, now: number): Finding[] {
  const { certificateEndsAt } = answer
  if (certificateEndsAt === undefined || certificateEndsAt.getTime() - now > 14 * day) return []
  return [
    warning(
      'gateway.certificate',
      `the certificate of ${origin} ends on ${certificateEndsAt.toISOString().slice(0, 10)}`,
      {
        why: 'after that no browser shows a page of it',
        todo: 'renew it, and see why it was not renewed by itself',
      },
    ),
  ]
}

function tlsFindings({ externalUrl, listen, trustedProxies }: GatewayConfig): Finding[] {
  const id = 'gateway.https'
  if (externalUrl.protocol === 'http:')
    return isLoopback(externalUrl.hostname)
      ? [
          warning(id, 'external_url is http, on this machine alone', {
            why: 'that is for trying out: the cookie has neither Secure nor __Host-, so that other programs of this host can read and set it',
            todo: 'write https:// before others use it',
          }),
        ]
      : [
          fault(id, 'external_url is http', {
            why: 'whoever is on the way can read the session cookie, and another host below the same domain can set one: it has neither Secure nor __Host-',
            todo: 'serve browsers over https, with listen.tls or in a proxy before the gateway',
          }),
        ]
  if (listen.tls !== undefined) return [ok(id, 'external_url is https, and TLS ends in the gateway')]
  if (trustedProxies.length > 0) return [ok(id, 'external_url is https, and TLS ends in a proxy of trusted_proxies')]
  return [
    warning(id, 'external_url is https, but neither listen.tls nor trusted_proxies is set', {
      why: 'TLS has to end somewhere: the proxy where it does is not believed, so that applications are told http, and the proxy’s address instead of the client’s',
      todo: 'name the addresses of that proxy in trusted_proxies',
    }),
  ]
}

/** Of a cookie by http it is said that there is no https. */
function cookieFindings(config: GatewayConfig): Finding[] {
  const { name, secure, sameSite } = config.session.cookie
  const hosts = originsOf(config).map((origin) => new URL(origin).hostname)
  if (!secure) return []
  // Without Domain (RFC 6265bis §5.7) it makes no difference which part of the name is a public
  // suffix, so there is no list of those.
  const what = `the cookie ${name} has no Domain attribute: it goes to ${hosts.join(', ')} alone, by https alone (SameSite=${sameSite}); no other host below the same domain or public suffix can read or set it`
  return [ok('gateway.cookie', what)]
}

/** A provider on the internet cannot send logout tokens to an address that is not there. */
async function providerReachFindings({ externalUrl, provider, reservedPrefix }: GatewayConfig): Promise<Finding[]> {
  const [ours, theirs] = await Promise.all([
    addressesOf(externalUrl.hostname),
    addressesOf(new URL(provider.issuer).hostname),
  ])
  const isFar = theirs.length > 0 && theirs.every((address) => !isPrivate(address))
  if (ours.length === 0 || theirs.length === 0 || !isFar || ours.some((address) => !isPrivate(address))) return []
  return [
    warning(
      'gateway.backchannel_way',
      `${externalUrl.hostname} has private addresses only (${ours.join(', ')}), and the provider is on the internet`,
      {
        why: `the provider has to reach ${externalUrl.origin}${reservedPrefix}backchannel-logout from its own servers, or a logout there never arrives here; it may resolve the name otherwise, which cannot be seen from here`,
        todo: 'publish that one path, or set session.poll_userinfo, such as 60s',
      },
    ),
  ]
}

function environmentFindings(env: Environment): Finding[] {
  if (env['NODE_TLS_REJECT_UNAUTHORIZED'] !== '0') return []
  return [
    fault('gateway.environment', 'NODE_TLS_REJECT_UNAUTHORIZED=0 is set', {
      why: 'no certificate is checked then: whoever is on the way can be the provider, and let anybody in',
      todo: 'remove it; name an authority of your own with ca_file',
    }),
  ]
}
