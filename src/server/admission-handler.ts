import type { ApplicationSignIns } from '../application-sign-in/sign-in.ts'
import { unreachable } from '../core/errors.ts'
import { applicationSignInUrl, keptUrl, signInUrl } from '../core/return-to.ts'
import type { MisuseLog } from '../device/misuse.ts'
import { type Admission, type FormAdmission, hasEnded, type Pass } from '../gate/admission.ts'
import { type Admit, misuseIn } from '../gate/admit.ts'
import { isSafe } from '../gate/cross-site.ts'
import { auditCaller, auditDenial, auditObserved, type Refusal, refusalOf, type Refused } from '../gate/refusal.ts'
import { initiatorOf } from '../http/endpoint-request.ts'
import { hasBody, type ReplacedContent, StoredContent } from '../http/request-body.ts'
import { isPage, isScript, type RequestFacts } from '../http/request-facts.ts'
import { canonicalTarget } from '../http/request-target.ts'
import { type Incoming, clearCache, empty, redirect, withHeaders, closeWhenUnread } from '../http/response.ts'
import { keepForm, mayKeep, readForm, receiveForm } from '../kept-forms/receive.ts'
import { takeForSending } from '../kept-forms/send.ts'
import type { MemoryBudget } from '../limits/memory-budget.ts'
import { signsOutAtOnce } from '../logout/sign-out.ts'
import type { Audit } from '../observe/audit.ts'
import type { Log } from '../observe/log.ts'
import type { RequestRecord } from '../observe/request-record.ts'
import type { NotKept } from '../pages/messages/messages.ts'
import type { Pages } from '../pages/pages.ts'
import { carry } from '../proxy/carry.ts'
import type { ResponseWatch } from '../proxy/held-response.ts'
import type { ProxyParts } from '../proxy/proxy-parts.ts'
import { responseOf } from '../respond/respond.ts'
import { SeveralSessionsError } from '../session/cookies/one-session.ts'
import type { Endpoints } from './endpoints.ts'
import type { Realms } from './realms.ts'
import { endRecord, pageContext, pageToSignIn, redirectToSignIn, type Refusals, respond } from './responses.ts'

export interface DecisionsParts {
  readonly admit: Admit
  readonly audit: Audit
  readonly misuseLog: Pick<MisuseLog, 'note'>
  readonly memory: Pick<MemoryBudget, 'admits'>
}

type Decided = Omit<Incoming, 'res'>

/** Has requests decided about, and records the decisions. */
export class Decisions {
  readonly #parts: DecisionsParts
  readonly #refusals: Refusals

  constructor(parts: DecisionsParts, refusals: Refusals) {
    this.#parts = parts
    this.#refusals = refusals
  }

  /** Calls `done` at once when nothing has to be waited for. */
  decide({ facts, record }: Decided, done: (admission: Admission) => void, failed: (error: unknown) => void): void {
    const decided = (admission: Admission) => {
      const misuse = misuseIn(admission)
      if (misuse !== undefined) this.#parts.misuseLog.note(misuse, facts.skippedSession, record.cause)
      done(admission)
    }
    try {
      const admission = this.#parts.admit(facts)
      if (admission instanceof Promise) admission.then(decided).catch(failed)
      else decided(admission)
    } catch (error) {
      failed(error)
    }
  }

  /**
   * Whether there is memory for the request. Only strangers' requests for applications are
   * rejected. A rejected Logout Token would leave a session open.
   */
  hasMemoryFor({ req, facts }: Decided, pass?: Pass): boolean {
    const { clientAddress } = facts.forwarded
    const party = pass?.session ?? (pass?.caller === undefined ? undefined : `${pass.caller} ${clientAddress}`)
    return this.#parts.memory.admits(req.socket, clientAddress, party)
  }

