import type { Clock } from '../core/clock.ts'
import { randomToken, sha256 } from '../core/random.ts'
import type { Keyring } from '../core/seal.ts'
import { signInLifetimeMs } from '../core/sign-in-lifetime.ts'
import type { StepUp } from '../core/step-up.ts'
import { type CookieAttributes, cookiesNamed, expireCookie, readCookie, setCookie } from '../http/cookies.ts'
import type { Log } from '../observe/log.ts'
import type { SessionCookie } from '../session/cookies/session-cookie.ts'

/**
 * A sign-in transaction: from the redirect to the provider until the browser returns. It is sealed
 * in `state`, so the server stores nothing, and bound to its browser by a cookie (RFC 9700 §4.7).
 */
export interface SignInTransaction {
  readonly id: string
  readonly nonce: string
  readonly code_verifier: string
  readonly return_to: string
  /** The reference of the kept request that waits for this sign-in. */
  readonly kept?: string | undefined
  readonly stepUp?: StepUp | undefined
  /** The sign-in makes a key for the person with this `sub`, and no session. */
  readonly key?: WantedKey | undefined
  /** The origin of the gateway that the browser returns to. */
  readonly origin: string
  /** The provider and the client: see `audienceOf`. */
  readonly audience: string
  /** In ms since the epoch. */
  readonly begun_at: number
  /** By the clock of the store, as logouts are. Absent in transactions of earlier versions. */
  readonly begun_at_store?: number
  /** The sign-in began over http, although `external_url` is https. */
  readonly isOverHttp?: true
  /** The hash of the binding cookie's value. */
  readonly binding: string
}

/** The key that a person makes. */
export interface WantedKey {
  readonly name: string
  readonly upstream: string
  readonly sub: string
}

/** The largest number of transactions per browser. The cookies of the oldest ones are expired. */
const maxTransactions = 16
/** The largest number of earlier transactions that the cookie of a transaction names. */
const maxReplaced = 64
const suffix = 'signin-'
const sealContext = 'gatehouse sign-in attempt'

/** Begins a transaction, at `now` in ms since the epoch. `secret` is for its cookie. */
export function beginTransaction(
  to: Pick<
    SignInTransaction,
    'return_to' | 'kept' | 'stepUp' | 'key' | 'origin' | 'audience' | 'begun_at_store' | 'isOverHttp'
  >,
  now: number,
): { transaction: SignInTransaction; secret: string } {
  const secret = randomToken(16)
  const transaction = {
    ...to,
    id: randomToken(12),
    nonce: randomToken(16),
    // At least 43 characters (RFC 7636 §4.1).
    code_verifier: randomToken(32),
    begun_at: now,
    binding: sha256(secret),
  }
  return { transaction, secret }
}

export function transactionToState(transaction: SignInTransaction, keyring: Keyring): string {
  return keyring.seal(JSON.stringify(transaction), sealContext).toString('base64url')
}

/**
 * Opens a `state` value; `undefined` when it was changed, not sealed with a configured key, or is
 * of a newer version.
 */
export function transactionFromState(state: string | undefined, keyring: Keyring): SignInTransaction | undefined {
  if (state === undefined || !/^[\w-]+$/.test(state)) return undefined
  const opened = keyring.openJson<SignInTransaction>('sign_in', Buffer.from(state, 'base64url'), sealContext)
  return opened === 'newer' ? undefined : opened
}

export function isExpired(transaction: SignInTransaction, now: number): boolean {
  return now > transaction.begun_at + signInLifetimeMs
}

/** Whether this browser began the transaction. */
export function isBoundTo(
  transaction: SignInTransaction,
  cookieHeader: string | undefined,
  cookie: SessionCookie,
): boolean {
  const [, secret = ''] = readCookie(cookieHeader, bindingCookie(transaction.id, cookie).name)?.split('.') ?? []
  return sha256(secret) === transaction.binding
}

