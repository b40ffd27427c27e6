import type { Clock } from '../../core/clock.ts'
import type { SubTag } from '../../core/names.ts'
import { randomToken } from '../../core/random.ts'
import type { Keyring } from '../../core/seal.ts'
import { expireCookie, readCookie, setCookie, type CookieAttributes } from '../../http/cookies.ts'
import { subTag } from '../record/record.ts'
import type { SessionStore } from '../store/store.ts'
import type { SessionCookie } from './cookie.ts'

/** A cookie of the gateway beside the session cookie. */
export class GatewayCookie {
  protected readonly cookie: CookieAttributes

  constructor(cookie: CookieAttributes) {
    this.cookie = cookie
  }

  /** `Set-Cookie` values that expire the cookie, if the browser has sent it. */
  expire(cookieHeader: string | undefined): readonly string[] {
    return this.valueIn(cookieHeader) === undefined ? [] : [expireCookie(this.cookie)]
  }

  protected valueIn(cookieHeader: string | undefined): string | undefined {
    return readCookie(cookieHeader, this.cookie.name)
  }
}

const rememberSeconds = 365 * 24 * 60 * 60

/**
 * The provider at which a person signed in last, where people choose between several. It gives no
 * access: a client may send any name. A sign-out expires it.
 */
export class ProviderCookie extends GatewayCookie {
  constructor(cookie: Pick<SessionCookie, 'withSuffixForSite'>) {
    super(cookie.withSuffixForSite('provider'))
  }

  set(provider: string): string {
    return setCookie(this.cookie, provider, rememberSeconds)
  }

  read(cookieHeader: string | undefined): string | undefined {
    return this.valueIn(cookieHeader)
  }
}

interface SealedCookieParts {
  readonly keyring: Keyring
  /** See `audienceOf`. */
  readonly audience: string
  readonly clock: Clock
}

interface SealedCookieKind {
  readonly cookie: CookieAttributes
  /** What its seal is for. */
  readonly purpose: string
  /** The longest value, in characters. */
  readonly maxLength: number
  readonly lifetimeMs: number
}

/** A cookie whose content is sealed with the time, so only this gateway can have set it. */
class SealedCookie<Content extends object> extends GatewayCookie {
  readonly #parts: SealedCookieParts
  readonly #kind: SealedCookieKind
  readonly #context: string

  constructor(kind: SealedCookieKind, parts: SealedCookieParts) {
    super(kind.cookie)
    this.#parts = parts
    this.#kind = kind
    this.#context = `gatehouse ${kind.purpose} for ${parts.audience}`
  }

  protected textOf(content: Content): string {
    return JSON.stringify({ ...content, at: this.#parts.clock.now() })
  }

  protected setText(text: string, maxAge?: number): string {
    return setCookie(this.cookie, this.#parts.keyring.seal(text, this.#context).toString('base64url'), maxAge)
  }

  /** `undefined` when the cookie is absent, too old, or was not set by this gateway. */
  protected open(cookieHeader: string | undefined): Content | undefined {
    const { maxLength, lifetimeMs } = this.#kind
    const value = this.valueIn(cookieHeader)
    if (value === undefined || value.length > maxLength || !/^[\w-]+$/.test(value)) return undefined
    const plain = this.#parts.keyring.open(Buffer.from(value, 'base64url'), this.#context)
    if (plain === undefined) return undefined
    const { at, ...content } = JSON.parse(plain.toString('utf8')) as { readonly at: number }
    return this.#parts.clock.now() - at <= lifetimeMs ? (content as Content) : undefined
  }
}

/** How long it is valid after the longest session, in ms: a page may be left open for long. */
const afterSessionMs = 7 * 24 * 60 * 60 * 1000

export interface PersonCookieParts extends SealedCookieParts {
  readonly cookie: Pick<SessionCookie, 'withSuffixForSite'>
  readonly absoluteTimeoutMs: number
}

/**
 * The person who signed in last in a browser, also after the session. It gives no access, and a
 * sign-out expires it. By this cookie, the gateway knows whose form it keeps.
 */
export class PersonCookie extends SealedCookie<{ readonly tag: SubTag }> {
  readonly #audience: string

  constructor({ cookie, absoluteTimeoutMs, ...parts }: PersonCookieParts) {
    const lifetimeMs = absoluteTimeoutMs + afterSessionMs
    super({ cookie: cookie.withSuffixForSite('person'), purpose: 'person', maxLength: 400, lifetimeMs }, parts)
    this.#audience = parts.audience
  }

  /** The tag of a `sub`, which is the first part of the keys of its kept requests. */
  tagOf(sub: string): SubTag {
    return subTag(this.#audience, sub)
  }

  set(sub: string): string {
    return this.setText(this.textOf({ tag: this.tagOf(sub) }))
  }

  read(cookieHeader: string | undefined): SubTag | undefined {
    return this.open(cookieHeader)?.tag
  }
}

/** How long the person has to decide which session to end, in ms. */
const decisionMs = 10 * 60 * 1000

/** The longest proof, in bytes: browsers ignore cookies of more than 4096 (RFC 6265bis §5.6). */
const maxProofBytes = 2_900

export interface RefusedSignInsParts extends SealedCookieParts {
  readonly cookie: Pick<SessionCookie, 'withSuffix'>
  readonly store: Pick<SessionStore, 'takeOnce'>
}

/** A person who has signed in at the provider, but has too many sessions. */
export interface RefusedSignIn {
  readonly sub: string
  /** The session at the provider. Absent: it is not known. */
  readonly sid?: string | undefined
  /** Known only to this browser. The forms of the page are derived from it. */
  readonly secret: string
}

/**
 * The proof that a browser has just signed in at the provider, although it has no session. It is of
 * use once, to end other sessions of the person, and gives no access.
 */
export class RefusedSignIns extends SealedCookie<RefusedSignIn> {
  readonly #store: RefusedSignInsParts['store']

  constructor({ cookie, store, ...parts }: RefusedSignInsParts) {
    const kind = { purpose: 'refused sign-in', maxLength: 4_000, lifetimeMs: decisionMs }
    super({ cookie: cookie.withSuffix('refused'), ...kind }, parts)
    this.#store = store
  }

  /** A new proof, and the `Set-Cookie` value that has it. */
  prove({ sub, sid }: Pick<RefusedSignIn, 'sub' | 'sid'>): {
    readonly refused: RefusedSignIn
    readonly setCookie: string
  } {
    const whole = { sub, sid, secret: randomToken(30) }
    // Without the sid, the session of this browser at the provider may end too.
    const refused = Buffer.byteLength(this.textOf(whole)) <= maxProofBytes ? whole : { ...whole, sid: undefined }
    return { refused, setCookie: this.setText(this.textOf(refused), decisionMs / 1000) }
  }

  read(cookieHeader: string | undefined): RefusedSignIn | undefined {
    return this.open(cookieHeader)
  }

  /**
   * Uses the proof; `false` when it was used before.
   * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
   */
  take({ secret }: RefusedSignIn): Promise<boolean> {
    return this.#store.takeOnce(`refused sign-in: ${secret}`, 2 * decisionMs)
  }
}
