import type { Clock } from '../../core/clock.ts'
import type { SubTag } from '../../core/names.ts'
import type { Keyring } from '../../core/seal.ts'
import { expireCookie, readCookie, setCookie, type CookieAttributes } from '../../http/cookies.ts'
import { subTag } from '../record/record.ts'
import type { SessionCookie } from './cookie.ts'

/**
 * How long the cookie is valid after the longest session, in ms. A page that a person left open may
 * be used long after the session.
 */
const afterSessionMs = 7 * 24 * 60 * 60 * 1000

export interface PersonCookieParts {
  readonly cookie: Pick<SessionCookie, 'withSuffixForSite'>
  readonly keyring: Keyring
  /** See `audienceOf`. */
  readonly audience: string
  readonly absoluteTimeoutMs: number
  readonly clock: Clock
}

/**
 * The cookie that names the person who signed in last in a browser, also after the session has
 * ended. It is sealed, gives access to nothing, and a sign-out expires it. The gateway keeps forms
 * only of browsers with this cookie, so it knows whose form it keeps.
 */
export class PersonCookie {
  readonly #attributes: CookieAttributes
  readonly #parts: PersonCookieParts
  readonly #context: string
  readonly #lifetimeMs: number

  constructor(parts: PersonCookieParts) {
    this.#parts = parts
    this.#attributes = parts.cookie.withSuffixForSite('person')
    this.#context = `gatehouse person for ${parts.audience}`
    this.#lifetimeMs = parts.absoluteTimeoutMs + afterSessionMs
  }

  /** The tag of a `sub`, which is the first part of the keys of its kept requests. */
  tagOf(sub: string): SubTag {
    return subTag(this.#parts.audience, sub)
  }

  /** The `Set-Cookie` value for a person who has just signed in. */
  set(sub: string): string {
    const { keyring, clock } = this.#parts
    const person: Person = { tag: this.tagOf(sub), at: clock.now() }
    const sealed = keyring.seal(JSON.stringify(person), this.#context).toString('base64url')
    return setCookie(this.#attributes, sealed)
  }

  /** The person; `undefined` when the cookie is absent, too old, or was not set by this gateway. */
  read(cookieHeader: string | undefined): SubTag | undefined {
    const value = readCookie(cookieHeader, this.#attributes.name)
    if (value === undefined || !/^[\w-]{1,400}$/.test(value)) return undefined
    const plain = this.#parts.keyring.open(Buffer.from(value, 'base64url'), this.#context)
    if (plain === undefined) return undefined
    const { tag, at } = JSON.parse(plain.toString('utf8')) as Person
    return this.#parts.clock.now() - at <= this.#lifetimeMs ? tag : undefined
  }

  /** `Set-Cookie` values that expire the cookie, if the browser has sent it. */
  expire(cookieHeader: string | undefined): readonly string[] {
    return readCookie(cookieHeader, this.#attributes.name) === undefined ? [] : [expireCookie(this.#attributes)]
  }
}

interface Person {
  readonly tag: SubTag
  /** When the person signed in, in ms since the epoch. */
  readonly at: number
}
