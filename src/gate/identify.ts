import type { ErrorCode } from '../core/error-codes.ts'
import { GatewayError } from '../core/errors.ts'
import type { SessionKey } from '../core/names.ts'
import type { Misuse } from '../device/misuse.ts'
import type { CookieExpiry } from '../session/cookies/cookie-expiry.ts'
import type { BoundCookie } from '../session/cookies/gateway-cookies.ts'
import type { ExpiredCookies, SessionCookie } from '../session/cookies/session-cookie.ts'
import type { SessionsOfAudience } from '../session/live/live-sessions.ts'
import { type Principal, sessionKey, type StoredSession } from '../session/record/record.ts'
import type { Upkeep } from '../tokens/upkeep.ts'

/** What the decision needs to know of a provider. */
export interface RealmOfPerson {
  /** The path of the endpoints of the provider. */
  readonly prefix: string
  readonly clockToleranceMs: number
  readonly cookie: Pick<SessionCookie, 'expireAll' | 'isOfFrame'> & { readonly expiry: Pick<CookieExpiry, 'wherever'> }
}

/** A provider with its sessions. */
export interface Realm extends RealmOfPerson {
  readonly sessions: Pick<SessionsOfAudience, 'findInMemory' | 'find'>
  readonly boundCookie: Pick<BoundCookie, 'faultOf' | 'expire'>
  readonly cookie: RealmOfPerson['cookie'] & Pick<SessionCookie, 'read' | 'isIn'>
  readonly upkeep: Pick<Upkeep, 'fresh'>
  /** Of sessions that have ended. Browsers do not have them any more. */
  readonly expiredCookies: Pick<ExpiredCookies, 'has' | 'add'>
  /** Whether a sign-in elsewhere has ended a session. Absent: sign-ins end no other sessions. */
  readonly hasEndedElsewhere?: ((key: SessionKey) => Promise<boolean>) | undefined
}

export interface SignedIn extends Principal {
  readonly kind: 'signed_in'
  readonly session: StoredSession
  readonly realm: RealmOfPerson
}

/** The sender of a request, according to its session cookies. */
export type Identity =
  SignedIn | AnonymousIdentity | { readonly kind: 'unavailable'; readonly code: ErrorCode; readonly why: string }

/** `staleCookie`: the request has a session cookie, but no session. The response expires it. */
export interface AnonymousIdentity {
  readonly kind: 'anonymous'
  /** Where the person signs in. Absent: one of several providers. */
  readonly realm: RealmOfPerson | undefined
  readonly staleCookie: boolean
  readonly ended?: EndedCookie
  /** The request has the cookie of a bound session, but does not come from its device. */
  readonly misuse?: Misuse
}

/** The cookie of a session that has ended. */
export interface EndedCookie {
  /** Whether a recent response has expired or replaced it in the browser. */
  isExpired(): boolean
  /** A response expires it. */
  noteExpired(): void
  /** Whether the session has ended because its person has signed in elsewhere. */
  readonly isElsewhere: boolean
}

/**
 * Finds the session of a `Cookie` header. Returns no promise when the session is in memory and
 * needs no refresh. Returns `unavailable` when the store or the provider cannot be reached.
 * @param realms those of the upstream; the first one with a session counts
 */
export function identify(cookieHeader: string | undefined, realms: readonly Realm[]): Identity | Promise<Identity> {
  const [first] = realms
  if (first === undefined) return anyone
  const found = identifyAt(first, cookieHeader)
  if (realms.length === 1) return found
  const others = realms.slice(1)
  return found instanceof Promise
    ? found.then((identity) => orElsewhere(identity, cookieHeader, others))
    : orElsewhere(found, cookieHeader, others)
}

const anyone: AnonymousIdentity = { kind: 'anonymous', realm: undefined, staleCookie: false }

/** The identity, or another one in the other realms that says more. */
function orElsewhere(
  identity: Identity,
  cookieHeader: string | undefined,
  others: readonly Realm[],
): Identity | Promise<Identity> {
  if (identity.kind === 'signed_in') return identity
  const elsewhere = identify(cookieHeader, others)
  return elsewhere instanceof Promise
    ? elsewhere.then((other) => moreTelling(identity, other))
    : moreTelling(identity, elsewhere)
}

/** A session, then a session that cannot be read, then one that has ended. */
function moreTelling(one: Exclude<Identity, { kind: 'signed_in' }>, other: Identity): Identity {
  if (other.kind === 'signed_in' || one.kind === 'unavailable') return other.kind === 'signed_in' ? other : one
  if (other.kind === 'unavailable') return other
  if (one.misuse !== undefined || other.misuse !== undefined) return one.misuse === undefined ? other : one
  return one.staleCookie ? one : other.staleCookie ? other : anyone
}

function identifyAt(realm: Realm, cookieHeader: string | undefined): Identity | Promise<Identity> {
  const id = realm.cookie.read(cookieHeader)
  if (id === undefined) return { kind: 'anonymous', realm, staleCookie: realm.cookie.isIn(cookieHeader) }
  const key = sessionKey(id)
  const inMemory = realm.sessions.findInMemory(key)
  if (inMemory !== undefined) return identityOf(inMemory, realm, cookieHeader)
  return realm.sessions.find(key).then(async (found) => {
    if (found !== undefined) return identityOf(found, realm, cookieHeader)
    // The reason is only for the page, so the request goes on without it.
    return endedIdentity(key, realm, await realm.hasEndedElsewhere?.(key).catch(() => false))
  }, unavailable)
}

/** The sender of a request with the cookie of this session. */
function identityOf(
  session: StoredSession,
  realm: Realm,
  cookieHeader: string | undefined,
): Identity | Promise<Identity> {
  const misuse = session.record.device && misuseOf(session, realm, cookieHeader)
  if (misuse !== undefined) return { kind: 'anonymous', realm, staleCookie: false, misuse }
  const fresh = realm.upkeep.fresh(session)
  if (!(fresh instanceof Promise)) return signedIn(fresh, realm)
  return fresh.then(
    (renewed) => (renewed === undefined ? endedIdentity(session.key, realm) : signedIn(renewed, realm)),
    unavailable,
  )
}

export function signedIn(session: StoredSession, realm: RealmOfPerson): SignedIn {
  return { kind: 'signed_in', record: session.record, session, realm }
}

/** The sender of a request with the cookie of a session that has ended. */
function endedIdentity(key: SessionKey, realm: Realm, isElsewhere = false): AnonymousIdentity {
  const { expiredCookies } = realm
  const ended = { isExpired: () => expiredCookies.has(key), noteExpired: () => expiredCookies.add(key), isElsewhere }
  return { kind: 'anonymous', realm, staleCookie: true, ended }
}

/** A bound session counts on its device only. */
function misuseOf(session: StoredSession, realm: Realm, cookieHeader: string | undefined): Misuse | undefined {
  const { device } = session.record
  const fault = device && realm.boundCookie.faultOf(session.key, device, cookieHeader)
  return fault && { session, fault, setCookies: realm.boundCookie.expire(cookieHeader) }
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
