import { externalUrlAt, startPageOf } from '../config/hosts.ts'
import type { GatewayConfig } from '../config/model/gateway.ts'
import type { UpstreamConfig } from '../config/model/upstream.ts'
import type { Clock } from '../core/clock.ts'
import { hasAccessKey } from '../core/credentials.ts'
import type { ErrorCode } from '../core/error-codes.ts'
import { GatewayError, reason } from '../core/errors.ts'
import { fieldsOf, kindOfField } from '../core/header-fields.ts'
import type { MisuseLog } from '../device/misuse.ts'
import { type Admission, hasEnded } from '../gate/admission.ts'
import { type Admit, misuseIn } from '../gate/admit.ts'
import { auditCaller, auditDenial, auditObserved, refusalOf } from '../gate/refusal.ts'
import { withoutCookies } from '../http/cookies.ts'
import { textOf, type TrustedProxies } from '../http/forwarded.ts'
import { isPage, isReserved, type RequestFacts } from '../http/request-facts.ts'
import { clearCache, cookies, redirect, type Response, withHeaders } from '../http/response.ts'
import { canonicalName, ReservedNames, reservedNames } from '../identity/reserved-names.ts'
import type { Audit } from '../observe/audit.ts'
import type { Log } from '../observe/log.ts'
import type { RequestRecord } from '../observe/request-record.ts'
import { type Pages, refusalFor, type RefusalOptions } from '../pages/pages.ts'
import { checkedFacts, type CheckRequest } from './check-request.ts'

export interface ForwardAuthParts {
  readonly admit: Admit
  readonly trusted: TrustedProxies
  readonly isGatewayCookie: (name: string) => boolean
  readonly pages: Pages
  readonly log: Log
  readonly audit: Audit
  readonly misuseLog: Pick<MisuseLog, 'note'>
  readonly sessions: Parameters<typeof hasEnded>[1]
  readonly clock: Pick<Clock, 'now'>
}

/** The proxy may send the request to the application. */
export interface Permission {
  readonly kind: 'permission'
  /** The page of the request, for a proxy that has to send the client there again. */
  readonly url: string
  /** Fields that the proxy sets: names and values. They replace those of the client. */
  readonly set: readonly (readonly [name: string, value: string])[]
  /** Fields of the client that the proxy removes, in lower case. */
  readonly remove: readonly string[]
  /** `Set-Cookie` values for the response of the application. */
  readonly setCookies: readonly string[]
}

/** The response that the proxy sends to the client. Its status is not a success. */
export interface Refusal {
  readonly kind: 'refusal'
  readonly response: Response
}

/** Fields that applications may read in place of the URL that the proxy sends. */
const addressFields = ['x-original-url', 'x-original-uri', 'x-original-method', 'x-rewrite-url']
/** The application could take the certificate of a client for one that the proxy has verified. */
const certificateFields = fieldsOf('client_certificate')

type ForwardAuthConfig = Pick<GatewayConfig, 'upstreams' | 'externalUrl' | 'reservedPrefix' | 'session'>

/**
 * Decides about requests that another proxy carries. The decision is the one about requests that
 * the gateway carries itself; only how it is carried out differs.
 */
export class ForwardAuth {
  readonly #config: ForwardAuthConfig
  readonly #parts: ForwardAuthParts
  readonly #reserved: ReadonlyMap<UpstreamConfig, ReservedNames>

  constructor(config: ForwardAuthConfig, parts: ForwardAuthParts) {
    this.#config = config
    this.#parts = parts
    const asked = config.upstreams.filter(({ forwardAuth }) => forwardAuth)
    this.#reserved = new Map(asked.map((upstream) => [upstream, reservedNames(upstream, config.upstreams)]))
  }

  /** Whether another proxy carries the requests of some upstream. */
  get isUsed(): boolean {
    return this.#reserved.size > 0
  }

