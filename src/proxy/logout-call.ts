import { isWildcard } from '../config/hosts.ts'
import type { LogoutCall, UpstreamConfig } from '../config/model/upstream.ts'
import { isDomainOf } from '../core/addresses.ts'
import type { Claims } from '../core/claims.ts'
import { GatewayError } from '../core/errors.ts'
import { randomId } from '../core/random.ts'
import { headersForLogoutCall } from '../gate/identity-headers.ts'
import { cookieField, type KeptCookie } from '../http/cookie-jar.ts'
import type { BearerTokens } from '../identity/claim-headers.ts'
import type { SwitchedConnection, ExchangeControl, ResponseHandler, UpstreamRequest } from '../transport/transport.ts'
import type { GiveBack } from '../wire/read-buffers.ts'
import type { ConnectionSlot, SlotHolder } from './connection-slots.ts'
import { loopField } from './passed-fields.ts'
import type { Upstream, Upstreams } from './upstream.ts'

/** How much content of a response is read, in bytes, so that its connection can be used again. */
const maxContentBytes = 4096

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
      return new LogoutExchange(upstream, request, person.session, call.timeoutMs).status
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
  const { externalUrl, hostHeader, url } = config
  const proto = externalUrl.protocol === 'https:' ? 'https' : 'http'
  const host = externalUrl.port === '' ? hostname : `${hostname}:${externalUrl.port}`
  const facts = { forwarded: { clientAddress: '', proto, host } } as const
  const identity = headersForLogoutCall(config, { method, target }, person, facts)
  if ('missing' in identity)
    throw new GatewayError('ERR_CLAIM_ABSENT', `the required header ${identity.missing} has no value`)
  const fields = [
    ...['Host', hostHeader === 'client' ? host : url.host],
    ...['Cookie', cookie, 'Accept', '*/*', 'User-Agent', 'Gatehouse'],
    // Many applications reject a POST that does not come from one of their pages.
    ...(method === 'POST' ? ['Origin', `${proto}://${host}`] : []),
    ...['X-Forwarded-Proto', proto, 'X-Forwarded-Host', host],
    ...['X-Request-Id', randomId(), loopField, upstream.loopMarker],
  ]
  const [, path = '', query = ''] = /^([^?]*)(.*)$/s.exec(target) ?? []
  return {
    method,
    path: upstream.path(path, query),
    headers: upstream.addressesAt(hostname).fields.request(fields, host),
    identity,
    body: undefined,
    upgrade: undefined,
    session: person.session,
  }
}

/**
 * One logout call. It shares the connections of the upstream with the requests of people. When its
 * time is over, its connection is closed.
 */
class LogoutExchange implements ResponseHandler, SlotHolder {
  /** The status of the response, below 500. Rejects with a `GatewayError`. */
  readonly status: Promise<number>
  readonly #upstream: Upstream
  readonly #request: UpstreamRequest
  readonly #timer: NodeJS.Timeout
  #slot: ConnectionSlot | undefined
  #control: ExchangeControl | undefined
  #isOver = false
  #contentBytes = 0
  #resolve: (status: number) => void = () => {}
  #reject: (error: GatewayError) => void = () => {}

  constructor(upstream: Upstream, request: UpstreamRequest, client: string, timeoutMs: number) {
    this.#upstream = upstream
    this.#request = request
    this.status = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    this.#timer = setTimeout(() => this.#end(late), timeoutMs)
    if (upstream.slots.isFullFor(client)) this.#end(busy)
    else this.#slot = upstream.slots.acquire(client, this)
  }

  onSlot(slot: ConnectionSlot): void {
    this.#slot = slot
    this.#upstream.transport.dispatch(this.#request, this)
  }

  onDone(): void {
    this.#slot?.release()
  }

  onSend(control: ExchangeControl): boolean {
    if (this.#isOver) return false
    this.#control = control
    return true
  }

  onResponse(status: number): void {
    if (status < 200) return
    if (status < 500) this.#resolve(status)
    else this.#reject(new GatewayError('ERR_UPSTREAM_RESPONSE', `the response has the status ${status}`))
  }

  onShortPart({ length }: Buffer): void {
    this.#drop(length)
  }

  onContent(part: Buffer, giveBack: GiveBack): void {
    giveBack()
    this.#drop(part.length)
  }

  onEnd(): void {
    this.#control = undefined
    this.#end(over)
  }

  onSwitch({ socket }: SwitchedConnection): void {
    this.#control = undefined
    socket.destroy()
    this.#end(new GatewayError('ERR_UPSTREAM_RESPONSE', 'the upstream switched to another protocol'))
  }

  onError(error: GatewayError): void {
    this.#control = undefined
    this.#end(error)
  }

  #drop(bytes: number): void {
    this.#contentBytes += bytes
    if (this.#contentBytes > maxContentBytes) this.#end(over)
  }

  /** Ends the exchange. The error counts only if no response has begun. */
  #end(error: GatewayError): void {
    if (this.#isOver) return
    this.#isOver = true
    clearTimeout(this.#timer)
    this.#reject(error)
    this.#control?.abort(error)
    if (this.#slot?.isWaiting === true) this.#slot.release()
  }
}

const over = new GatewayError('ERR_INTERNAL', 'the exchange is over')
const late = new GatewayError('ERR_UPSTREAM_TIMEOUT', 'no response within the timeout of the call')
const busy = new GatewayError('ERR_UPSTREAM_BUSY', 'too many requests wait for a connection')
