// Judges the history of a chaos run. It knows what the documentation promises, and nothing of the
// program.
import { overAt } from './alibis.ts'
import { bounds } from './bounds.ts'
import { type CertainEnd, Facts } from './facts.ts'
import type { Attempt, Death, HistoryEvent, OwnSession, Receipt, Refresh, Request, Sample, Stream } from './history.ts'
import { whyWrong } from './reasons.ts'

export type Property =
  | 'complete'
  | 'ended'
  | 'returned'
  | 'ending-lost'
  | 'identity'
  | 'refresh-token'
  | 'form'
  | 'denied'
  | 'own-session'
  | 'device'
  | 'token'
  | 'logout-call'
  | 'content'
  | 'reason'
  | 'stream'
  | 'liveness'
  | 'leak'

/** A property that does not hold. */
export interface Finding {
  readonly property: Property
  readonly sentence: string
  /** The events that show it. */
  readonly events: readonly HistoryEvent[]
}

type Check = (facts: Facts) => Finding[]

/** The properties that certainly do not hold in a history. */
export function findingsOf(history: readonly HistoryEvent[]): Finding[] {
  const facts = new Facts(history)
  return checks.flatMap((check) => check(facts))
}

const seconds = (ms: number) => `${(ms / 1000).toFixed(2)} s`

/** The history has what the other checks rely on. */
const complete: Check = ({ isComplete, requests, receipts, signIns, streams, endings }) => {
  const unknown = [...requests, ...streams, ...endings].filter(
    ({ session }) => session !== undefined && !signIns.has(session),
  )
  const [ids, forms] = [new Set(requests.map(({ id }) => id)), new Set(requests.map(({ form }) => form))]
  // A second click that leads to no response of an application is not recorded.
  const isSent = ({ request, form }: Receipt) => ids.has(request) || (form !== undefined && forms.has(form))
  const stray = isComplete ? [...receipts.values()].flat().filter((receipt) => !isSent(receipt)) : []
  return [
    ...stray.map((receipt): Finding => ({
      ...{ property: 'complete', events: [receipt] },
      sentence: `${receipt.application} received request ${receipt.request}, which no browser sent.`,
    })),
    ...unknown.map((event): Finding => ({
      ...{ property: 'complete', sentence: `No sign-in is the session ${event.session}.`, events: [event] },
    })),
  ]
}

/**
 * No request is admitted after the end of its session, no ended session returns, and no ending is
 * lost.
 */
const ended: Check = (facts) =>
  facts.requests.flatMap((request) => {
    if (request.session === undefined || !facts.isAdmitted(request)) return []
    const broken = facts
      .certainEnds(request.session)
      .filter((end) => request.begin > end.at && request.begin > facts.bound(end, request.replica, request.end))
    const end = broken.find(({ cause }) => cause !== 'timeout' && cause.type === 'request') ?? broken[0]
    return end === undefined ? [] : [admittedAfter(facts, end, request)]
  })

function admittedAfter(facts: Facts, { at, cause }: CertainEnd, request: Request): Finding {
  const lost = facts.faults.find(
    ({ losesWrites, begin, end }) => losesWrites && begin <= request.begin && end >= at - bounds.lostWrites,
  )
  const isRefused = cause !== 'timeout' && cause.type === 'request'
  return {
    property: isRefused ? 'returned' : lost === undefined ? 'ended' : 'ending-lost',
    sentence: `${request.replica} admitted session ${request.session} ${seconds(request.begin - at)} after ${describe(cause)}.`,
    events: [
      ...(cause === 'timeout' ? [] : [cause]),
      ...(lost === undefined ? [] : [lost]),
      request,
      ...(facts.receipts.get(request.id) ?? []),
    ],
  }
}

function describe(cause: CertainEnd['cause']): string {
  if (cause === 'timeout') return 'its timeout'
  switch (cause.type) {
    case 'request':
      return `${cause.replica} had refused it as ended`
    case 'sign-in':
      return `the sign-in ${cause.id} of its browser`
    case 'refresh':
      return 'the provider had rejected its refresh token'
    case 'ending':
      return `${cause.by} ${cause.id}`
    case 'fault':
      return 'its key had been taken away'
  }
}

/**
 * No application sees another person, no request gets the response to another one, and each request
 * arrives only at its application.
 */
const identity: Check = (facts) => [
  ...facts.requests.flatMap(identityOf(facts)),
  ...facts.streams.flatMap(otherMessage),
]

