// What must have been so for a refusal of the gateway to be right.
import type { Cause, Span } from './alibis.ts'
import { bounds } from './bounds.ts'
import type { Facts } from './facts.ts'
import type { Attempt, Part } from './history.ts'

/** What makes an outcome right; empty: nothing does. */
type Reason = (facts: Facts, attempt: Attempt) => readonly string[]

const kindsOf = (causes: readonly Cause[]) => [...new Set(causes.map(({ part, kind }) => `${part} ${kind}`))]

const when = (isSo: boolean, reason: string) => (isSo ? [reason] : [])

const during =
  (...parts: Part[]): Reason =>
  (facts, attempt) =>
    kindsOf(facts.causes(parts, attempt, facts.placeOf(attempt)))

/** Times at which a store may have been given up, in ms. */
const lookEveryMs = 250

/**
 * The gateway gives up a store or a provider that is silent, until it has connected again. When its
 * own process, or the proxy in between, had no processor for as long, it cannot know.
 */
const starvedOf =
  (part: 'store' | 'provider' | 'decision' | 'application'): Reason =>
  (facts, { begin, end, replica }) => {
    const isStarved = (span: Span) => facts.alibis.stalled(span, replica) >= bounds.patience
    if (isStarved({ begin: begin - bounds.patience, end })) return ['no processor']
    for (let until = begin; until > begin - bounds.recovery[part]; until -= lookEveryMs)
      if (isStarved({ begin: until - bounds.proof, end: until })) return ['no processor']
    return []
  }

const waitsForAnother: Reason = (facts, attempt) =>
  kindsOf(facts.othersToWaitFor(attempt)).map((kind) => `another: ${kind}`)

const either =
  (...reasons: Reason[]): Reason =>
  (facts, attempt) =>
    reasons.reduce<readonly string[]>((found, reason) => (found.length > 0 ? found : reason(facts, attempt)), [])

/** Orders and new sign-ins end sessions, which replicas of Redis have to acknowledge. */
const unacknowledged: Reason = (facts, attempt) =>
  when(attempt.type !== 'request' && facts.alibis.isUnacknowledged(attempt, attempt.replica), 'store WAIT')

const sessionEnds: Reason = (facts, attempt) => {
  if (attempt.type === 'proof') return when(facts.mayHaveEnded(attempt.session, attempt), 'session over')
  if (attempt.type !== 'request' || attempt.token !== undefined) return []
  if (attempt.unproved && facts.deviceOf(attempt).mayFail) return ['no proof']
  return when(attempt.session === undefined || facts.mayHaveEnded(attempt.session, attempt), 'session over')
}

/** A provider that takes a late refresh for theft revokes the access token with the grant. */
const grantEnds: Reason = (facts, attempt) =>
  when(attempt.type === 'request' && facts.hasLostGrant(attempt.session ?? '', attempt.end), 'grant over')

const tokenEnds: Reason = (facts, attempt) => {
  const token = attempt.type === 'request' ? facts.tokens.get(attempt.token ?? '') : undefined
  return when(token !== undefined && facts.mayBeOver(token, attempt), 'token over')
}

/** A process that was held up, or whose clock is off, may exchange a token that has expired. */
const exchangesLate: Reason = (facts, { begin, end, replica }) => {
  const span = { begin: begin - bounds.refusedExchange, end }
  const causes = facts.causes(['clock', 'replica', 'store', 'provider'], span, { replica })
  return causes.length > 0 ? kindsOf(causes) : when(facts.alibis.stalled(span, replica) >= bounds.patience, 'late')
}

const signInEnds: Reason = (facts, attempt) =>
  when(attempt.type === 'sign-in' && facts.isEnding(attempt.person, attempt), 'sign-in over')

/** The world itself had the application fail in the middle of this request. */
const applicationFails: Reason = (facts, { id }) =>
  when(facts.receipts.get(id)?.some(({ failed }) => failed) ?? false, 'application failed')

const isWithdrawing: Reason = (facts, attempt) => when(facts.isWithdrawing(attempt), 'keys withdrawn')

const signsInTwice: Reason = (facts, attempt) =>
  when(attempt.type === 'sign-in' && facts.isSigningIn(attempt), 'another sign-in')

