import type { Clock } from '../../core/clock.ts'
import { randomToken } from '../../core/random.ts'
import type { Keyring } from '../../core/seal.ts'
import { expireCookie, readCookie, setCookie, type CookieAttributes } from '../../http/cookies.ts'
import type { SessionStore } from '../store/store.ts'
import type { SessionCookie } from './cookie.ts'

/** How long the person has to decide which session to end, in ms. */
const lifetimeMs = 10 * 60 * 1000

/**
 * The longest proof, in bytes before it is sealed. A browser ignores a cookie of more than 4096
 * bytes (RFC 6265bis §5.6).
 */
const maxBytes = 2_900

export interface RefusedSignInsParts {
  readonly cookie: Pick<SessionCookie, 'withSuffix'>
  readonly keyring: Keyring
  /** See `audienceOf`. */
  readonly audience: string
  readonly clock: Clock
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
 * The proof that a browser has just signed in at the provider, although it has no session. It is
 * sealed in a cookie, and is of use once: to end other sessions of the person. It gives no access.
 */
export class RefusedSignIns {
  readonly #parts: RefusedSignInsParts
  readonly #attributes: CookieAttributes
  readonly #context: string

  constructor(parts: RefusedSignInsParts) {
    this.#parts = parts
    this.#attributes = parts.cookie.withSuffix('refused')
    this.#context = `gatehouse refused sign-in for ${parts.audience}`
  }

  /** A new proof, and the `Set-Cookie` value that has it. */
  prove({ sub, sid }: Pick<RefusedSignIn, 'sub' | 'sid'>): {
    readonly refused: RefusedSignIn
    readonly setCookie: string
  } {
    const { keyring, clock } = this.#parts
    const whole = { sub, sid, secret: randomToken(30) }
    const textOf = (refused: RefusedSignIn) => JSON.stringify({ ...refused, at: clock.now() } satisfies Proof)
    // Without the sid, the session of this browser at the provider may end too.
    const refused = Buffer.byteLength(textOf(whole)) <= maxBytes ? whole : { ...whole, sid: undefined }
    const sealed = keyring.seal(textOf(refused), this.#context).toString('base64url')
    return { refused, setCookie: setCookie(this.#attributes, sealed, lifetimeMs / 1000) }
  }

  /**
   * The refused sign-in of a browser; `undefined` when there is none, or its time is over.
   */
  read(cookieHeader: string | undefined): RefusedSignIn | undefined {
    const value = readCookie(cookieHeader, this.#attributes.name)
    if (value === undefined || !/^[\w-]{1,4000}$/.test(value)) return undefined
    const plain = this.#parts.keyring.open(Buffer.from(value, 'base64url'), this.#context)
    if (plain === undefined) return undefined
    const { at, ...refused } = JSON.parse(plain.toString('utf8')) as Proof
    return this.#parts.clock.now() - at <= lifetimeMs ? refused : undefined
  }

  /**
   * Uses the proof.
   * @returns `false` when it was used before
   * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
   */
  take({ secret }: RefusedSignIn): Promise<boolean> {
    return this.#parts.store.takeOnce(`refused sign-in: ${secret}`, 2 * lifetimeMs)
  }

  /** `Set-Cookie` values that expire the proof, if the browser has sent one. */
  expire(cookieHeader: string | undefined): readonly string[] {
    return readCookie(cookieHeader, this.#attributes.name) === undefined ? [] : [expireCookie(this.#attributes)]
  }
}

interface Proof extends RefusedSignIn {
  /** In ms since the epoch. */
  readonly at: number
}