  /** The upstream gets the request. */
  recordPass(record: RequestRecord, pass: Pass): void {
    recordSender(record, pass)
    if (pass.observed !== undefined) auditObserved(this.#parts.audit, record, pass.observed)
  }

  /**
   * Records why a request is refused, in the audit log or in the log. A missing sign-in is the
   * usual case, so callers that can expect it do not record it.
   */
  recordRefusal({ req, record }: Decided, admission: Refused): Refusal {
    const refusal = refusalOf(admission)
    const { code, why } = refusal
    if (admission.kind === 'unavailable' && admission.pass !== undefined) recordSender(record, admission.pass)
    if ('rule' in admission) auditDenial(this.#parts.audit, record, { ...admission, code })
    else if (admission.kind === 'caller_refused') auditCaller(this.#parts.audit, record, admission)
    else this.#refusals.log(req, record, code, why)
    return refusal
  }
}

function recordSender(record: RequestRecord, { upstream, session, caller }: Pass): void {
  record.upstream = upstream.name
  record.session = session
  record.caller = caller
}

export interface AdmissionHandlerParts {
  readonly decisions: Decisions
  readonly refusals: Refusals
  readonly pages: Pages
  readonly proxy: ProxyParts
  readonly endpoints: Endpoints
  readonly reservedPrefix: string
  readonly realms: Realms
  readonly signIns: Pick<ApplicationSignIns, 'watch'>
  readonly log: Log
  readonly audit: Audit
  /** The facts, with one session cookie: see `withOneSession`. */
  readonly withOneCookie: (facts: RequestFacts) => RequestFacts | Promise<RequestFacts>
}

/** The content of a request that was read before the decision. */
export interface ReadContent {
  /** The request is the send command for the kept request with this reference. */
  readonly kept?: string
  /** The request is not a send command, and has this content. */
  readonly same?: ReplacedContent
}

/** Is called with the page about a kept form, and the cookie for its browser. */
type WhenKept = (location: string, setCookies: readonly string[]) => unknown

/** A form in memory. */
type FormContent = Parameters<typeof keepForm>[1]

type Of<K extends Admission['kind']> = Extract<Admission, { kind: K }>

export const overloaded = 'the gateway holds too much for clients'

/** Carries out the decisions: the upstream responds to a request, or the gateway itself. */
export class AdmissionHandler {
  readonly #parts: AdmissionHandlerParts

  constructor(parts: AdmissionHandlerParts) {
    this.#parts = parts
  }

  handle(incoming: Incoming, content: ReadContent = {}): void {
    this.#parts.decisions.decide(
      incoming,
      (admission) => this.#respond(incoming, admission, content),
      (error) => {
        const setCookies = error instanceof SeveralSessionsError ? error.setCookies : []
        this.#parts.refusals.fail(incoming, error, { kept: content.kept, setCookies })
      },
    )
  }

  #respond(incoming: Incoming, admission: Admission, content: ReadContent): void {
    switch (admission.kind) {
      case 'pass':
        return this.#pass(incoming, admission, content)
      case 'sign_in':
        return this.#signIn(incoming, admission, content)
      case 'respond':
        return void this.#respondTo(incoming, admission).catch((error: unknown) =>
          this.#parts.refusals.fail(incoming, error),
        )
      case 'maintenance':
        return this.#maintenance(incoming, admission, content)
      case 'sign_out':
        return this.#signOut(incoming, admission, content)
      case 'preflight':
        return respond(incoming, empty(204, admission.fields))
      case 'reload':
        return respond(incoming, this.#parts.pages.redirectPage(admission.location, pageContext(incoming)))
      case 'unauthorized':
      case 'forbidden':
      case 'cross_site':
      case 'caller_refused':
      case 'no_route':
      case 'unavailable':
        return this.#refuse(incoming, admission, content)
      default:
        return unreachable(admission)
    }
  }

  #pass(incoming: Incoming, pass: Of<'pass'>, { kept, same }: ReadContent): void {
    const { decisions, refusals, proxy } = this.#parts
    const { req, res, record } = incoming
    if (!decisions.hasMemoryFor(incoming, pass)) return refusals.refuse(incoming, 'ERR_OVERLOADED', overloaded)
    decisions.recordPass(record, pass)
    if (res.destroyed) return record.end(undefined, false)
    if (kept !== undefined)
      return void this.#send(incoming, pass, kept).catch((error: unknown) => refusals.fail(incoming, error, { kept }))
    if (pass.upstream.applicationSignIn === undefined || pass.session === undefined || same !== undefined)
      return carry(incoming, pass, proxy, { content: same })
    // The content of a request is read only once.
    if (isSafe(incoming.facts))
      return carry(incoming, pass, proxy, { watch: hasBody(req) ? undefined : this.#watchPage(incoming, pass) })
    // No person sees a form that a program sends.
    if (pass.caller !== undefined) return carry(incoming, pass, proxy)
    this.#carryForm(incoming, pass).catch((error: unknown) => refusals.fail(incoming, error))
  }

  /** Looks for the sign-in of the application in the response to a request that can be repeated. */
  #watchPage(incoming: Incoming, pass: Pass): ResponseWatch | undefined {
    const { signIns, refusals } = this.#parts
    const { facts, record } = incoming
    const { path, query } = facts.target
    const ask = (wasRefused: boolean) =>
      this.#ask(incoming, pass, { returnTo: path + query, wasRefused }).catch((error: unknown) =>
        refusals.fail(incoming, error),
      )
    const repeat = () => this.handle(incoming)
    const seesPages = facts.isPage && pass.caller === undefined
    return signIns.watch({ facts, pass, cause: record.cause, repeat, ask: seesPages ? ask : undefined })
  }

