import type { ApplicationSignInConfig, UpstreamConfig } from '../config/model/upstream.ts'
import { type Clock, isSoonAfter } from '../core/clock.ts'
import { reason } from '../core/errors.ts'
import type { SessionKey } from '../core/names.ts'
import { sha256 } from '../core/random.ts'
import { SingleFlight } from '../core/single-flight.ts'
import { hasEnded, type Pass } from '../gate/admission.ts'
import type { Admit } from '../gate/admit.ts'
import { cookieField, keepCookies, type KeptCookie, readSetCookie, sizeOf } from '../http/cookie-jar.ts'
import type { RequestFacts } from '../http/request-facts.ts'
import { canonicalTarget } from '../http/request-target.ts'
import type { Audit, Cause } from '../observe/audit.ts'
import type { Log } from '../observe/log.ts'
import { maxHeldBytes, type ResponseWatch } from '../proxy/held-response.ts'
import { callLogout } from '../proxy/logout-call.ts'
import { OwnExchange, ownRequest, type OwnRequest, type OwnResponse } from '../proxy/own-exchange.ts'
import { isHtmlPage } from '../proxy/session-notice.ts'
import type { Upstreams } from '../proxy/upstream.ts'
import { applicationSessionOf, cookiesOf } from '../session/cookies/application-cookies.ts'
import { type LeaseStore, retryUntil, underLease } from '../session/live/lease.ts'
import { changeSession, type Sessions } from '../session/live/live-sessions.ts'
import { type ApplicationSession, type SessionRecord, type StoredSession, subTag } from '../session/record/record.ts'
import { type Place, type PlacedForm, Recognition, setCookiesOf } from './recognition.ts'
import { type ApplicationSecrets, type Credentials, textOf } from './secrets.ts'

/** An application that asks again so soon after a sign-in wants something else, in ms. */
const tooSoonMs = 60_000
/** The most cookies of a sign-in, and their size together. */
const maxCookies = 64
const maxCookiesBytes = 16 * 1024
const maxTokenLength = 4096

/** A request of a signed-in person for an application. */
export interface WatchedRequest {
  readonly facts: RequestFacts
  readonly pass: Pass
  readonly cause: Cause
  /** Sends the request again, or has its person decide about that. */
  readonly repeat: () => unknown
  /** Asks the person for the password. Absent: no person looks at the response. */
  readonly ask: ((wasRefused: boolean) => unknown) | undefined
}

export interface ApplicationSignInParts {
  readonly upstreams: Upstreams
  /** What the gateway sends on behalf of a person, the rules have to admit. */
  readonly admit: Admit
  readonly sessions: Pick<Sessions, 'read' | 'replace' | 'hasEnded'>
  readonly store: LeaseStore
  readonly secrets: ApplicationSecrets
  readonly clock: Clock
  readonly log: Log
  readonly audit: Audit
}

/** `left`: the person gets the response of the application. */
type Result = 'done' | 'ask' | 'ask_again' | 'left'

/** One sign-in of one person. */
interface Attempt {
  readonly request: WatchedRequest
  readonly upstream: UpstreamConfig
  readonly signIn: ApplicationSignInConfig
  readonly recognition: Recognition
  readonly session: SessionKey
  /** The response that asks, and where it is from. */
  readonly asking: OwnResponse
  readonly place: Place
  /** The form of that response. */
  readonly form: PlacedForm | undefined
}

/** Why a sign-in is left to the person. */
class Left extends Error {}

/**
 * Signs people in at applications that have a sign-in of their own, when a response to their
 * request asks for it. The password goes to the address of the configuration only, once for each
 * question of the application.
 */
export class ApplicationSignIns {
  readonly #parts: ApplicationSignInParts
  readonly #recognitions: ReadonlyMap<UpstreamConfig, Recognition>
  readonly #underWay = new SingleFlight<string, Result>()
  /** The applications that have accepted a password since they refused one. */
  readonly #accepting = new Set<UpstreamConfig>()

