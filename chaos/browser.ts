// A browser of a person: cookies, redirects through replicas that a load balancer chooses, sign-in
// and sign-out, and a history of all of it.
import { createHash } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { Agent, type Dispatcher, request } from 'undici'
import { errorCodes, errorRow } from '../src/core/error-codes.ts'
import { sha256 } from '../src/core/random.ts'
import { cookieField, keepCookies, type KeptCookie, readSetCookie } from '../src/http/cookie-jar.ts'
import { navigation } from '../test/support/browser.ts'
import { deviceKey, proofOf } from '../test/support/device-browser.ts'
import type { Random } from '../test/support/random.ts'
import { isWhole } from './application.ts'
import { openEventStream, openWebSocket } from './channel.ts'
import { type Ending, type HistoryEvent, type Identity, now, type Proof, type Request, type Stream } from './history.ts'

/** The parts of the world that a browser sees. */
export interface Site {
  /** The `external_url`. No process listens there: the browser takes an address of a replica. */
  readonly url: string
  readonly replicas: readonly { readonly name: string; readonly url: string }[]
  readonly record: (event: HistoryEvent) => void
  readonly issuedFor: (code: string) => Identity | undefined
  /** A new name for a request, a session or a form. */
  readonly id: (prefix: string) => string
}

export interface BrowserParts {
  readonly name: string
  readonly person: string
  readonly site: Site
  readonly random: Random
  /** The address of the person's machine. */
  readonly localAddress: string
  /** Whether it has Device Bound Session Credentials. */
  readonly hasKeys?: boolean
}

/** What the gateway asks for, so that the session is bound to a key. */
interface Registration {
  readonly path: string
  readonly challenge: string
}

/** How a browser proves its key again. */
interface Renewal {
  readonly session: string
  readonly identifier: string
  readonly path: string
}

/** What a browser knows of one request. */
interface Visit {
  readonly url: string
  readonly begin: number
  readonly end: number
  /** Empty when the request went to the provider. */
  readonly replica: string
  readonly session?: string
  readonly unproved?: true
  readonly status?: number
  readonly code?: string
  readonly error?: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: string
}

interface Sending {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
  /** The sign-in to which a new session cookie belongs. */
  readonly signIn?: string
  /** A session cookie that is sent in place of the present cookies, and its session. */
  readonly copy?: readonly [value: string, session: string]
  /** Without the cookie of a proof. */
  readonly isKeyless?: boolean
  /** A part of a proof of the key. */
  readonly isProof?: true
  /** The only replica that gets it. */
  readonly at?: Site['replicas'][number]
  /** Its name in the logs of the gateway. */
  readonly id?: string
}

