import type { DeviceBindingConfig } from '../../config/model/session.ts'
import { BoundedMap } from '../../core/bounded-map.ts'
import { type Clock, isSoonAfter, isWithin } from '../../core/clock.ts'
import type { SessionKey, SubTag } from '../../core/names.ts'
import { randomToken } from '../../core/random.ts'
import type { Keyring } from '../../core/seal.ts'
import { type CookieAttributes, expireCookie, readCookie, setCookie } from '../../http/cookies.ts'
import type { Viewer } from '../people/person-sessions.ts'
import { type BoundDevice, type SessionRecord, subTag } from '../record/record.ts'
import type { SessionStore } from '../store/store.ts'
import { boundSuffix, type SessionCookie } from './session-cookie.ts'

/** A cookie of the gateway beside the session cookie. */
class GatewayCookie {
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
    const { keyring } = this.#parts
    const opened = keyring.openJson<{ at: number }>('cookie', Buffer.from(value, 'base64url'), this.#context)
    if (opened === undefined || opened === 'newer') return undefined
    const { at, ...content } = opened
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
export type RefusedSignIn = Omit<Viewer, 'current'>

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

/**
 * How long a cookie is accepted after the browser has dropped it, in ms. Requests that the browser
 * sends together with the proof arrive with the previous cookie, or without one. The clocks of
 * replicas may differ by this time.
 */
const overlapMs = 30_000
const maxVerified = 20_000

/** Why a request with the cookie of a bound session does not come from its device. */
export type BoundCookieFault = 'missing' | 'expired' | 'invalid'

export interface BoundCookieParts {
  readonly cookie: Pick<SessionCookie, 'withSuffix'>
  readonly config: DeviceBindingConfig
  readonly keyring: Keyring
  readonly clock: Clock
}

/**
 * The short-lived cookie that a browser gets for each proof that it has the key of the session. It
 * is sealed for the session, so replicas verify it without the store, and only once.
 */
export class BoundCookie extends GatewayCookie {
  readonly #parts: BoundCookieParts
  readonly #verified = new BoundedMap<string, Verified>('device_proofs', maxVerified)
  /** Whether browsers register keys. */
  readonly isOn: boolean

  constructor(parts: BoundCookieParts) {
    super(parts.cookie.withSuffix(boundSuffix))
    this.#parts = parts
    this.isOn = parts.config.isOn
  }

  get name(): string {
    return this.cookie.name
  }

  /** The attributes of the cookie, as in `Set-Cookie`, without `Max-Age`. */
  get attributes(): string {
    return setCookie(this.cookie, '').replace(/^[^;]*; /, '')
  }

  /** The `Set-Cookie` value after a proof for a session. */
  set(key: SessionKey): string {
    const { keyring, clock, config } = this.#parts
    const plain = Buffer.alloc(8)
    plain.writeDoubleBE(clock.now())
    const value = keyring.seal(plain, contextOf(key)).toString('base64url')
    return setCookie(this.cookie, value, Math.floor(config.cookieLifetimeMs / 1000))
  }

  /** Why a request with the cookie of this session is refused; `undefined` when it is not. */
  faultOf(
    key: SessionKey,
    device: BoundDevice | undefined,
    cookieHeader: string | undefined,
  ): BoundCookieFault | undefined {
    if (device === undefined || !this.isOn) return undefined
    const fault = this.#faultIn(key, cookieHeader)
    // Requests that the browser sent before it had the first cookie.
    if (fault !== undefined && isSoonAfter(overlapMs, device.bound_at, this.#parts.clock.now())) return undefined
    return fault
  }

  /** Whether a session needs a key and has none, some time after the sign-in. */
  lacksDevice({ device, created_at }: Pick<SessionRecord, 'device' | 'created_at'>): boolean {
    const { isRequired, registrationGraceMs } = this.#parts.config
    return isRequired && device === undefined && !isSoonAfter(registrationGraceMs, created_at, this.#parts.clock.now())
  }

  #faultIn(key: SessionKey, cookieHeader: string | undefined): BoundCookieFault | undefined {
    const value = this.valueIn(cookieHeader)
    if (value === undefined) return 'missing'
    const verified = this.#verified.get(value) ?? this.#verify(value, key)
    if (verified?.key !== key) return 'invalid'
    const lifetimeMs = this.#parts.config.cookieLifetimeMs + 2 * overlapMs
    return isWithin(lifetimeMs, verified.provedAt - overlapMs, this.#parts.clock.now()) ? undefined : 'expired'
  }

  #verify(value: string, key: SessionKey): Verified | undefined {
    if (!/^[\w-]{54}$/.test(value)) return undefined
    const plain = this.#parts.keyring.open(Buffer.from(value, 'base64url'), contextOf(key))
    if (plain?.length !== 8) return undefined
    const verified = { key, provedAt: plain.readDoubleBE() }
    this.#verified.set(value, verified)
    return verified
  }
}

interface Verified {
  readonly key: SessionKey
  /** In ms since the epoch. */
  readonly provedAt: number
}

function contextOf(key: SessionKey): string {
  return `gatehouse bound cookie of ${key}`
}