const otherMessage = (one: Stream): Finding[] =>
  one.otherMessage === undefined
    ? []
    : [
        {
          ...{ property: 'identity', events: [one] },
          sentence: `The stream of request ${one.request} delivered a message of another one: ${one.otherMessage}`,
        },
      ]

const identityOf =
  (facts: Facts) =>
  (request: Request): Finding[] => {
    const ofToken = facts.tokens.get(request.token ?? '')
    const expected = ofToken ?? facts.signIns.get(request.session ?? '')?.identity
    const receipts = facts.receipts.get(request.id) ?? []
    const isOther = facts.seen(request).some(({ sub, sid }) => sub !== expected?.sub || sid !== expected.sid)
    const isResponse = request.identity !== undefined || request.echo !== undefined
    const isOthersResponse = isResponse && request.echo !== request.id
    const stray = receipts.find(({ application }) => application !== request.application)
    if (!isOther && !isOthersResponse && stray === undefined) return []
    const sentence = isOther
      ? `${request.application} saw another identity than that of ${request.token ?? `session ${request.session}`} in request ${request.id}.`
      : isOthersResponse
        ? `Request ${request.id} got the response of request ${request.echo}.`
        : `${stray?.application} received request ${request.id}, which is for ${request.application}.`
    const signIn = facts.signIns.get(request.session ?? '')
    const events = [...(signIn ? [signIn] : []), request, ...receipts]
    return [{ property: 'identity', sentence, events }]
  }

/** No refresh token is used again after its rotation, unless the response may have been lost. */
const refreshToken: Check = (facts) =>
  [...facts.uses.values()].flatMap((uses) => {
    const rotation = uses.find((use) => use.accepted && use.next !== undefined && use.next !== use.token)
    const again =
      rotation &&
      uses.find((use) => use !== rotation && use.end >= rotation.begin && !mayHaveLostRotation(facts, rotation, use))
    if (rotation === undefined || again === undefined) return []
    return [
      {
        property: 'refresh-token' as const,
        sentence: `A refresh token of sid ${rotation.sid} was used again ${seconds(again.begin - rotation.end)} after the response with its successor.`,
        events: [rotation, again],
      },
    ]
  })

/**
 * docs/reliability.md: a killed or suspended replica, a store that lost or refused the write, and a
 * network that held the second request back until its replica had given up.
 */
function mayHaveLostRotation(facts: Facts, rotation: Refresh, again: Refresh): boolean {
  const written = { begin: rotation.begin, end: rotation.end + bounds.stored }
  const { replica } = rotation
  // What ended before the request reached the provider did not hold its response back.
  const disturbed = facts
    .causes(['replica', 'store', 'provider'], written, { replica })
    .filter(({ part, end }) => part !== 'provider' || end >= rotation.begin)
  // The network held the second request back since the first one was under way.
  const held = facts.causes(['provider'], again, { replica: again.replica }).filter(({ begin }) => begin <= written.end)
  return (
    !rotation.answered ||
    disturbed.length > 0 ||
    facts.alibis.stalled(written, replica) >= bounds.patience ||
    held.length > 0 ||
    facts.faults.some(
      ({ losesWrites, begin, end }) =>
        losesWrites && begin - bounds.lostWrites <= written.end && end >= rotation.begin && begin <= again.end,
    )
  )
}

/** No form or upload is sent twice. No form has a response that the application did not receive. */
const form: Check = (facts) => {
  const sent = Map.groupBy(
    [...facts.receipts.values()].flat().filter((receipt) => receipt.form !== undefined),
    (receipt) => receipt.form,
  )
  const twice = [...sent].filter(([, receipts]) => receipts.length > 1)
  const uploads = facts.requests.flatMap((request) => {
    const receipts = facts.receipts.get(request.id) ?? []
    return request.kind === 'upload' && receipts.length > 1 ? [{ request, receipts }] : []
  })
  const answered = facts.requests.filter((request) => request.form !== undefined && request.identity !== undefined)
  return [
    ...twice.map(([id, receipts]): Finding => ({
      property: 'form',
      sentence: `An application received form ${id} ${receipts.length} times.`,
      events: [...facts.requests.filter((request) => request.form === id), ...receipts],
    })),
    ...uploads.map(({ request, receipts }): Finding => ({
      property: 'form',
      sentence: `An application received upload ${request.id} ${receipts.length} times.`,
      events: [request, ...receipts],
    })),
    ...answered
      .filter((request) => !sent.has(request.form))
      .map((request): Finding => ({
        ...{
          property: 'form',
          sentence: `No application received form ${request.form}, which has a response.`,
          events: [request],
        },
      })),
  ]
}

