import type { ErrorCode } from '../core/error-codes.ts'
import { GatewayError } from '../core/errors.ts'
import type { SessionCookie } from '../session/cookie.ts'
import type { ExpiredCookies } from '../session/expired-cookies.ts'
import { sessionKey, type StoredSession } from '../session/record.ts'
import type { Sessions } from '../session/sessions.ts'
import type { Upkeep } from '../tokens/upkeep.ts'

/** The sender of a request, according to its session cookie. */
export type Identity =
  | { readonly kind: 'signed_in'; readonly session: StoredSession }
  | AnonymousIdentity
  | { readonly kind: 'unavailable'; readonly code: ErrorCode; readonly why: string }

/**
 * `staleCookie`: the request has a session cookie, but no session. The response expires it.
 */
export interface AnonymousIdentity {
  readonly kind: 'anonymous'
  readonly staleCookie: boolean
  readonly ended?: EndedCookie
}

/** The cookie of a session that has ended. */
export interface EndedCookie {
  /** Whether a recent response has expired or replaced it in the browser. */
  isExpired(): boolean
  /** A response expires it. */
  noteExpired(): void
}

export interface IdentifyParts {
  readonly cookie: SessionCookie
  readonly sessions: Pick<Sessions, 'findInMemory' | 'find'>
  readonly expiredCookies: ExpiredCookies
  readonly upkeep: Pick<Upkeep, 'fresh'>
}

const anonymous: Identity = { kind: 'anonymous', staleCookie: false }
const withStaleCookie = { kind: 'anonymous', staleCookie: true } as const

/**
 * Finds the session of a `Cookie` header. Returns no promise when the session is in memory and
 * needs no refresh. Returns `unavailable` when the store or the provider cannot be reached.
 */
export function identify(cookieHeader: string | undefined, parts: IdentifyParts): Identity | Promise<Identity> {
  const id = parts.cookie.read(cookieHeader)
  if (id === undefined) return parts.cookie.isIn(cookieHeader) ? withStaleCookie : anonymous
  const key = sessionKey(id)
  const asIdentity = (session: StoredSession | undefined): Identity =>
    session === undefined
      ? {
          ...withStaleCookie,
          ended: {
            isExpired: () => parts.expiredCookies.has(key),
            noteExpired: () => parts.expiredCookies.add(key),
          },
        }
      : { kind: 'signed_in', session }
  const inMemory = parts.sessions.findInMemory(key)
  if (inMemory === undefined)
    return parts.sessions
      .find(key)
      .then((found) => found && parts.upkeep.fresh(found))
      .then(asIdentity, unavailable)
  const fresh = parts.upkeep.fresh(inMemory)
  return fresh instanceof Promise ? fresh.then(asIdentity, unavailable) : { kind: 'signed_in', session: fresh }
}

function unavailable(error: unknown): Identity {
  if (error instanceof GatewayError)
    return {
      kind: 'unavailable',
      code: error.status === 503 ? error.code : 'ERR_PROVIDER_UNAVAILABLE',
      why: error.message,
    }
  throw error
}
