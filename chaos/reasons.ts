// What must have been so for a refusal of the gateway to be right.
import { bounds } from './bounds.ts'
import type { Facts } from './facts.ts'
import type { Attempt, Fault } from './history.ts'

type Reason = (facts: Facts, attempt: Attempt) => boolean

/** Where a fault has to be to concern an operation. */
export const placeOf = (attempt: Attempt) => ({
  replica: attempt.replica,
  application: attempt.type === 'request' ? attempt.application : undefined,
})

const during =
  (...parts: NonNullable<Fault['part']>[]): Reason =>
  (facts, attempt) =>
    facts.disturbances(parts, attempt, placeOf(attempt)).length > 0

/** A session may be locked, or its tokens lost, by a fault at another replica that used it. */
export const waitsForAnother: Reason = (facts, attempt) =>
  attempt.type === 'request' &&
  facts
    .replicasUsing(attempt.session, { begin: attempt.begin - bounds.wait, end: attempt.end })
    .some((replica) => facts.disturbances(['provider', 'store', 'replica'], attempt, { replica }).length > 0)

const either =
  (...reasons: Reason[]): Reason =>
  (facts, attempt) =>
    reasons.some((reason) => reason(facts, attempt))

const sessionEnds: Reason = (facts, attempt) =>
  attempt.type === 'request' && (attempt.session === undefined || facts.earliestEnd(attempt.session) <= attempt.end)

const signInEnds: Reason = (facts, attempt) => attempt.type === 'sign-in' && facts.isEnding(attempt.person, attempt)

const signsInTwice: Reason = (facts, attempt) => attempt.type === 'sign-in' && facts.isSigningIn(attempt)

const upstream = during('application')
const provider = either(during('provider', 'store', 'replica'), waitsForAnother)

/** A code that is absent is never right in a chaos run. */
export const reasons: Readonly<Record<string, Reason>> = {
  ERR_UNAUTHENTICATED: sessionEnds,
  ERR_STORE_UNAVAILABLE: during('store', 'replica'),
  ERR_PROVIDER_UNAVAILABLE: provider,
  ERR_UPSTREAM_UNREACHABLE: upstream,
  ERR_UPSTREAM_BUSY: upstream,
  ERR_UPSTREAM_RESPONSE: upstream,
  ERR_UPSTREAM_TIMEOUT: upstream,
  ERR_REQUEST_TIMEOUT: during('clients', 'replica'),
  ERR_SIGN_IN_ENDED: signInEnds,
  // The provider may accept no code of a session that has ended there, or one that it gets late.
  ERR_SIGN_IN_EXPIRED: either(signsInTwice, signInEnds, during('clock', 'clients', 'replica', 'provider')),
  ERR_SIGN_IN_COOKIE: signsInTwice,
  ERR_SIGN_IN_REFUSED: provider,
  ERR_SIGN_IN_DECLINED: provider,
  ERR_SIGN_IN_RESPONSE: either(provider, signInEnds, during('clock')),
  ERR_LOGOUT_TOKEN_INVALID: during('clock'),
}

/**
 * The end of a session may break a request that is under way, and its refusal one whose content is
 * not sent yet. A page of a session that was over already gets a response.
 */
const sessionBreaks: Reason = (facts, attempt) => {
  if (attempt.type !== 'request' || !sessionEnds(facts, attempt)) return false
  const { kind, session, replica, begin, end } = attempt
  if (kind === 'upload' || kind === 'form') return true
  return session !== undefined && facts.certainEnds(session).every((one) => facts.bound(one, replica, end) >= begin)
}

/** What must have been so where the connection failed, which says nothing about the gateway. */
const connectionFails = either(during('replica', 'clients', 'application'), sessionBreaks)
const otherConnectionFails = during('replica', 'clients', 'provider')

/** Why the outcome of an operation is not right. `undefined`: it is right. */
export function whyWrong(facts: Facts, attempt: Attempt): string | undefined {
  if (attempt.status === undefined) {
    const isRight = attempt.type === 'request' ? connectionFails : otherConnectionFails
    return isRight(facts, attempt) ? undefined : `failed (${attempt.error}), and no fault was near`
  }
  if (attempt.code !== undefined)
    return reasons[attempt.code]?.(facts, attempt) ? undefined : `was refused with ${attempt.code}, which was not true`
  const isDone = {
    request: 'identity' in attempt && attempt.status < 300,
    'sign-in': 'signedIn' in attempt && attempt.signedIn,
    ending: 'confirmed' in attempt && attempt.confirmed,
  }
  // Another tab may have completed its sign-in, and this one then leads to the application.
  return isDone[attempt.type] || signsInTwice(facts, attempt) ? undefined : `got ${attempt.status} without a reason`
}