  /**
   * Carries a request that is not safe. If it is a form, it is read first, so that it can be kept
   * when the application asks for a sign-in.
   */
  async #carryForm(incoming: Incoming, pass: Pass): Promise<void> {
    const { realms, withOneCookie, proxy } = this.#parts
    const { req, res, facts } = incoming
    const { kept } = realms.ofSession(pass.upstream, pass.session, (await withOneCookie(facts)).cookie)
    if (facts.method !== 'POST' || !facts.isPage || !mayKeep(req, kept)) return carry(incoming, pass, proxy)
    const { bodyIdleTimeoutMs: idleTimeoutMs, bodyRateBytesPerSecond: bytesPerSecond } = proxy
    const parts = await readForm({ req, res }, { kept, idleTimeoutMs, bytesPerSecond })
    const content = { rawHeaders: req.rawHeaders, body: new StoredContent(parts) }
    carry(incoming, pass, proxy, { content, watch: this.#watchForm(incoming, pass, { ...content, parts }) })
  }

  /** The same for a form: its person decides whether to send it again. */
  #watchForm(incoming: Incoming, pass: Pass, content: FormContent): ResponseWatch | undefined {
    const { signIns, refusals } = this.#parts
    const { facts, record } = incoming
    const keep = (then: WhenKept) =>
      this.#keepAgain(incoming, pass, content, then).catch((error: unknown) => refusals.fail(incoming, error))
    return signIns.watch({
      ...{ facts, pass, cause: record.cause },
      repeat: () => keep((location, setCookies) => respond(incoming, redirect({ location, setCookies }))),
      ask: (wasRefused) =>
        keep((returnTo, setCookies) => this.#ask(incoming, pass, { returnTo, wasRefused, setCookies })),
    })
  }

  /** Asks the person for the password of an application. */
  async #ask(
    incoming: Incoming,
    { upstream, session }: Pass,
    {
      returnTo,
      wasRefused,
      setCookies = [],
    }: { readonly returnTo: string; readonly wasRefused: boolean; readonly setCookies?: readonly string[] },
  ): Promise<void> {
    const { realms, withOneCookie } = this.#parts
    const { prefix } = realms.ofSession(upstream, session, (await withOneCookie(incoming.facts)).cookie)
    const location = applicationSignInUrl(prefix, upstream.name, returnTo, wasRefused)
    respond(incoming, redirect({ location, setCookies }))
  }

