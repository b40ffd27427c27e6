import { randomToken, sha256 } from '../core/random.ts'
import type { Keyring } from '../core/seal.ts'
import { cookiesNamed, expireCookie, readCookie, setCookie, type CookieAttributes } from '../http/cookies.ts'
import type { SessionCookie } from '../session/cookie.ts'
import { signInLifetimeMs } from '../session/endings.ts'

/**
 * One try to sign in, from the redirect to the provider until the browser is back. It travels
 * sealed in `state`, so that strangers leave nothing behind on the server; a small cookie binds it
 * to the browser that began it (RFC 9700 §4.7).
 */
export interface Attempt {
  readonly id: string
  readonly nonce: string
  readonly code_verifier: string
  readonly return_to: string
  /** The gateway's origin that the browser comes back to. */
  readonly origin: string
  /** As whose client, and at which provider: see `audienceOf`. */
  readonly audience: string
  /** In ms since the epoch. */
  readonly begun_at: number
  /**
   * The same in the store's time, by which it is compared with logouts; absent in those of earlier
   * versions.
   */
  readonly begun_at_store?: number
  /** The hash of the binding cookie's value. */
  readonly binding: string
}

/** More attempts than this at once make the oldest ones forgotten: cookies must not pile up. */
const mostAttempts = 16
const suffix = 'signin-'
const sealContext = 'gatehouse sign-in attempt'

export function beginAttempt(
  to: Pick<Attempt, 'return_to' | 'origin' | 'audience' | 'begun_at_store'>,
  now: number,
): { attempt: Attempt; secret: string } {
  const secret = randomToken(16)
  const attempt = {
    ...to,
    id: randomToken(12),
    nonce: randomToken(16),
    // RFC 7636 §4.1: 43 characters are the least.
    code_verifier: randomToken(32),
    begun_at: now,
    binding: sha256(secret),
  }
  return { attempt, secret }
}

/** The attempt as a `state` value. */
export function attemptToState(attempt: Attempt, keyring: Keyring): string {
  return keyring.seal(JSON.stringify(attempt), sealContext).toString('base64url')
}

/**
 * The attempt in a `state` value, or `undefined`: not ours, tampered with, or sealed by a key that
 * is gone.
 */
export function attemptFromState(state: string | undefined, keyring: Keyring): Attempt | undefined {
  if (state === undefined || !/^[\w-]+$/.test(state)) return undefined
  const plain = keyring.open(Buffer.from(state, 'base64url'), sealContext)
  return plain === undefined ? undefined : (JSON.parse(plain.toString('utf8')) as Attempt)
}

export function isExpired(attempt: Attempt, now: number): boolean {
  return now > attempt.begun_at + signInLifetimeMs
}

/** Whether this browser is the one that began the attempt. */
export function isBoundTo(attempt: Attempt, cookieHeader: string | undefined, cookie: SessionCookie): boolean {
  const [, secret = ''] = readCookie(cookieHeader, bindingCookie(attempt.id, cookie).name)?.split('.') ?? []
  return sha256(secret) === attempt.binding
}

/**
 * `Set-Cookie` values for a new attempt: its own cookie, and the end of the oldest ones when there
 * are too many.
 */
export function rememberAttempt(
  attempt: Attempt,
  secret: string,
  cookieHeader: string | undefined,
  cookie: SessionCookie,
): string[] {
  const others = othersIn(cookieHeader, cookie).sort((a, b) => b.begunAt - a.begunAt)
  return [
    setCookie(bindingCookie(attempt.id, cookie), `${attempt.begun_at.toString(36)}.${secret}`, signInLifetimeMs / 1000),
    ...others.slice(mostAttempts - 1).map(({ name }) => expireNamed(name, cookie)),
  ]
}

/**
 * `Set-Cookie` values that forget every attempt of this browser: once it is signed in, other tabs
 * go on by their session.
 */
export function forgetAttempts(cookieHeader: string | undefined, cookie: SessionCookie): string[] {
  return othersIn(cookieHeader, cookie).map(({ name }) => expireNamed(name, cookie))
}

/**
 * Of an attempt's id 8 characters name its cookie: enough to keep the tabs of one browser apart.
 */
function bindingCookie(id: string, cookie: SessionCookie): CookieAttributes {
  return cookie.beside(suffix + id.slice(0, 8))
}

interface Other {
  readonly name: string
  /** In ms since the epoch; 0 when it cannot be told. */
  readonly begunAt: number
}

/** Names come from the browser: only those that we could have set are set again. */
function othersIn(cookieHeader: string | undefined, cookie: SessionCookie): Other[] {
  const prefix = cookie.beside(suffix).name
  const ours = [...cookiesNamed(cookieHeader, prefix)].filter(([name]) => /^[\w-]{8}$/.test(name.slice(prefix.length)))
  return ours
    .slice(0, 4 * mostAttempts)
    .map(([name, value]) => ({ name, begunAt: Number.parseInt(value.split('.')[0] ?? '', 36) || 0 }))
}

function expireNamed(name: string, cookie: SessionCookie): string {
  return expireCookie({ ...cookie.beside(suffix), name })
}