/** No application receives what the policy decision point denies. */
const denied: Check = (facts) =>
  facts.requests
    .filter((request) => request.denied && facts.isAdmitted(request))
    .map((request): Finding => {
      const sentence = `${request.replica} admitted request ${request.id}, which the policy decision point denies.`
      return { property: 'denied', sentence, events: [request, ...(facts.receipts.get(request.id) ?? [])] }
    })

/** A session that is bound to a key is not admitted without a proof of the key. */
const device: Check = (facts) =>
  facts.requests
    .filter((request) => request.unproved && facts.isAdmitted(request) && !facts.deviceOf(request).mayPass)
    .map((request): Finding => {
      const proofs = facts.proofs.filter(({ session }) => session === request.session)
      const sentence = `${request.replica} admitted request ${request.id} of session ${request.session} without its key.`
      return { property: 'device', sentence, events: [...proofs, request] }
    })

/**
 * No access token is admitted after its end, and the application gets a token that was exchanged
 * for it.
 */
const token: Check = (facts) => [
  ...facts.requests.flatMap((request): Finding[] => {
    const known = facts.tokens.get(request.token ?? '')
    if (known === undefined || !facts.isAdmitted(request)) return []
    const { at, cause } = facts.tokenEnd(known, request)
    if (request.begin <= at) return []
    const sentence = `${request.replica} admitted access token ${known.id} ${seconds(request.begin - at)} after its end.`
    return [{ property: 'token', sentence, events: [cause, request] }]
  }),
  ...[...facts.receipts.values()].flat().flatMap((receipt): Finding[] => {
    const { exchanged, identity, application } = receipt
    if (exchanged === undefined || (exchanged.aud === application && exchanged.sub === identity.sub)) return []
    const sentence = `${application} got a token for "${exchanged.sub}" at "${exchanged.aud}" with a request of ${identity.sub}.`
    return [{ property: 'token', sentence, events: [receipt] }]
  }),
]

/** No application gets the cookie of its session with another person. */
const ownSession: Check = (facts) => {
  const owners = new Map(facts.ownSessions.map((own) => [own.cookie, own]))
  return [...facts.receipts.values()].flat().flatMap((receipt): Finding[] => {
    const own = owners.get(receipt.cookie ?? '')
    if (own === undefined || own.identity.sub === receipt.identity.sub) return []
    const sentence = `${receipt.application} got its session of ${own.identity.sub} with a request of ${receipt.identity.sub}.`
    return [{ property: 'own-session', sentence, events: [own, receipt] }]
  })
}

/**
 * Each application that has a session of a person is told in time when the session at the gateway
 * ends. This is not judged where several responses at once began sessions of the application, or
 * where a new sign-in moved its cookie to another session.
 */
const logoutCall: Check = (facts) => {
  const requests = new Map(facts.requests.map((request) => [request.id, request]))
  const kept = new Set([...facts.receipts.values()].flat().map(({ cookie }) => cookie))
  const moved = new Set([...facts.signIns.values()].map(({ replaces }) => replaces))
  const sessionOf = ({ request }: OwnSession) => requests.get(request)?.session ?? ''
  const begun = Map.groupBy(facts.ownSessions, (own) => `${sessionOf(own)} ${own.application}`)
  return [...begun.values()].flatMap(([own, ...others]): Finding[] => {
    if (own === undefined || others.length > 0 || !kept.has(own.cookie)) return []
    const session = sessionOf(own)
    const end = facts.certainEnds(session).find(({ at }) => at > own.at)
    if (end === undefined || end.cause === 'timeout' || end.cause.type !== 'ending') return []
    if (moved.has(session) || facts.isToldInTime(own, end) || facts.mayLackLogoutCall(own, end)) return []
    const [call] = facts.logoutCalls.get(own.cookie) ?? []
    const when = call === undefined ? 'not told' : `told only ${seconds(call.at - end.at)} later`
    const sentence = `${own.application} was ${when} that session ${session} had ended.`
    return [{ property: 'logout-call', sentence, events: [own, end.cause] }]
  })
}

/** What an application received in full, or responded to, is what the browser sent. */
const content: Check = (facts) =>
  facts.requests.flatMap((request) => {
    const received = facts.receipts.get(request.id) ?? []
    const wrong = received.filter(({ digest }) => digest !== undefined && digest !== request.digest)
    const isIncomplete =
      request.digest !== undefined &&
      request.identity !== undefined &&
      received.length > 0 &&
      received.every(({ digest }) => digest === undefined)
    if (request.incomplete) {
      const sentence = `Request ${request.id} got an incomplete response that looked complete.`
      return [{ property: 'content', sentence, events: [request, ...received] }]
    }
    if (wrong.length === 0 && !isIncomplete) return []
    const sentence = `${request.application} received other content than the browser sent in request ${request.id}.`
    return [{ property: 'content', sentence, events: [request, ...(isIncomplete ? received : wrong)] }]
  })