  /** Keeps a form that met the sign-in of its application. Its person decides on a page. */
  async #keepAgain(incoming: Incoming, pass: Pass, content: FormContent, then: WhenKept): Promise<void> {
    const { realms, refusals, pages, withOneCookie } = this.#parts
    const { upstream, session } = pass
    const { req, res, record } = incoming
    const facts = await withOneCookie(incoming.facts)
    const { kept, personCookie, prefix, sessions } = realms.ofSession(upstream, session, facts.cookie)
    const stored = session && (await sessions.peek(session))
    if (stored === undefined) return this.handle(incoming)
    const options = refusals.optionsFor(incoming)
    const form = { req, res, facts, upstream, returnTo: options.returnTo, requestId: record.id }
    const outcome = await keepForm(form, content, { kept, person: personCookie.tagOf(stored.record.sub) })
    if (typeof outcome === 'string')
      return respond(incoming, pages.refusal('ERR_UNAUTHENTICATED', { ...options, notKept: outcome }))
    await then(keptUrl(prefix, outcome.reference), [outcome.setCookie])
  }

  /**
   * The gateway responds to a request that a rule admits. A file is sent no longer than the session
   * lasts.
   */
  async #respondTo(incoming: Incoming, admission: Of<'respond'>): Promise<void> {
    const { decisions, refusals, pages, proxy } = this.#parts
    const { res, record } = incoming
    const { pass } = admission
    // Another decision could admit it again, without end.
    if (hasEnded(pass, proxy, proxy.clock.now()))
      return refusals.refuse(incoming, 'ERR_UNAUTHENTICATED', 'the sign-in has ended')
    if (!decisions.hasMemoryFor(incoming, pass)) return refusals.refuse(incoming, 'ERR_OVERLOADED', overloaded)
    decisions.recordPass(record, pass)
    const response = await responseOf(admission, incoming)
    if ('status' in response) {
      const { session, isOver } = pass
      const isListed = session !== undefined || isOver !== undefined
      if (response.stream !== undefined && isListed && !res.destroyed)
        res.once('close', proxy.live.open(session, { isEndless: false, cut: () => void res.destroy() }, isOver))
      return respond(incoming, response)
    }
    const { code, headers } = response
    respond(incoming, pages.refusal(code, { ...refusals.optionsFor(incoming), headers }))
  }

  /** Usual during maintenance, so the log has no line for each request. */
  #maintenance(incoming: Incoming, admission: Of<'maintenance'>, { kept }: ReadContent): void {
    const { refusals, pages } = this.#parts
    const { code, options } = refusalOf(admission)
    incoming.record.upstream = admission.upstream.name
    respond(incoming, pages.refusal(code, { ...refusals.optionsFor(incoming), ...options, kept }))
  }

  #signIn(incoming: Incoming, admission: Of<'sign_in'>, { kept }: ReadContent): void {
    const { location, prefix, setCookies, sessionEnded, stepUp, leavesPage = false, form } = admission
    if (kept !== undefined) {
      const signIn = signInUrl(prefix, undefined, { kept, stepUp })
      return respond(incoming, redirectToSignIn({ location: signIn, setCookies }))
    }
    if (form !== undefined) {
      const { decisions, refusals } = this.#parts
      if (!decisions.hasMemoryFor(incoming)) return refusals.refuse(incoming, 'ERR_OVERLOADED', overloaded)
      incoming.record.upstream = form.upstream.name
      endRecord(incoming)
      return void this.#keep(incoming, form, prefix, leavesPage).catch((error: unknown) => {
        if (!incoming.res.destroyed) refusals.fail(incoming, error)
      })
    }
    const response = leavesPage
      ? pageToSignIn({ location, setCookies }, incoming, this.#parts.pages)
      : redirectToSignIn({ location, setCookies })
    respond(incoming, sessionEnded ? withHeaders(response, clearCache) : response)
  }

  #signOut(incoming: Incoming, { location, first }: Of<'sign_out'>, { kept, same }: ReadContent): void {
    const { req, res, facts, record } = incoming
    const method = isScript(facts.method, req.headers) ? 'POST' : 'GET'
    const signOut = () => {
      if (method === 'GET') return respond(incoming, redirect({ location, setCookies: [] }))
      this.#parts.endpoints.serve({ ...incoming, facts: factsAt(location, method, incoming) })
    }
    // Another site must not be able to sign people out of the application alone.
    const isAtOnce = first !== undefined && signsOutAtOnce({ ...initiatorOf(req.headers), method, ...first.upstream })
    if (!isAtOnce || kept !== undefined) return signOut()
    record.upstream = first.upstream.name
    record.session = first.session
    const replace = (signedOut: readonly string[]) => {
      removeContent(incoming)
      if (signedOut.length > 0) res.setHeader('Set-Cookie', signedOut)
      signOut()
    }
    carry(incoming, first, this.#parts.proxy, { replace, content: same })
  }

  #refuse(
    incoming: Incoming,
    admission: Of<'unauthorized' | 'forbidden' | 'cross_site' | 'caller_refused' | 'no_route' | 'unavailable'>,
    { kept }: ReadContent,
  ): void {
    const { decisions, refusals, pages } = this.#parts
    const mayRepeat = admission.kind === 'unauthorized'
    const { code, options } = mayRepeat ? refusalOf(admission) : decisions.recordRefusal(incoming, admission)
    const notKept = kept === undefined ? lostForm(admission, incoming.facts) : undefined
    const page = { ...refusals.optionsFor(incoming), ...options, mayRepeat, notKept, kept }
    respond(incoming, pages.refusal(code, page))
  }

  /** Keeps a form during the sign-in of its person, or says that it is lost. */
  async #keep(
    incoming: Incoming,
    { upstream, expire, stepUp }: FormAdmission,
    prefix: string,
    leavesPage: boolean,
  ): Promise<void> {
    const { realms, refusals, pages, proxy, log } = this.#parts
    const { req, res, facts, record } = incoming
    const options = refusals.optionsFor(incoming)
    const realm = realms.ofForm(upstream, prefix, facts.cookie)
    const outcome = await receiveForm(
      { req, res, facts, upstream, returnTo: options.returnTo, requestId: record.id },
      {
        kept: realm.kept,
        personCookie: realm.personCookie,
        log,
        idleTimeoutMs: proxy.bodyIdleTimeoutMs,
        bytesPerSecond: proxy.bodyRateBytesPerSecond,
      },
    )
    if (res.destroyed) return
    const expired = expire?.() ?? []
    if (typeof outcome === 'string') {
      const code = outcome === 'unavailable' ? 'ERR_STORE_UNAVAILABLE' : 'ERR_UNAUTHENTICATED'
      const shown = { ...options, notKept: outcome, setCookies: expired, sessionEnded: leavesPage }
      return respond(incoming, pages.refusal(code, shown))
    }
    const signIn = { kept: outcome.reference, again: leavesPage, stepUp }
    const location = signInUrl(realm.prefix, options.returnTo ?? options.home, signIn)
    const next = { location, setCookies: [outcome.setCookie, ...expired] }
    respond(incoming, leavesPage ? pageToSignIn(next, incoming, pages) : redirectToSignIn(next))
  }

  /** Sends a kept request to its upstream. The page about it says why, if that is not possible. */
  async #send(incoming: Incoming, pass: Pass, reference: string): Promise<void> {
    const { realms, withOneCookie, proxy, reservedPrefix } = this.#parts
    const { req, res, record } = incoming
    const facts = await withOneCookie(incoming.facts)
    const realm = realms.ofSession(pass.upstream, pass.session, facts.cookie)
    const taken = await takeForSending(reference, req, facts, record.cause, { ...this.#parts, ...realm })
    if (taken === undefined)
      return respond(incoming, redirect({ location: keptUrl(reservedPrefix, reference), setCookies: [] }))
    if (res.destroyed) {
      taken.close()
      return record.end(undefined, false)
    }
    res.once('close', taken.close)
    const watch = this.#watchForm(incoming, pass, { rawHeaders: taken.content.rawHeaders, parts: taken.parts })
    carry(incoming, pass, proxy, { content: taken.content, watch })
  }
}

/** The facts of a request that is passed to another URL of the gateway. */
function factsAt(location: string, method: string, { req, facts }: Incoming): RequestFacts {
  return { ...facts, method, target: canonicalTarget(location), isPage: isPage(method, req.headers) }
}

/** Makes a request one without content, because its content has gone to an upstream. */
function removeContent({ req, res }: Incoming): void {
  if (!req.complete) closeWhenUnread(req, res)
  for (const name of ['content-type', 'content-length', 'transfer-encoding']) delete req.headers[name]
}

/** Why the content of a refused request is lost; `undefined`: it is no form, or not refused yet. */
function lostForm(admission: Admission, { method, isPage, isFrame }: RequestFacts): NotKept | undefined {
  if (method !== 'POST' || !(isPage || isFrame)) return undefined
  if (admission.kind === 'unavailable') return 'unavailable'
  if (admission.kind === 'unauthorized') return isFrame ? 'frame' : 'off'
  return undefined
}