/** How long people wait for a response, in ms. */
export const patienceMs = 20_000
const script = { 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty', 'sec-fetch-site': 'same-origin' }
const form = { 'content-type': 'application/x-www-form-urlencoded' }
const endpoints = '/.gatehouse/'

export class Browser {
  readonly #parts: BrowserParts
  readonly #site: Site
  readonly #agent: Agent
  /** The sign-in that each session cookie comes from. */
  readonly #sessions = new Map<string, string>()
  /** The session at the provider of each sign-in. */
  readonly #sids = new Map<string, string>()
  /** It does not leave the browser. */
  readonly #key = deviceKey()
  /** By session. */
  readonly #registrations = new Map<string, Registration>()
  /** The sessions that may be bound to the key. */
  readonly #bound = new Set<string>()
  /** The cookie of the last proof for each session. */
  readonly #proofs = new Map<string, KeptCookie>()
  #renewal: Renewal | undefined
  #renewing: Promise<void> | undefined
  /** Closes each open stream and WebSocket. */
  readonly #channels = new Set<() => void>()
  #kept: readonly KeptCookie[] = []

  constructor(parts: BrowserParts) {
    this.#parts = parts
    this.#site = parts.site
    this.#agent = new Agent({
      // No certificate is for the address of a replica.
      ...{ localAddress: parts.localAddress, connect: { timeout: 5_000, rejectUnauthorized: false }, allowH2: true },
      ...{ headersTimeout: patienceMs, bodyTimeout: patienceMs },
    })
  }

  /** The session whose cookie it has. */
  get session(): string | undefined {
    const cookie = this.#kept.find(({ name }) => name === this.#cookieName)
    return cookie && this.#sessions.get(cookie.value)
  }

  get hasKeys(): boolean {
    return this.#parts.hasKeys === true
  }

  get #cookieName(): string {
    return this.#site.url.startsWith('https:') ? '__Host-gatehouse' : 'gatehouse'
  }

  closeChannels(): void {
    for (const leave of this.#channels) leave()
  }

  close(): Promise<void> {
    return this.#agent.destroy()
  }

  /**
   * Sends one request. One to the site goes to any replica and, when that refuses the connection of
   * a GET, to the others in turn.
   */
  async #send(url: string, sending: Sending = {}): Promise<Visit> {
    if (!url.startsWith(this.#site.url)) return this.#sendTo('', url, url, sending)
    if (sending.copy === undefined && sending.isProof !== true) await this.#renewProof()
    const replicas = sending.at === undefined ? this.#site.replicas : [sending.at]
    const first = this.#parts.random.below(replicas.length)
    for (let turn = 0; ; turn += 1) {
      const { name, url: at } = replicas[(first + turn) % replicas.length] as Site['replicas'][number]
      const visit = await this.#sendTo(name, url, at + url.slice(this.#site.url.length), sending)
      const mayRepeat = visit.error === 'ECONNREFUSED' && sending.method === undefined
      if (!mayRepeat || turn === replicas.length - 1) return visit
    }
  }

  async #sendTo(replica: string, url: string, at: string, sending: Sending): Promise<Visit> {
    const { method = 'GET', headers = {}, body = null, signIn, copy, isKeyless = false, id = signIn } = sending
    const session = copy?.[1] ?? this.session
    const proof = isKeyless || session === undefined ? undefined : this.#proofOf(session, copy !== undefined)
    const isUnproved = session !== undefined && this.#bound.has(session) && proof === undefined
    const base = {
      ...{ url, begin: now(), replica, ...(session !== undefined && { session }) },
      ...(isUnproved && { unproved: true as const }),
    }
    try {
      const response = await request(at, {
        ...{ method: method as Dispatcher.HttpMethod, dispatcher: this.#agent, body, reset: copy !== undefined },
        headers: {
          ...(id !== undefined && { 'x-request-id': id }),
          ...navigation,
          ...this.#fields(url),
          ...(copy && { cookie: `${this.#cookieName}=${copy[0]}${proof ? `; ${proof.name}=${proof.value}` : ''}` }),
          ...headers,
        },
      })
      if (copy === undefined) this.#keep(url, response.headers['set-cookie'], signIn)
      if (signIn !== undefined) this.#noteRegistration(signIn, response.headers['secure-session-registration'])
      const text = await response.body.text()
      const { statusCode: status } = response
      const code = replica === '' ? undefined : codeOf(url, status, response.headers, text)
      return { ...base, end: now(), status, headers: response.headers, body: text, ...(code !== undefined && { code }) }
    } catch (error) {
      return { ...base, end: now(), error: errorOf(error), headers: {}, body: '' }
    }
  }

  #noteRegistration(session: string, field: string | string[] | undefined): void {
    const [, path = '', challenge = ''] = /;path="([^"]+)";challenge="([^"]+)"$/.exec(String(field ?? '')) ?? []
    if (path !== '' && this.hasKeys) this.#registrations.set(session, { path, challenge })
  }

  /** The cookie of a proof for a session, unless it has expired, or the browser has another one. */
  #proofOf(session: string, isCopy = false): KeptCookie | undefined {
    const proof = this.#proofs.get(session)
    if (proof === undefined || (proof.expires_at ?? 0) <= Date.now()) return undefined
    return isCopy || this.#kept.some(({ value }) => value === proof.value) ? proof : undefined
  }

  #noteProof(session: string): void {
    const proof = this.#kept.find(({ name }) => name === `${this.#cookieName}-bound`)
    if (proof !== undefined) this.#proofs.set(session, proof)
  }

  /** Binds a new session to the key. Browsers do not try it twice. */
  async #register(session: string): Promise<void> {
    const { path, challenge } = this.#registrations.get(session) ?? {}
    if (path === undefined || challenge === undefined) return
    this.#bound.add(session)
    const id = this.#site.id('p')
    const visit = await this.#prove(path, { 'secure-session-response': proofOf(this.#key, { jti: challenge }) }, id)
    if (visit.status === 200) {
      const { session_identifier = '', refresh_url = '' } = JSON.parse(visit.body) as Record<string, string>
      this.#renewal = { session, identifier: session_identifier, path: refresh_url }
      this.#noteProof(session)
    } else if (visit.status !== undefined) this.#bound.delete(session)
    this.#recordProof(visit, { id, purpose: 'registration', session, begin: visit.begin })
  }

  /** Proves the key again, when the cookie of the last proof has expired. */
  async #renewProof(): Promise<void> {
    const { session } = this
    const renewal = this.#renewal
    if (session === undefined || renewal?.session !== session || this.#proofOf(session) !== undefined) return
    this.#renewing ??= this.#renew(renewal).finally(() => (this.#renewing = undefined))
    await this.#renewing
  }

  async #renew({ session, identifier, path }: Renewal): Promise<void> {
    const id = this.#site.id('p')
    const fields = { 'sec-secure-session-id': identifier }
    const asked = await this.#prove(path, fields, id)
    const [, jti] = /^"([^"]+)";id="/.exec(String(asked.headers['secure-session-challenge'] ?? '')) ?? []
    const proof = jti && proofOf(this.#key, { jti }, { jwk: undefined })
    const visit = proof ? await this.#prove(path, { ...fields, 'secure-session-response': proof }, id) : asked
    const isOver = visit.status === 200 && visit.body.includes('"continue":false')
    if (isOver) this.#renewal = undefined
    if (visit.status === 200 && !isOver) this.#noteProof(session)
    const refused = isOver ? { code: 'ERR_UNAUTHENTICATED' } : {}
    this.#recordProof({ ...visit, ...refused }, { id, purpose: 'renewal', session, begin: asked.begin })
  }

  /** A request that a browser makes by itself for its key. */
  #prove(path: string, headers: Readonly<Record<string, string>>, id: string): Promise<Visit> {
    const own = { ...script, accept: '*/*', 'sec-fetch-mode': 'no-cors' }
    return this.#send(`${this.#site.url}${path}`, {
      method: 'POST',
      isProof: true,
      id,
      headers: { ...own, ...headers },
    })
  }

  #recordProof(visit: Visit, about: Pick<Proof, 'id' | 'purpose' | 'session' | 'begin'>): void {
    const { person, name: browser } = this.#parts
    const proved = visit.status === 200 && visit.code === undefined
    this.#site.record({ type: 'proof', ...outcomeOf(visit), ...about, person, browser, proved })
  }

  /** Sometimes identity headers, with which the person pretends to be somebody else. */
  #forged(): { readonly 'x-sub'?: string; readonly 'x-sid'?: string } {
    return this.#parts.random.chance(0.2) ? { 'x-sub': 'forged', 'x-sid': 'forged' } : {}
  }

  /** The fields that depend on the URL. */
  #fields(url: string): { readonly host: string; readonly cookie?: string } {
    const { host, hostname, pathname: path } = new URL(url)
    const cookie = cookieField(this.#kept, { host: hostname, path }, Date.now())
    return { host, ...(cookie !== undefined && { cookie }) }
  }

  #keep(url: string, received: string | string[] | undefined, signIn: string | undefined): void {
    const { hostname: host, pathname: path } = new URL(url)
    const cookies = [received ?? []].flat().flatMap((text) => readSetCookie(text, { host, path }, Date.now()) ?? [])
    if (cookies.length === 0) return
    this.#kept = keepCookies(this.#kept, cookies, Date.now())
    const cookie = this.#kept.find(({ name }) => name === this.#cookieName)
    if (cookie === undefined || this.#sessions.has(cookie.value)) return
    if (signIn === undefined) throw new Error(`a session cookie without a sign-in from ${url}`)
    this.#sessions.set(cookie.value, signIn)
  }

  /** Uses an application once. */
  async use(
    application: string,
    kind: 'page' | 'script' | 'download' | 'upload' | 'form',
    { copy, isKeyless, at }: Pick<Sending, 'copy' | 'isKeyless' | 'at'> = {},
  ): Promise<Visit> {
    const id = this.#site.id('r')
    const submission = kind === 'form' ? this.#site.id('f') : undefined
    const content = this.#contentOf(kind, id)
    const digest = content && createHash('sha256').update(content).digest('hex')
    // Of this application, the policy decision point denies one path.
    const denied = application === 'files' && kind === 'page' && this.#parts.random.chance(0.1)
    const visit = await this.#send(`${this.#site.url}/${application}/${denied ? 'denied' : kind}`, {
      ...(content && { method: kind === 'form' ? 'POST' : 'PUT', body: content }),
      id,
      ...(copy && { copy, isKeyless: isKeyless ?? false }),
      ...(at && { at }),
      headers: {
        ...{
          'x-chaos-request': id,
          ...this.#forged(),
          ...(['script', 'download', 'upload'].includes(kind) && { accept: 'application/json', ...script }),
        },
        ...(submission !== undefined && { 'x-form': submission, ...form, ...this.#fromPage }),
      },
    })
    const base = { application, ...(submission !== undefined && { form: submission }), ...(digest && { digest }) }
    this.#record({
      ...base,
      ...outcomeOf(visit),
      ...echoIn(visit),
      id,
      kind,
      ...(copy && isKeyless !== true && { copy: true }),
      ...(denied && { denied }),
    })
    const refresh = /url=(.*)$/.exec(String(visit.headers['refresh'] ?? ''))?.[1]
    if (submission !== undefined && refresh !== undefined)
      await this.#sendKept(new URL(refresh, visit.url).href, base, visit.begin)
    return visit
  }

  /** The fields of a form that a page of this site sends. */
  get #fromPage() {
    return { 'sec-fetch-site': 'same-origin', origin: this.#site.url }
  }

  /**
   * Signs in after a form was kept, and has it sent, sometimes with two clicks at once. Tries again
   * while the page offers it. A form that is gone is as one that the store did not keep.
   */
  async #sendKept(url: string, base: Pick<Request, 'application' | 'form' | 'digest'>, begin: number): Promise<void> {
    const leadsTo = await this.signIn({ from: url })
    for (let tries = 0; leadsTo !== undefined && tries < 3; tries += 1) {
      const page = await this.#send(leadsTo, { headers: { 'sec-fetch-site': 'same-origin' } })
      const [, action = '', name, value] =
        /action="([^"]*)" enctype="text\/plain">.*?name="([^"]*)" value="([^"]*)"/.exec(page.body) ?? []
      if (page.status === 200 && name === undefined) {
        const lost = { id: this.#site.id('r'), kind: 'form', begin, code: 'ERR_STORE_UNAVAILABLE' } as const
        if (tries === 0 && leadsTo.includes('/kept-request')) this.#record({ ...base, ...outcomeOf(page), ...lost })
        return
      }
      const to = new URL(action.replaceAll('&amp;', '&'), page.url).href
      const clicks = name === undefined ? 0 : this.#parts.random.chance(0.5) ? 2 : 1
      const isSent = await Promise.all(
        Array.from({ length: clicks }, () => this.#click(to, `${name}=${value}\r\n`, base)),
      )
      if (isSent.includes(true)) return
      await pause(500)
    }
  }

  /** Has a kept form sent. Without a response of the application, only a refusal is recorded. */
  async #click(url: string, body: string, base: Pick<Request, 'application' | 'form' | 'digest'>): Promise<boolean> {
    const id = this.#site.id('r')
    const { form: submission = '' } = base
    const visit = await this.#send(url, {
      ...{ method: 'POST', body, id },
      headers: { 'x-chaos-request': id, 'x-form': submission, 'content-type': 'text/plain', ...this.#fromPage },
    })
    const echo = echoIn(visit)
    const isRedirect = visit.status !== undefined && visit.status < 400
    if (echo !== undefined || !isRedirect)
      this.#record({ ...base, ...outcomeOf(visit), ...echo, id, kind: 'form', kept: true })
    return echo !== undefined
  }

  /** Opens a page with an earlier session cookie, as somebody who has a copy of it does. */
  async useCopy(application: string): Promise<void> {
    const copies = [...this.#sessions].filter(([, session]) => session !== this.session).slice(-3)
    if (copies.length > 0) await this.use(application, 'page', { copy: this.#parts.random.pick(copies) })
  }

  /** Opens a page with a copy of its present session cookie, as somebody does who has no key. */
  async useWithoutKey(application: string): Promise<void> {
    const copy = [...this.#sessions].find(([, session]) => session === this.session)
    if (copy !== undefined && this.#bound.has(copy[1])) await this.use(application, 'page', { copy, isKeyless: true })
  }

  /**
   * Tries a copy of each session of the person, or of one session at the provider, at each replica.
   */
  async useCopies(application: string, { sid, sub }: Pick<Ending, 'sid' | 'sub'>): Promise<void> {
    const isMeant = (session: string) =>
      sid === undefined ? sub === this.#parts.person : this.#sids.get(session) === sid
    const copies = [...this.#sessions].filter(([, session]) => isMeant(session)).slice(-2)
    const tries = copies.flatMap((copy) => this.#site.replicas.map((at) => ({ copy, at })))
    await Promise.all(tries.map((one) => this.use(application, 'page', one)))
  }

  #contentOf(kind: Request['kind'], id: string): Buffer | undefined {
    const { random } = this.#parts
    // One without content could be repeated by a gateway that does not know what it does.
    if (kind === 'form') return Buffer.from(random.chance(0.5) ? `name=${id}` : '')
    return kind === 'upload' ? Buffer.alloc(random.between(1, 200_000), random.below(256)) : undefined
  }

  #record(visit: Omit<Request, 'type' | 'person' | 'browser'>): void {
    const { person, name: browser } = this.#parts
    this.#site.record({ type: 'request', person, browser, ...visit })
  }

  /**
   * Signs the person in, unless the browser has a session. `again`: also then, as the link of the
   * notice does. `from`: where the sign-in of a kept form begins. Returns where it leads;
   * `undefined`: the browser has no session.
   */
  async signIn({ again = false, from }: { again?: boolean; from?: string } = {}): Promise<string | undefined> {
    const { name: browser, person } = this.#parts
    const id = this.#site.id('s')
    const callback = `${this.#site.url}${endpoints}callback`
    const return_to = again ? `${endpoints}signed-in` : '/orders/page'
    const start = from ?? `${this.#site.url}${endpoints}sign-in?return_to=${return_to}`
    const isLink = again || from !== undefined
    let visit = await this.#send(start, { headers: { 'sec-fetch-site': isLink ? 'same-origin' : 'none' } })
    let { begin, replica } = visit
    for (let hops = 0; hops < 12 && !visit.url.startsWith(callback); hops += 1) {
      const { location } = visit.headers
      const next = typeof location === 'string' ? new URL(location, visit.url).href : undefined
      // Another tab has signed in meanwhile.
      if (next !== undefined && /^\/(orders\/|\.gatehouse\/kept-request)/.test(new URL(next).pathname)) return next
      if (next !== undefined) visit = await this.#send(next, { signIn: id })
      else if (/\/sign-in\/[\w-]+$/.test(visit.url) && visit.status === 200)
        visit = await this.#send(visit.url, { method: 'POST', headers: form, body: `person=${person}` })
      else break
      replica = visit.replica || replica
    }
    const code = new URL(visit.url).searchParams.get('code') ?? ''
    const identity = this.#site.issuedFor(code)
    const { session: replaces, unproved: _, ...outcome } = outcomeOf(visit)
    if (identity !== undefined) this.#sids.set(id, identity.sid)
    const signedIn = visit.status !== undefined && this.#sessionsHave(id)
    this.#site.record({
      ...{ type: 'sign-in', ...outcome, replica, id, begin, person, browser, signedIn },
      ...(identity && { identity, grant: sha256(code) }),
      ...(replaces !== undefined && { replaces }),
    })
    if (signedIn) await this.#register(id)
    return signedIn ? new URL(String(visit.headers['location'] ?? '/'), visit.url).href : undefined
  }

  #sessionsHave(id: string): boolean {
    return [...this.#sessions.values()].includes(id)
  }

  /**
   * Signs out, at the provider too. Returns whether the gateway said that the session has ended.
   */
  async signOut(): Promise<boolean> {
    const { session } = this
    if (session === undefined) return true
    const id = this.#site.id('e')
    let visit = await this.#send(`${this.#site.url}${endpoints}sign-out`, {
      id,
      headers: { 'sec-fetch-site': 'same-origin' },
    })
    const isRedirect = typeof visit.headers['location'] === 'string'
    const confirmed = isRedirect && visit.session === session
    const { session: _, unproved: __, ...outcome } = outcomeOf(visit)
    this.#site.record({ type: 'ending', ...outcome, id, by: 'sign-out', session, confirmed })
    for (let hops = 0; hops < 4 && typeof visit.headers['location'] === 'string'; hops += 1)
      visit = await this.#send(new URL(visit.headers['location'], visit.url).href)
    // The session at the provider ends on the way, and with it later sessions of the same sid.
    const atProvider = { id: this.#site.id('e'), by: 'provider', sid: this.#sids.get(session) ?? '' } as const
    this.#site.record({ type: 'ending', ...atProvider, begin: outcome.begin, end: now(), confirmed: false })
    return confirmed
  }

  /** Keeps an event stream or a WebSocket open until it ends, or for the time. */
  async keepOpen(application: string, kind: 'stream' | 'websocket', forMs: number): Promise<void> {
    await this.#renewProof()
    const { session } = this
    const id = this.#site.id('r')
    const replica = this.#parts.random.pick(this.#site.replicas)
    const url = `${this.#site.url}/${application}/${kind}`
    const leaving = new AbortController()
    const isUnproved = session !== undefined && this.#bound.has(session) && this.#proofOf(session) === undefined
    const unproved = isUnproved ? ({ unproved: true } as const) : {}
    const base = { replica: replica.name, application, begin: now(), ...(session !== undefined && { session }) }
    const impatience = setTimeout(() => leaving.abort(), patienceMs)
    try {
      const { status, headers, body, channel } = await (kind === 'stream' ? openEventStream : openWebSocket)({
        url: replica.url + new URL(url).pathname,
        headers: {
          ...{ ...script, ...this.#fields(url), ...this.#forged() },
          ...{ accept: 'text/event-stream', 'x-chaos-request': id, 'x-request-id': id },
        },
        ...{ dispatcher: this.#agent, localAddress: this.#parts.localAddress, signal: leaving.signal },
      })
      const code = channel === undefined ? codeOf(url, status, headers, body) : undefined
      const opened = channel && (JSON.parse(body) as Pick<Request, 'identity' | 'echo'>)
      this.#record({
        ...{ ...base, ...unproved },
        id,
        kind,
        end: now(),
        status,
        ...(code !== undefined && { code }),
        ...opened,
      })
      if (channel === undefined) return
      let hasLeft = false
      const leave = () => {
        hasLeft = true
        leaving.abort()
      }
      this.#channels.add(leave)
      clearTimeout(impatience)
      const leavesAt = setTimeout(leave, forMs)
      const { code: closeCode, failed } = await channel.ended
      const otherMessage = channel.otherMessage()
      clearTimeout(leavesAt)
      this.#channels.delete(leave)
      const reason: Stream['reason'] = hasLeft ? 'browser' : failed ? 'error' : 'gateway'
      this.#site.record({
        ...{ ...base, type: 'stream', request: id, session: session ?? '', end: now(), reason },
        ...{ lastMessage: channel.lastMessage(), ...(closeCode !== undefined && { code: closeCode }) },
        ...(otherMessage !== undefined && { otherMessage }),
      })
    } catch (error) {
      this.#record({ ...base, ...unproved, id, kind, end: now(), error: errorOf(error) })
    } finally {
      clearTimeout(impatience)
    }
  }
}