/** `Set-Cookie` values that set the cookie of a transaction, and expire the oldest of too many. */
export function bindTransaction(
  transaction: SignInTransaction,
  secret: string,
  cookieHeader: string | undefined,
  cookie: SessionCookie,
): string[] {
  const others = bindingCookiesIn(cookieHeader, cookie).sort((a, b) => b.begunAt - a.begunAt)
  const oldest = others.slice(maxTransactions - 1)
  const replaced = oldest.flatMap(({ id, replaced }) => [id, ...replaced]).slice(0, maxReplaced)
  const value = [transaction.begun_at.toString(36), secret, ...replaced].join('.')
  return [
    setCookie(bindingCookie(transaction.id, cookie), value, signInLifetimeMs / 1000),
    ...oldest.map(({ attributes }) => expireCookie(attributes)),
  ]
}

/** `Set-Cookie` values that expire all transactions: other tabs use the session then. */
export function expireTransactions(cookieHeader: string | undefined, cookie: SessionCookie): string[] {
  return bindingCookiesIn(cookieHeader, cookie).map(({ attributes }) => expireCookie(attributes))
}

/** Whether this browser, and no other one, began the transaction, but later ones took its place. */
export function isReplaced(
  { id }: SignInTransaction,
  cookieHeader: string | undefined,
  cookie: SessionCookie,
): boolean {
  return bindingCookiesIn(cookieHeader, cookie).some(({ replaced }) => replaced.includes(shortId(id)))
}

/** The name has 8 characters of the id, which is enough to distinguish the tabs of a browser. */
function bindingCookie(id: string, cookie: SessionCookie): CookieAttributes {
  return cookie.withSuffix(suffix + shortId(id))
}

function shortId(id: string): string {
  return id.slice(0, 8)
}

interface BindingCookie {
  readonly attributes: CookieAttributes
  /** The part of the id in its name. */
  readonly id: string
  /** The transactions (as in `id`) whose cookies have expired for this one and earlier ones. */
  readonly replaced: readonly string[]
  /** In ms since the epoch; 0 when it is unknown. */
  readonly begunAt: number
}

/** The binding cookies of this browser. A client may send any name, so others are left out. */
function bindingCookiesIn(cookieHeader: string | undefined, cookie: SessionCookie): BindingCookie[] {
  const attributes = cookie.withSuffix(suffix)
  const prefix = attributes.name
  const ours = [...cookiesNamed(cookieHeader, prefix)].filter(([name]) => /^[\w-]{8}$/.test(name.slice(prefix.length)))
  return ours.slice(0, 4 * maxTransactions).map(([name, value]) => {
    const [begunAt = '', , ...replaced] = value.split('.', 2 + maxReplaced)
    const id = name.slice(prefix.length)
    return { attributes: { ...attributes, name }, id, replaced, begunAt: Number.parseInt(begunAt, 36) || 0 }
  })
}

/** Earlier sign-ins may still be under way, in ms. */
const patienceMs = 5_000

/**
 * Whether browsers come back from the provider. If it rejects the redirect URI, its page says so
 * and the browser stays there (RFC 6749 §4.1.2.1), so the gateway learns nothing. The log then has
 * one line, at the second sign-in.
 */
export class Returns {
  readonly #clock: Clock
  readonly #log: Log
  /** When the first sign-in began, in ms since the epoch. */
  #firstAt: number | undefined
  #isDecided = false

  constructor({ clock, log }: { readonly clock: Clock; readonly log: Log }) {
    this.#clock = clock
    this.#log = log
  }

  noteBegun(redirect_uri: string): void {
    const now = this.#clock.now()
    this.#firstAt ??= now
    if (this.#isDecided || now - this.#firstAt < patienceMs) return
    this.#isDecided = true
    this.#log.info('sign_in.none_returned', {
      reason: 'no browser has come back from the provider since the start',
      hint: `If its page shows an error, register ${redirect_uri} as a redirect URI of this client at the provider.`,
    })
  }

  noteReturned(): void {
    this.#isDecided = true
  }
}

/** It must be exactly the same in every request (OpenID Connect Core §3.1.2.1). */
export function redirectUri(externalUrl: URL, prefix: string): string {
  return new URL(`${prefix}callback`, externalUrl).href
}
