// What must have been so for a refusal of the gateway to be right.
import type { Facts } from './facts.ts'
import type { Ending, Fault, Request, SignIn } from './history.ts'

/** An operation that a person, the provider or an administrator expected to succeed. */
type Asked = Request | SignIn | Ending

type Reason = (facts: Facts, asked: Asked) => boolean

const placeOf = (asked: Asked) => ({
  replica: asked.replica,
  application: asked.type === 'request' ? asked.application : undefined,
})

const during =
  (...parts: NonNullable<Fault['part']>[]): Reason =>
  (facts, asked) =>
    facts.disturbances(parts, asked, placeOf(asked)).length > 0

/** A session may be locked, or its tokens lost, because another replica failed. */
const duringAnywhere =
  (...parts: NonNullable<Fault['part']>[]): Reason =>
  (facts, asked) =>
    facts.disturbances(parts, asked).length > 0

const either =
  (...reasons: Reason[]): Reason =>
  (facts, asked) =>
    reasons.some((reason) => reason(facts, asked))

const sessionEnds: Reason = (facts, asked) =>
  asked.type === 'request' && (asked.session === undefined || facts.earliestEnd(asked.session) <= asked.end)

const signInEnds: Reason = (facts, asked) => asked.type === 'sign-in' && facts.isEnding(asked.person, asked)

const signsInTwice: Reason = (facts, asked) => asked.type === 'sign-in' && facts.isSigningIn(asked)

const upstream = during('application')
const provider = either(during('provider', 'store'), duringAnywhere('replica'))

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
  // The provider may accept no code of a session that has ended there.
  ERR_SIGN_IN_EXPIRED: either(signsInTwice, signInEnds, during('clock', 'clients', 'replica')),
  ERR_SIGN_IN_COOKIE: signsInTwice,
  ERR_SIGN_IN_REFUSED: provider,
  ERR_SIGN_IN_DECLINED: provider,
  ERR_SIGN_IN_RESPONSE: either(provider, signInEnds, during('clock')),
  ERR_LOGOUT_TOKEN_INVALID: during('clock'),
}

/** What must have been so where the connection failed, which says nothing about the gateway. */
const connectionFails = either(during('replica', 'clients', 'application'), sessionEnds)
const otherConnectionFails = during('replica', 'clients', 'provider', 'store')

/** Why the outcome of an operation is not right. `undefined`: it is right. */
export function whyWrong(facts: Facts, asked: Asked): string | undefined {
  if (asked.status === undefined) {
    const isRight = asked.type === 'request' ? connectionFails : otherConnectionFails
    return isRight(facts, asked) ? undefined : `failed (${asked.error}), and no fault was near`
  }
  if (asked.code !== undefined)
    return reasons[asked.code]?.(facts, asked) ? undefined : `was refused with ${asked.code}, which was not true`
  const isDone = {
    request: 'identity' in asked,
    'sign-in': 'signedIn' in asked && asked.signedIn,
    ending: 'confirmed' in asked && asked.confirmed,
  }
  // Another tab may have completed its sign-in, and this one then leads to the application.
  return isDone[asked.type] || signsInTwice(facts, asked) ? undefined : `got ${asked.status} without a reason`
}