  /**
   * Decides about the request that a proxy describes.
   * @param read reads the check request; its error is a refusal
   * @param record of the check request; it gets the facts about the described request
   */
  async check(read: () => CheckRequest, record: RequestRecord): Promise<Permission | Refusal> {
    let checkRequest: CheckRequest | undefined
    try {
      checkRequest = read()
      return await this.#decide(checkRequest, record)
    } catch (error) {
      const code = error instanceof GatewayError ? error.code : 'ERR_INTERNAL'
      this.#logRefusal(record, code, reason(error))
      record.code = code
      const asPage = checkRequest !== undefined && isPage(checkRequest.method, checkRequest.headers)
      return refused(this.#parts.pages.refusal(code, { asPage, ...this.#context(checkRequest, record) }))
    }
  }

  async #decide(checkRequest: CheckRequest, record: RequestRecord): Promise<Permission | Refusal> {
    record.method = checkRequest.method
    const facts = checkedFacts(checkRequest, this.#parts.trusted)
    record.client = facts.forwarded.clientAddress
    record.host = facts.host
    record.path = facts.target.path
    const { reservedPrefix } = this.#config
    if (isReserved(facts.target, reservedPrefix))
      throw new GatewayError(
        'ERR_NO_ROUTE',
        `requests below ${reservedPrefix} are for the gateway: the proxy has to send them there without asking`,
      )
    const admission = await this.#parts.admit(facts)
    const misuse = misuseIn(admission)
    if (misuse !== undefined) this.#parts.misuseLog.note(misuse, facts.skippedSession, record.cause)
    if (admission.kind !== 'pass') return refused(this.#refusal(admission, checkRequest, facts, record))
    const { sessions, clock } = this.#parts
    if (hasEnded(admission, sessions, clock.now()))
      throw new GatewayError('ERR_UNAUTHENTICATED', 'the session or the access token has ended meanwhile')
    record.upstream = admission.upstream.name
    record.session = admission.session
    record.caller = admission.caller
    if (admission.observed !== undefined) auditObserved(this.#parts.audit, record, admission.observed)
    return this.#permission(admission, checkRequest, facts)
  }

  #permission(
    { upstream, identity, caller, withheldCookies = [], expire }: Admission & { readonly kind: 'pass' },
    { headers, removesListed }: CheckRequest,
    { cookie, host, target }: RequestFacts,
  ): Permission {
    const reserved = this.#reserved.get(upstream) ?? new ReservedNames([], [])
    const received = Object.keys(headers).filter((name) => headers[name] !== undefined)
    const disguised = received.find((name) => isDisguised(name, reserved))
    if (disguised !== undefined && !removesListed)
      throw new GatewayError(
        'ERR_REQUEST_MALFORMED',
        `the application must not get the field ${disguised}: it could read it as one that a client must not set, or request_headers removes it`,
      )
    const kept =
      cookie === undefined || hasAccessKey('cookie', cookie)
        ? undefined
        : withoutCookies(cookie, (name) => this.#isWithheld(name, withheldCookies))
    const set = [...pairsOf(identity), ...(kept === undefined ? [] : [['Cookie', kept] as const])]
    const isSet = new Set(set.map(([name]) => name.toLowerCase()))
    const unwanted = [
      ...[...reserved.own, 'cookie', ...addressFields, ...certificateFields, ...received.filter(isUnwanted)],
      // The credentials are for the gateway.
      ...(caller === undefined ? [] : ['authorization']),
      ...received.filter((name) => name !== 'cookie' && hasAccessKey(name, textOf(headers, name) ?? '')),
    ]
    const listed = removesListed ? received.filter((name) => isDisguised(name, reserved)) : []
    return {
      kind: 'permission',
      url: externalUrlAt(host, this.#config).origin + target.path + target.query,
      set,
      remove: [...new Set([...unwanted, ...listed])].filter((name) => !isSet.has(name)),
      setCookies: expire?.() ?? [],
    }
  }

  #isWithheld(name: string, withheld: readonly string[]): boolean {
    return this.#parts.isGatewayCookie(name) || withheld.includes(name)
  }

  #refusal(
    admission: Exclude<Admission, { kind: 'pass' }>,
    checkRequest: CheckRequest,
    facts: RequestFacts,
    record: RequestRecord,
  ): Response {
    const { pages } = this.#parts
    const context = this.#context(checkRequest, record)
    const externalUrl = externalUrlAt(facts.host, this.#config)
    // Some proxies complete a relative Location with the address at which they reach the gateway.
    const absolute = (location: string) => new URL(location, externalUrl).href
    if (facts.isUpgrade) return this.#rejected(admission, { ...context, asPage: false }, record)
    switch (admission.kind) {
      case 'sign_in': {
        const { location, setCookies, sessionEnded, leavesPage = false, form } = admission
        if (form !== undefined) {
          // The proxy has the content, so the gateway cannot keep it.
          const options = { ...this.#pageOptions(checkRequest, facts, record), sessionEnded: leavesPage }
          record.code = 'ERR_UNAUTHENTICATED'
          return pages.refusal(record.code as ErrorCode, {
            ...options,
            setCookies: form.expire?.() ?? [],
            notKept: 'off',
          })
        }
        const response = leavesPage
          ? withHeaders(pages.redirectPage(absolute(location), context), cookies(setCookies))
          : redirect({ location: absolute(location), setCookies }, { 'Referrer-Policy': 'same-origin' })
        return sessionEnded ? withHeaders(response, clearCache) : response
      }
      case 'sign_out':
        return redirect({ location: absolute(admission.location), setCookies: [] })
      case 'reload':
        return pages.redirectPage(absolute(admission.location), context)
      default:
        return this.#rejected(admission, this.#pageOptions(checkRequest, facts, record), record)
    }
  }

  #rejected(admission: Exclude<Admission, { kind: 'pass' }>, options: RefusalOptions, record: RequestRecord): Response {
    const { code, why, options: details } = refusalOf(admission)
    if ('rule' in admission) auditDenial(this.#parts.audit, record, { ...admission, code })
    else if (admission.kind === 'caller_refused') auditCaller(this.#parts.audit, record, admission)
    else if (admission.kind !== 'unauthorized') this.#logRefusal(record, code, why)
    record.code = code
    return this.#parts.pages.refusal(code, { ...options, ...details, mayRepeat: admission.kind === 'unauthorized' })
  }

  #pageOptions(checkRequest: CheckRequest, facts: RequestFacts, record: RequestRecord): RefusalOptions {
    const home = startPageOf(facts.host, this.#config.upstreams)
    return { ...refusalFor(facts, checkRequest.headers, home), ...this.#context(checkRequest, record) }
  }

  #context(checkRequest: CheckRequest | undefined, { id: requestId }: RequestRecord) {
    const language = checkRequest?.headers['accept-language']
    return { requestId, acceptLanguage: typeof language === 'string' ? language : undefined }
  }

  #logRefusal({ id, method, upstream, session, askedBy }: RequestRecord, code: ErrorCode, why: string): void {
    const fields = { request: id, code, reason: why, method, upstream, session, asked_by: askedBy }
    if (code === 'ERR_INTERNAL') this.#parts.log.error('request.failed', fields)
    else this.#parts.log.warn('request.refused', fields)
  }
}

/** A proxy takes a success for permission, so the response gets another status. */
function refused(response: Response): Refusal {
  return { kind: 'refusal', response: response.status < 300 ? { ...response, status: 401 } : response }
}

/**
 * Whether an application may read a field of the client as one that only the gateway sets or that
 * must not reach it, although its name is spelt differently, or as another method, or whether
 * `request_headers` removes it. A proxy that removes fields by the exact names of `headers` lets it
 * through.
 */
function isDisguised(name: string, reserved: ReservedNames): boolean {
  if (kindOfField(name) === 'method_override') return reserved.has(name)
  const plain = canonicalName(name)
  return !reserved.own.has(name) && (reserved.has(plain) || (plain !== name && isUnwanted(plain)))
}

/** Whether a field must not reach an application, whatever the configuration says. */
function isUnwanted(name: string): boolean {
  const kind = kindOfField(name)
  return kind === 'other_address' || kind === 'proxy_setting' || kind === 'client_certificate'
}

function pairsOf(fields: readonly string[]): (readonly [string, string])[] {
  return fields.flatMap((name, index) => (index % 2 === 0 ? [[name, fields[index + 1] ?? ''] as const] : []))
}