/** Each refusal has a reason that was true, and without a fault everything succeeds. */
const reason: Check = (facts) =>
  facts.attempts.flatMap((attempt): Finding[] => {
    const why = whyWrong(facts, attempt)
    if (why === undefined) return []
    const what = attempt.type === 'request' ? attempt.kind : attempt.type
    return [{ property: 'reason', sentence: `The ${what} ${attempt.id} ${why}.`, events: [attempt] }]
  })

/** No browser loses the cookie of a session that has no reason to end. */
const cookie: Check = (facts) =>
  [...facts.signIns.values()].flatMap((signIn): Finding[] => {
    const lost = facts.lostBefore(signIn)
    if (lost === undefined) return []
    const sentence = `Browser ${signIn.browser} lost the cookie of session ${lost.id} without a reason.`
    return [{ property: 'reason', sentence, events: [lost, signIn] }]
  })

/** When the last message of a stream arrived, if it delivered none for too long before its end. */
function stalledSince(facts: Facts, one: Stream): number | undefined {
  const since = one.lastMessage ?? one.begin
  const silence = { begin: since, end: one.end }
  const late = facts.alibis.late(silence, facts.placeOf(one))
  return one.end - since - late > bounds.streamSilence ? since : undefined
}

/** Streams deliver, and close when their session has ended, not before without a reason. */
const stream: Check = (facts) =>
  facts.streams.flatMap((one) => {
    const late = facts
      .certainEnds(one.session)
      .find((end) => one.end > end.at && one.end > streamBound(facts, end, one))
    if (late !== undefined)
      return [
        {
          property: 'stream' as const,
          sentence: `${one.replica} kept a stream of session ${one.session} open for ${seconds(one.end - late.at)} after its end.`,
          events: [...(late.cause === 'timeout' ? [] : [late.cause]), one],
        },
      ]
    const since = stalledSince(facts, one)
    if (since !== undefined)
      return [
        {
          property: 'stream' as const,
          sentence: `The stream of request ${one.request} delivered nothing in its last ${seconds(one.end - since)}.`,
          events: [one],
        },
      ]
    if (one.reason === 'browser') return []
    const closing = { begin: one.end, end: one.end }
    const mayClose =
      facts.mayHaveEnded(one.session, closing) ||
      facts.causes(['replica', 'clients', 'application'], closing, facts.placeOf(one)).length > 0
    return mayClose
      ? []
      : [
          {
            property: 'stream',
            sentence: `The stream of request ${one.request} closed (${one.reason}) without a reason.`,
            events: [one],
          },
        ]
  })

/** When the last stream of a session has to be closed. */
function streamBound(facts: Facts, end: CertainEnd, one: Stream): number {
  // As after a timeout, each process looks for streams of sessions whose key it has no more.
  const isLookedFor = end.cause === 'timeout' || end.cause.type === 'fault'
  const allowed = isLookedFor ? bounds.streamAfterTimeout : bounds.streamAfterEnding
  const until = { begin: end.order.begin, end: one.end }
  const near = facts.disturbances(['store', 'replica', 'clients', 'clock'], until, facts.placeOf(one))
  const stalled = facts.alibis.stalled({ begin: end.at, end: one.end }, one.replica)
  const first = facts.bound(end, one.replica, end.at) + allowed + stalled
  // A fault that began when the stream had to be closed already does not excuse it.
  const healed = near
    .toSorted((a, b) => a.begin - b.begin)
    .reduce((bound, cause) => (cause.begin <= bound ? Math.max(bound, overAt(cause)) : bound), first)
  return Math.min(healed, Math.max(first, end.at + bounds.streamWithoutStore + facts.run.grace))
}

/** Whether an operation took longer than what was late on its way explains. */
export function isSlow(facts: Facts, attempt: Attempt): boolean {
  const took = attempt.end - attempt.begin
  if (took <= bounds.response) return false
  const late = facts.alibis.late(attempt, facts.placeOf(attempt), facts.othersToWaitFor(attempt))
  return took - late > bounds.response
}

/**
 * After the last fault, each person and each replica is served. Nothing takes long, and no replica
 * ends by itself.
 */
