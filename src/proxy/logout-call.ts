import { isWildcard } from '../config/hosts.ts'
import type { LogoutCall, UpstreamConfig } from '../config/model/upstream.ts'
import { isDomainOf } from '../core/addresses.ts'
import type { Claims } from '../core/claims.ts'
import { GatewayError } from '../core/errors.ts'
import { headersForLogoutCall } from '../gate/identity-headers.ts'
import { cookieField, type KeptCookie } from '../http/cookie-jar.ts'
import type { BearerTokens } from '../identity/claim-headers.ts'
import type { UpstreamRequest } from '../transport/transport.ts'
import { OwnExchange, ownRequest } from './own-exchange.ts'
import type { Upstream, Upstreams } from './upstream.ts'

/** For how many hosts of an upstream one person gets a call. Further hosts get none. */
const maxHosts = 8

/** The person whose session at the application ends. */
export interface LoggedOutPerson {
  /** The key of the session. */
  readonly session: string
  /** The cookies of the upstream that the session has kept. */
  readonly cookies: readonly KeptCookie[]
  readonly claims: Claims
  readonly tokens: BearerTokens
}

/**
 * Sends the logout call of an upstream with the cookies of a person: once for each host at which
 * the person has cookies for it. No redirect is followed, and the content of a response is dropped.
 * @param now in ms since the epoch
 * @returns the highest status of the responses; `no_cookie` when no cookie of the person belongs to
 * the address of the call, so that nothing was sent
 * @throws {GatewayError} when there is no response in time, or one with a status of 500 or more
 */
export async function callLogout(
  config: UpstreamConfig,
  call: LogoutCall,
  person: LoggedOutPerson,
  { upstreams, now }: { readonly upstreams: Upstreams; readonly now: number },
): Promise<number | 'no_cookie'> {
  const upstream = upstreams.of(config)
  const path = upstream.path(call.target.replace(/\?.*$/s, ''), '')
  const sent = person.cookies.filter(
    (cookie) => cookieField([cookie], { host: cookie.domain, path }, now) !== undefined,
  )
  const cookies = new Map<string, string>()
  for (const host of hostsOf(sent, config)) {
    const cookie = cookieField(sent, { host, path }, now)
    const isNew = cookie !== undefined && ![...cookies.values()].includes(cookie)
    if (isNew && cookies.size < maxHosts) cookies.set(host, cookie)
  }
  const statuses = await Promise.all(
    [...cookies].map(([host, cookie]) => {
      const request = requestOf(upstream, config, call, person, { host, cookie })
      return statusOf(new OwnExchange(upstream, request, person.session, call))
    }),
  )
  return statuses.length === 0 ? 'no_cookie' : Math.max(...statuses)
}

/** The hosts for which the person may have cookies: the public ones first. */
function hostsOf(cookies: readonly KeptCookie[], { externalUrl, hosts }: UpstreamConfig): ReadonlySet<string> {
  const ofUpstream = [externalUrl.hostname, ...hosts].filter((host) => !isWildcard(host))
  const others = cookies
    .filter(({ domain, hostOnly }) => hostOnly === true || !ofUpstream.some((host) => isDomainOf(domain, host)))
    .map(({ domain }) => domain)
  return new Set([...ofUpstream, ...others])
}

/** The request of the person at the public address of the upstream. It has no client address. */
function requestOf(
  upstream: Upstream,
  config: UpstreamConfig,
  { method, target }: LogoutCall,
  person: LoggedOutPerson,
  { host: hostname, cookie }: { readonly host: string; readonly cookie: string },
): UpstreamRequest {
  const { externalUrl } = config
  const proto = externalUrl.protocol === 'https:' ? 'https' : 'http'
  const host = externalUrl.port === '' ? hostname : `${hostname}:${externalUrl.port}`
  const facts = { forwarded: { clientAddress: '', proto, host } } as const
  const identity = headersForLogoutCall(config, { method, target }, person, facts)
  if ('missing' in identity)
    throw new GatewayError('ERR_CLAIM_ABSENT', `the required header ${identity.missing} has no value`)
  return ownRequest({ method, target, proto, host, cookie, identity, session: person.session }, upstream, config)
}

async function statusOf({ response }: OwnExchange): Promise<number> {
  const { status } = await response
  if (status < 500) return status
  throw new GatewayError('ERR_UPSTREAM_RESPONSE', `the response has the status ${status}`)
}