const upstream = either(during('application'), starvedOf('application'), applicationFails)
const providerIsAway = either(during('provider', 'store', 'replica'), waitsForAnother, starvedOf('provider'))
const provider: Reason = (facts, attempt) =>
  attempt.type === 'request' && !facts.mayNeedProvider(attempt) ? [] : providerIsAway(facts, attempt)

/** A code that is absent is never right in a chaos run. */
export const reasons: Readonly<Record<string, Reason>> = {
  // The session of a program's token may end during its call.
  ERR_UNAUTHENTICATED: either(sessionEnds, tokenEnds),
  ERR_STORE_UNAVAILABLE: either(during('store', 'replica'), unacknowledged, starvedOf('store')),
  ERR_PROVIDER_UNAVAILABLE: provider,
  ERR_FORBIDDEN: (_facts, attempt) => when(attempt.type === 'request' && attempt.denied === true, 'denied'),
  ERR_DECISION_UNAVAILABLE: either(during('decision', 'replica'), starvedOf('decision')),
  ERR_UPSTREAM_UNREACHABLE: upstream,
  ERR_UPSTREAM_BUSY: upstream,
  ERR_UPSTREAM_RESPONSE: upstream,
  ERR_UPSTREAM_TIMEOUT: upstream,
  ERR_REQUEST_TIMEOUT: during('clients', 'replica'),
  ERR_SIGN_IN_ENDED: signInEnds,
  // The provider may accept no code of a session that has ended there, or one that it gets late.
  ERR_SIGN_IN_EXPIRED: either(signsInTwice, signInEnds, during('clock', 'clients', 'replica', 'provider')),
  ERR_SIGN_IN_COOKIE: either(signsInTwice, isWithdrawing),
  ERR_SIGN_IN_REFUSED: provider,
  ERR_SIGN_IN_DECLINED: provider,
  ERR_SIGN_IN_RESPONSE: either(provider, signInEnds, during('clock')),
  ERR_LOGOUT_TOKEN_INVALID: during('clock'),
  ERR_TOKEN_INVALID: tokenEnds,
  // The provider knows sooner that a session has ended.
  ERR_TOKEN_EXCHANGE: either(sessionEnds, tokenEnds, grantEnds, exchangesLate),
  ERR_DEVICE_PROOF: either(sessionEnds, isWithdrawing),
}

/**
 * The end of a session may break a request that is under way, and its refusal one whose content is
 * not sent yet. A page of a session that was over already gets a response.
 */
const sessionBreaks: Reason = (facts, attempt) => {
  if (attempt.type === 'request' && attempt.token !== undefined) return tokenEnds(facts, attempt)
  if (attempt.type !== 'request' || sessionEnds(facts, attempt).length === 0) return []
  const { kind, session } = attempt
  const isBroken =
    kind === 'upload' || kind === 'form' || (session !== undefined && facts.mayBeEnding(session, attempt))
  return when(isBroken, 'session over')
}

/** What must have been so where the connection failed, which says nothing about the gateway. */
const connectionFails = either(during('replica', 'clients', 'application'), sessionBreaks, applicationFails)
const otherConnectionFails = during('replica', 'clients', 'provider')

/**
 * What excuses the outcome of an operation. `[]`: nothing does. `undefined`: it is what was
 * expected.
 */
export function excusesOf(facts: Facts, attempt: Attempt): readonly string[] | undefined {
  if (attempt.status === undefined)
    return (attempt.type === 'request' ? connectionFails : otherConnectionFails)(facts, attempt)
  if (attempt.code !== undefined) return reasons[attempt.code]?.(facts, attempt) ?? []
  const isDone = {
    request: 'identity' in attempt && attempt.status < 300,
    'sign-in': 'signedIn' in attempt && attempt.signedIn,
    ending: 'confirmed' in attempt && attempt.confirmed,
    proof: 'proved' in attempt && attempt.proved,
  }
  // Another tab may have completed its sign-in, and this one then leads to the application.
  return isDone[attempt.type] ? undefined : signsInTwice(facts, attempt)
}

/** Why the outcome of an operation is not right. `undefined`: it is right. */
export function whyWrong(facts: Facts, attempt: Attempt): string | undefined {
  if (excusesOf(facts, attempt)?.length !== 0) return undefined
  if (attempt.status === undefined) return `failed (${attempt.error}), and nothing cut its connection`
  return attempt.code === undefined
    ? `got ${attempt.status} without a reason`
    : `was refused with ${attempt.code}, which was not true`
}