  constructor(upstreams: readonly UpstreamConfig[], parts: ApplicationSignInParts) {
    this.#parts = parts
    this.#recognitions = new Map(
      upstreams.flatMap((upstream) =>
        upstream.applicationSignIn === undefined ? [] : [[upstream, new Recognition(upstream.applicationSignIn)]],
      ),
    )
  }

  /** What looks for the sign-in in the response to a request. `undefined`: nothing does. */
  watch(request: WatchedRequest): ResponseWatch | undefined {
    const { facts, pass } = request
    const { upstream, session, application } = pass
    const { applicationSignIn: signIn } = upstream
    const recognition = this.#recognitions.get(upstream)
    if (signIn === undefined || recognition === undefined || session === undefined || application?.stopped === true)
      return undefined
    // Of hosts that are no part of a URL, such as 1.2.3.999, nothing can be compared.
    if (!URL.canParse(originOf(facts))) return undefined
    const place = this.#placeOf(facts, upstream, facts.target.path + facts.target.query)
    const readsPages = (facts.isPage || facts.isFrame) && facts.method !== 'HEAD'
    // The scripts of a page ask for JSON, and no person sees the responses to them. So the page
    // itself counts as a question.
    const isFirstPage = signIn.kind === 'json' && facts.isPage && application?.signed_in_at === undefined
    return {
      holds: (status, fields) =>
        recognition.asks({ status, fields }, place) ||
        (readsPages && recognition.mayHaveForm({ status, fields })) ||
        (isFirstPage && isHtmlPage(fields)),
      examine: async (asking) => {
        const found = await recognition.formIn(asking, place)
        const form = found !== undefined && 'target' in found ? found : undefined
        if (found === undefined && !recognition.asks(asking, place) && !isFirstPage) return undefined
        if (isSoonAfter(tooSoonMs, application?.signed_in_at ?? -Infinity, this.#parts.clock.now())) return undefined
        const attempt = { request, upstream, signIn, recognition, session, asking, place, form }
        const result = await this.#underWay.run(`${session} ${upstream.name}`, () => this.#inTurn(attempt))
        if (result === 'done') return request.repeat
        if (result === 'left') return undefined
        return request.ask && (() => request.ask?.(result === 'ask_again'))
      },
    }
  }

  /**
   * One sign-in of a person at a time, over all processes: a wrong password is sent once. People
   * may share an account, so they take turns until the application has accepted a password.
   */
  async #inTurn(attempt: Attempt): Promise<Result> {
    const { store, sessions } = this.#parts
    const { session, upstream, signIn } = attempt
    const stored = await sessions.read(session)
    // The request that is repeated is decided about again.
    if (stored === undefined) return 'done'
    const isShared = signIn.password !== 'ask' && !this.#accepting.has(upstream)
    const tag = subTag(stored.audience, isShared ? '' : stored.record.sub)
    const turn = `${tag}:${sha256('application sign-in', upstream.name).slice(0, 32)}` as SessionKey
    const work = (lost: AbortSignal) => this.#signIn(attempt, lost)
    return (await retryUntil(() => underLease(turn, store, work), 2 * signIn.timeoutMs))?.result ?? 'left'
  }

  async #signIn(attempt: Attempt, lost: AbortSignal): Promise<Result> {
    const { upstream, signIn, session, request } = attempt
    const stored = await this.#parts.sessions.read(session)
    if (stored === undefined) return 'done'
    const state = applicationSessionOf(stored.record, upstream.name)
    if (state?.stopped === true) return 'left'
    // Another request has signed the person in meanwhile.
    if (state?.signed_in_at !== request.pass.application?.signed_in_at) return 'done'
    const credentials = await this.#parts.secrets.credentials(stored, upstream, signIn)
    if (credentials === 'ask') {
      // The next page asks.
      if (request.ask === undefined && state !== undefined) await this.#change(attempt, () => ({}))
      return 'ask'
    }
    const exchange = new SignInExchange(attempt, stored, this.#parts)
    try {
      if ('why' in credentials) throw new Left(credentials.why)
      return await this.#send(attempt, stored, credentials, { exchange, lost })
    } catch (error) {
      const wasSent = exchange.hasSentSecret
      // As above: the repeated request finds no session.
      const { sessions, clock } = this.#parts
      const owner = { session: stored.key, endsAt: stored.record.absolute_expires_at }
      if (!wasSent && hasEnded(owner, sessions, clock.now())) return 'done'
      return this.#leave(attempt, stored, { error, wasSent })
    }
  }

  /** Sends the sign-in to the application, and keeps what it has given. */
  async #send(
    attempt: Attempt,
    stored: StoredSession,
    credentials: Credentials,
    { exchange, lost }: { readonly exchange: SignInExchange; readonly lost: AbortSignal },
  ): Promise<Result> {
    const { upstream, signIn, recognition } = attempt
    exchange.receive(attempt.asking, attempt.place.url.pathname)
    const [target, prepared] =
      signIn.kind === 'form'
        ? await this.#filledForm(attempt, exchange, stored, credentials)
        : signIn.kind === 'json'
          ? [signIn.action, jsonOf(signIn, stored.record, credentials)]
          : [signIn.page ?? signIn.action, basicOf(credentials)]
    if (lost.aborted) throw new Left('another process may sign this person in')
    const response = await exchange.send(target, prepared)
    const place = this.#placeOf(attempt.request.facts, upstream, target)
    const outcome = await recognition.outcomeOf(response, place)
    if (outcome === 'done') this.#accepting.add(upstream)
    if (outcome === 'refused') return this.#refused(attempt, stored, credentials)
    if (outcome === 'unknown') throw new Left(`the application responded with the status ${response.status}`)
    const authorization = signIn.kind === 'basic' ? prepared.authorization : tokenIn(response, signIn)
    await this.#keep(attempt, stored, exchange.received, authorization)
    this.#record(attempt, stored, 'done')
    return 'done'
  }

  /** The form with the values of the person: from the response that asks, or from its own page. */
  async #filledForm(
    attempt: Attempt,
    exchange: SignInExchange,
    { record }: StoredSession,
    credentials: Credentials,
  ): Promise<readonly [target: string, prepared: Prepared]> {
    const { signIn, recognition, request, upstream, asking } = attempt
    let { form, place } = attempt
    if (form === undefined) {
      const page = recognition.pageOf(asking, place) ?? signIn.page ?? signIn.action
      const response = await exchange.send(page, {})
      place = this.#placeOf(request.facts, upstream, page)
      const found = await recognition.formIn(response, place)
      if (found === undefined) throw new Left(`the page has no form with the fields (status ${response.status})`)
      if ('unclear' in found) throw new Left(`the form is not understood: ${found.unclear}`)
      form = found
    }
    const values = valuesOf(signIn, record, credentials)
    const sent = form.controls.map(([name, value]): [string, string] => [name, values.get(name) ?? value])
    if (!form.isUtf8 && /[^\x20-\x7e]/.test(sent.flat().join('')))
      throw new Left('the form is not in UTF-8, and a value has other characters than ASCII')
    const type = 'application/x-www-form-urlencoded'
    const prepared = {
      content: new URLSearchParams(sent).toString(),
      fields: ['Content-Type', type, 'Referer', place.url.href],
    }
    return [form.target.pathname + form.target.search, prepared]
  }

  async #refused(attempt: Attempt, stored: StoredSession, credentials: Credentials): Promise<Result> {
    const { upstream, signIn } = attempt
    const { secrets } = this.#parts
    this.#record(attempt, stored, 'refused')
    if (signIn.password === 'ask') {
      await secrets.drop({ audience: stored.audience, sub: stored.record.sub }, upstream)
      return 'ask_again'
    }
    this.#accepting.delete(upstream)
    await secrets.noteRefused(upstream, credentials)
    await this.#stop(attempt)
    this.#log(attempt, 'the application has refused the password')
    return 'left'
  }

  /**
   * The person gets the response of the application. When the password was sent, the gateway does
   * not try again in this session: an application may lock an account after some attempts.
   */
  async #leave(
    attempt: Attempt,
    stored: StoredSession,
    { error, wasSent }: { readonly error: unknown; readonly wasSent: boolean },
  ): Promise<Result> {
    const why = reason(error)
    this.#log(attempt, why)
    if (wasSent) {
      this.#record(attempt, stored, 'failed', why)
      await this.#stop(attempt)
    }
    return 'left'
  }

  /** Warns once of each reason. */
  #log({ upstream, session }: Attempt, why: string): void {
    const { upstreams, log } = this.#parts
    const level = upstreams.of(upstream).isFirst(`application_sign_in: ${why}`) ? 'warn' : 'debug'
    const hint = `The person gets the sign-in of the application. Compare it with upstreams.${upstream.name}.application_sign_in.`
    log[level]('application_sign_in.left', { session, upstream: upstream.name, reason: why, hint })
  }

  #stop(attempt: Attempt): Promise<boolean> {
    // What the application has given before would stand in the way of the person's own sign-in.
    return this.#change(attempt, () => ({ stopped: true }))
  }

  async #keep(
    attempt: Attempt,
    stored: StoredSession,
    received: readonly KeptCookie[],
    authorization: string | undefined,
  ) {
    const { upstream, session } = attempt
    const { clock, upstreams } = this.#parts
    const now = clock.now()
    const isKept = ({ name }: KeptCookie) => upstreams.of(upstream).isKeptCookie(name)
    const kept = received.filter(isKept)
    const state = { signed_in_at: now, ...(authorization !== undefined && { authorization }) }
    const isThere = await this.#change(attempt, () => state, kept)
    if (isThere || upstream.logout.call === undefined) return
    // The session has ended meanwhile, so nothing would end that of the application.
    const { claims, tokens } = stored.record
    const person = { session, cookies: keepCookies([], kept, now), claims, tokens }
    await callLogout(upstream, upstream.logout.call, person, { upstreams, now })
  }

  /** @returns `false` when the session has ended */
  #change(
    { session, upstream: { name } }: Attempt,
    change: (state: ApplicationSession | undefined) => ApplicationSession,
    received: readonly KeptCookie[] = [],
  ): Promise<boolean> {
    const now = this.#parts.clock.now()
    return changeSession(session, this.#parts.sessions, (record) => ({
      ...record,
      cookies: { ...record.cookies, [name]: keepCookies(cookiesOf(record, name), received, now) },
      application_sessions: { ...record.application_sessions, [name]: change(applicationSessionOf(record, name)) },
    }))
  }

  #record({ upstream, session, request }: Attempt, { record }: StoredSession, outcome: string, why?: string): void {
    const { iss, sub, sid } = record
    const about = {
      session,
      iss,
      sub,
      sid,
      upstream: upstream.name,
      outcome,
      ...(why !== undefined && { reason: why }),
    }
    this.#parts.audit.record('application.sign_in', about, request.cause)
  }

  #placeOf({ host, forwarded }: RequestFacts, upstream: UpstreamConfig, target: string): Place {
    const url = new URL(target, originOf({ forwarded }))
    return { addresses: this.#parts.upstreams.of(upstream).addressesAt(host).fields, url }
  }
}