function outcomeOf({ begin, end, replica, session, unproved, status, code, error }: Visit) {
  return {
    ...{ begin, end, replica },
    ...(session !== undefined && { session }),
    ...(unproved && { unproved }),
    ...(status !== undefined && { status }),
    ...(code !== undefined && { code }),
    ...(error !== undefined && { error }),
  }
}

/** What an application said of itself in its response. */
function echoIn({ url, headers, body }: Visit): Pick<Request, 'identity' | 'echo' | 'incomplete'> | undefined {
  if (headers['x-application'] === undefined) return undefined
  if (!isWhole(new URL(url).pathname, body)) return { incomplete: true }
  return JSON.parse(body.split('\n')[0] ?? '') as Pick<Request, 'identity' | 'echo'>
}

/** The error code of a response that the gateway made itself. */
export function codeOf(url: string, status: number, headers: Visit['headers'], body: string): string | undefined {
  if (headers['x-application'] !== undefined) return undefined
  if (status < 400) return new URL(url).pathname.startsWith(endpoints) ? undefined : 'ERR_UNAUTHENTICATED'
  const named = errorCodes.find((code) => errorRow(code).status === status && body.includes(errorRow(code).text))
  // The page about a form that was not kept says why in its own words.
  return named ?? (status === 401 ? 'ERR_UNAUTHENTICATED' : `STATUS_${status}`)
}

/** The code of a failed connection, or what else failed. */
export function errorOf(error: unknown): string {
  const { code, message } = error as { readonly code?: string; readonly message: string }
  return code ?? message
}