const liveness: Check = (facts) => {
  const made = facts.faults.filter(({ observed }) => observed !== true)
  const recovered = Math.max(0, ...made.map(({ part, end }) => end + (part === undefined ? 0 : bounds.recovery[part])))
  const orders = facts.endings.filter(({ by }) => by !== 'provider')
  const slow = [...facts.requests, ...orders].filter((attempt) => isSlow(facts, attempt))
  const done = {
    sign_in: [...facts.signIns.values()].filter(({ signedIn, begin }) => signedIn && begin > recovered),
    request: facts.requests.filter((one) => !one.token && one.identity !== undefined && one.begin > recovered),
    sign_out: facts.endings.filter(({ by, confirmed, begin }) => by === 'sign-out' && confirmed && begin > recovered),
  }
  const personOf = (one: { person?: string; session?: string }) =>
    one.person ?? facts.signIns.get(one.session ?? '')?.person
  const missing = (facts.isComplete ? Object.entries(done) : []).flatMap(([what, events]) => [
    ...facts.run.persons.filter((person) => !events.some((one) => personOf(one) === person)).map((who) => [what, who]),
    ...facts.run.replicas.filter((replica) => !events.some((one) => one.replica === replica)).map((who) => [what, who]),
  ])
  const last = made.findLast(({ part }) => part !== undefined)
  const isUnexplained = ({ worker, at, replica }: Death) =>
    worker === undefined ||
    facts.disturbances(['replica'], { begin: at, end: at }, { replica }).every(({ kind }) => kind !== 'kill-worker')
  return [
    ...slow.map((attempt): Finding => ({
      ...{
        property: 'liveness',
        sentence: `The ${attempt.type} ${attempt.id} took ${seconds(attempt.end - attempt.begin)} without a fault near it.`,
        events: [attempt],
      },
    })),
    ...facts.deaths.filter(isUnexplained).map((death): Finding => ({
      ...{
        property: 'liveness',
        sentence: `${death.worker === undefined ? '' : `Worker ${death.worker} of `}${death.replica} ended by itself (${death.reason}).`,
        events: [death],
      },
    })),
    ...missing.map(([what, who]): Finding => ({
      property: 'liveness',
      sentence: `After the last fault, no ${what?.replace('_', '-')} succeeded for ${who}.`,
      events: last === undefined ? [facts.run] : [last],
    })),
  ]
}

/** What the store has of a signal, so that it takes effect once. */
const keysOfSignal = 2

/**
 * Calm processes use what they used before. One that a fault has replaced is compared with the
 * first ones of its kind. Each signal is remembered for a week.
 */
const leak: Check = (facts) => {
  const remembered = keysOfSignal * new Set(facts.endings.filter(({ by }) => by === 'signal').map(({ id }) => id)).size
  const calm = facts.samples.filter((sample) => sample.calm)
  const kindOf = ({ of }: Sample) => of.replace(/\d+$/, '')
  return [...Map.groupBy(calm, ({ of }) => of).values()].flatMap((samples) =>
    (['memory', 'used', 'files', 'keys'] as const).flatMap((what): Finding[] => {
      const use = (sample: Sample | undefined) => sample?.[what] ?? 0
      const [first, ...later] = samples.filter((sample) => sample[what] !== undefined)
      if (first === undefined) return []
      const isNew = first.at !== calm[0]?.at
      const before = isNew
        ? calm
            .filter((one) => one.at === calm[0]?.at && kindOf(one) === kindOf(first) && one[what] !== undefined)
            .sort((a, b) => use(b) - use(a))[0]
        : first
      const last = later.at(-1) ?? (isNew ? first : undefined)
      if (before === undefined || last === undefined) return []
      // A process takes memory with its first work, and keeps it.
      const early =
        what === 'memory' ? facts.samples.filter((one) => one.of === last.of && isEarly(one, first, last)) : []
      const most = Math.max(use(before), ...early.map(use))
      const grown = use(last) - most - (what === 'keys' ? remembered : 0)
      if (grown <= (isNew ? bounds.leakOfNew : bounds.leak)[what]) return []
      const sentence = `${last.of} has ${grown} more ${what} than ${isNew ? before.of : 'it had'} before.`
      return [{ property: 'leak', sentence, events: [before, last] }]
    }),
  )
}

/** Whether a sample is of the first half of the time between two others. */
function isEarly({ at }: Sample, first: Sample, last: Sample): boolean {
  return at >= first.at && at < last.at && at <= (first.at + last.at) / 2
}

const checks = [
  complete,
  ended,
  identity,
  refreshToken,
  form,
  denied,
  device,
  token,
  ownSession,
  logoutCall,
  content,
  reason,
  cookie,
  stream,
  liveness,
  leak,
]