function originOf({ forwarded: { proto, host } }: Pick<RequestFacts, 'forwarded'>): string {
  return `${proto}://${host}`
}

/** What a request of a sign-in has, besides its cookies. */
interface Prepared extends Pick<OwnRequest, 'fields' | 'content'> {
  readonly authorization?: string
}

/** The requests of one sign-in, with the cookies that the application sets meanwhile. */
class SignInExchange {
  readonly received: KeptCookie[] = []
  /** A request with the password may have reached the application. */
  hasSentSecret = false
  readonly #attempt: Attempt
  readonly #present: readonly KeptCookie[]
  readonly #parts: ApplicationSignInParts

  constructor(attempt: Attempt, { record }: StoredSession, parts: ApplicationSignInParts) {
    const { upstream } = attempt
    this.#attempt = attempt
    this.#parts = parts
    this.#present = cookiesOf(record, upstream.name)
  }

  /** Sends a request that the rules admit for the person. */
  async send(target: string, { fields = [], content, authorization }: Prepared): Promise<OwnResponse> {
    const { upstream, signIn, session, request } = this.#attempt
    const { upstreams, clock, admit, sessions } = this.#parts
    const { facts, pass } = request
    const { proto, host, clientAddress } = facts.forwarded
    const method = content === undefined ? 'GET' : 'POST'
    const canonical = canonicalTarget(target)
    const admission = await admit({
      ...facts,
      ...{ method, target: canonical, isPage: true, isFrame: false, isUpgrade: false, isPreflight: false },
      ...{ secFetchSite: 'same-origin', origin: undefined, mcp: undefined },
      // It may have the key of the person. Otherwise it is for the application.
      authorization: pass.caller === 'key' ? facts.authorization : undefined,
    })
    if (admission.kind !== 'pass' || admission.upstream !== upstream || admission.session !== session)
      throw new Left('the rules do not admit the person to the sign-in of the application')
    const at = upstreams.of(upstream)
    const path = at.path(canonical.path, '')
    const cookie = cookieField(this.#jar(), { host: facts.host, path }, clock.now())
    const more = authorization === undefined ? [] : ['Authorization', authorization]
    const own: OwnRequest = {
      ...{ method, target, proto, host, cookie, session, content },
      identity: [...admission.identity, ...more],
      fields: ['X-Forwarded-For', clientAddress, ...fields],
    }
    const options = {
      timeoutMs: signIn.timeoutMs,
      maxContentBytes: maxHeldBytes,
      hasEnded: () => hasEnded(admission, sessions, clock.now()),
    }
    const exchange = new OwnExchange(at, ownRequest(own, at, upstream), session, options)
    const received = await exchange.response.finally(() => {
      if (content !== undefined || authorization !== undefined) this.hasSentSecret ||= exchange.wasSent
    })
    this.receive(received, canonical.path)
    return received
  }

  #jar(): readonly KeptCookie[] {
    return keepCookies(this.#present, this.received, this.#parts.clock.now())
  }

  /** Reads the cookies of a response. */
  receive(response: OwnResponse, publicPath: string): void {
    const { upstream, place, request } = this.#attempt
    const path = this.#parts.upstreams.of(upstream).path(publicPath, '')
    const scope = { host: request.facts.host, path }
    const now = this.#parts.clock.now()
    for (const text of setCookiesOf(response)) {
      const cookie = readSetCookie(place.addresses.ownCookie(text), scope, now)
      if (cookie !== undefined) this.received.push(cookie)
    }
    const jar = this.#jar()
    if (jar.length > maxCookies || sizeOf(jar) > maxCookiesBytes)
      throw new Left('the application sets too many cookies')
  }
}

function valuesOf(
  { values }: ApplicationSignInConfig,
  { claims }: SessionRecord,
  credentials: Credentials,
): ReadonlyMap<string, string> {
  const known = { ...claims, ...credentials }
  return new Map(
    values.map(([name, template]) => {
      const text = textOf(template, known)
      if (text === undefined) throw new Left(`a claim for ${name} is missing`)
      return [name, text]
    }),
  )
}

function jsonOf(signIn: ApplicationSignInConfig, record: SessionRecord, credentials: Credentials): Prepared {
  const content = JSON.stringify(Object.fromEntries(valuesOf(signIn, record, credentials)))
  return { content, fields: ['Content-Type', 'application/json'] }
}

/** RFC 7617 §2. */
function basicOf({ username, password }: Credentials): Prepared & { readonly authorization: string } {
  if (username.includes(':')) throw new Left('a name with a colon cannot be sent with Basic')
  return { authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` }
}

/** The bearer token in a JSON response (RFC 6750 §2.1). */
function tokenIn({ content }: OwnResponse, { token }: ApplicationSignInConfig): string | undefined {
  if (token === undefined) return undefined
  try {
    const found = (JSON.parse(content.toString()) as Readonly<Record<string, unknown>> | null)?.[token]
    if (typeof found === 'string' && found.length <= maxTokenLength && /^[\w.~+/-]+=*$/.test(found))
      return `Bearer ${found}`
  } catch {
    // The content is no JSON.
  }
  throw new Left(`the response has no token in ${token}`)
}
