import { keptUrl, signInUrl } from '../core/return-to.ts'
import type { FormAdmission } from '../gate/admission.ts'
import type { Incoming } from '../http/incoming.ts'
import type { RequestFacts } from '../http/request-facts.ts'
import { redirect } from '../http/response.ts'
import { receiveForm } from '../kept-forms/receive.ts'
import { takeForSending } from '../kept-forms/send.ts'
import type { Audit } from '../observe/audit.ts'
import type { Log } from '../observe/log.ts'
import type { Pages } from '../pages/pages.ts'
import { carry } from '../proxy/carry.ts'
import type { Pass, ProxyParts } from '../proxy/parts.ts'
import type { Realms } from './realms.ts'
import type { Refusals } from './refusals.ts'
import { endRecord, pageToSignIn, redirectToSignIn, respond } from './responses.ts'

export interface KeptFormHandlerParts {
  readonly reservedPrefix: string
  readonly realms: Realms
  readonly refusals: Refusals
  readonly pages: Pages
  readonly log: Log
  readonly audit: Audit
  readonly proxy: ProxyParts
  /** The facts, with one session cookie: see `withOneSession`. */
  readonly withOneCookie: (facts: RequestFacts) => RequestFacts | Promise<RequestFacts>
}

interface ReceivedForm extends FormAdmission {
  readonly leavesPage: boolean
  /** The path of the endpoints where the person signs in. */
  readonly prefix: string
}

/** Keeps forms of people who have to sign in, and sends them afterwards. */
export class KeptFormHandler {
  readonly #parts: KeptFormHandlerParts

  constructor(parts: KeptFormHandlerParts) {
    this.#parts = parts
  }

  /** Keeps a form during the sign-in of its person, or says that it is lost. */
  receive(incoming: Incoming, form: ReceivedForm): void {
    incoming.record.upstream = form.upstream.name
    endRecord(incoming)
    this.#receive(incoming, form).catch((error: unknown) => {
      if (!incoming.res.destroyed) this.#parts.refusals.fail(incoming, error)
    })
  }

  async #receive(incoming: Incoming, { upstream, expire, stepUp, leavesPage, prefix }: ReceivedForm): Promise<void> {
    const { realms, refusals, pages, proxy, log } = this.#parts
    const { req, res, facts, record } = incoming
    const options = refusals.optionsFor(incoming)
    const realm = realms.ofForm(upstream, prefix, facts.cookie)
    const outcome = await receiveForm(
      { req, res, facts, upstream, returnTo: options.returnTo, requestId: record.id },
      {
        ...{ kept: realm.kept, personCookie: realm.personCookie, log },
        idleTimeoutMs: proxy.bodyIdleTimeoutMs,
        bytesPerSecond: proxy.bodyRateBytesPerSecond,
      },
    )
    if (res.destroyed) return
    const expired = expire?.() ?? []
    if (typeof outcome === 'string') {
      const code = outcome === 'store' ? 'ERR_STORE_UNAVAILABLE' : 'ERR_UNAUTHENTICATED'
      const shown = { ...options, notKept: outcome, setCookies: expired, sessionEnded: leavesPage }
      return respond(incoming, pages.refusal(code, shown))
    }
    const signIn = { kept: outcome.reference, again: leavesPage, stepUp }
    const location = signInUrl(realm.prefix, options.returnTo ?? options.home, signIn)
    const next = { location, setCookies: [outcome.setCookie, ...expired] }
    respond(incoming, leavesPage ? pageToSignIn(next, incoming, pages) : redirectToSignIn(next))
  }

  /** Sends a kept request to its upstream. The page about it says why, if that is not possible. */
  send(incoming: Incoming, pass: Pass, reference: string): void {
    this.#send(incoming, pass, reference).catch((error: unknown) =>
      this.#parts.refusals.fail(incoming, error, { kept: reference }),
    )
  }

  async #send(incoming: Incoming, pass: Pass, reference: string): Promise<void> {
    const { realms, withOneCookie, proxy, reservedPrefix } = this.#parts
    const { req, res, record } = incoming
    const facts = await withOneCookie(incoming.facts)
    const realm = realms.ofSession(pass.upstream, pass.session, facts.cookie)
    const taken = await takeForSending(reference, req, facts, record.cause, { ...this.#parts, ...ofRealm(realm) })
    if (taken === undefined)
      return respond(incoming, redirect({ location: keptUrl(reservedPrefix, reference), setCookies: [] }))
    if (res.destroyed) {
      taken.close()
      return record.end(undefined, false)
    }
    res.once('close', taken.close)
    carry(incoming, pass, proxy, { content: taken.content })
  }
}

function ofRealm({ kept, personCookie, sessions, cookie, boundCookie, prefix }: Realms['all'][number]) {
  return { kept, personCookie, sessions, cookie, boundCookie, prefix }
}
