// The verdict about a run: what the checker found, and whether it was able to find anything.
import { bounds } from './bounds.ts'
import { isSlow, type Finding, findingsOf } from './checker.ts'
import { Facts } from './facts.ts'
import type { HistoryEvent, Request } from './history.ts'
import type { LogLine } from './logs.ts'
import { excusesOf } from './reasons.ts'

export type Verdict = 'held' | 'found' | 'could not judge'

/** The exit code of each verdict; 2 is a wrong option. */
export const exitCodes: Readonly<Record<Verdict, number>> = { held: 0, found: 1, 'could not judge': 3 }

/** How many operations the checker would have judged, had their outcome been this one. */
export interface Share {
  readonly kind: string
  readonly tried: number
  readonly judged: number
  /** What would have excused the others, and how often. */
  readonly excuses: ReadonlyMap<string, number>
}

/** What a run has to do, so that its silence says something. */
export interface Count {
  readonly what: string
  readonly count: number
  readonly least: number
}

export interface Judgement {
  readonly verdict: Verdict
  readonly findings: readonly Finding[]
  readonly shares: readonly Share[]
  readonly counts: readonly Count[]
  /** Why it could not judge. */
  readonly doubts: readonly string[]
}

/** Below this share of one kind, nothing found says nothing. */
const leastShare = 0.5
/** How many operations are tried for each kind, at equal distances. */
const tries = 1_500

export function judge(history: readonly HistoryEvent[], logs: ReadonlyMap<string, LogLine>): Judgement {
  if (!history.some(({ type }) => type === 'run')) return unjudged('the run broke off before it began')
  const facts = new Facts(history)
  const [findings, shares, counts] = [findingsOf(history), sharesOf(facts), countsOf(facts, logs)]
  const doubts = [
    ...(facts.isComplete ? [] : [`the run broke off (${facts.broken ?? 'without an end'})`]),
    ...shares
      .filter(({ tried, judged }) => judged < tried * leastShare || tried === 0)
      .map(({ kind, tried, judged }) => `${kind}: ${judged} of ${tried} would have been judged`),
    ...counts
      .filter(({ count, least }) => count < least)
      .map(({ what, count, least }) => `${what}: ${count}, and it takes ${least}`),
  ]
  const verdict = findings.length > 0 ? 'found' : doubts.length > 0 ? 'could not judge' : 'held'
  return { verdict, findings, shares, counts, doubts }
}

function unjudged(why: string): Judgement {
  return { verdict: 'could not judge', findings: [], shares: [], counts: [], doubts: [why] }
}

type Change = (request: Request) => Request

const refused =
  (status: number, code: string): Change =>
  ({ identity: _, echo: __, ...request }) => ({ ...request, status, code })

/** What a served request may have got in place of its response. */
export const changes: Readonly<Record<string, Change>> = {
  'refusal: Redis away': refused(503, 'ERR_STORE_UNAVAILABLE'),
  'refusal: provider away': refused(503, 'ERR_PROVIDER_UNAVAILABLE'),
  'refusal: application away': refused(502, 'ERR_UPSTREAM_UNREACHABLE'),
  'no response': ({ identity: _, echo: __, status: ___, ...request }) => ({ ...request, error: 'ECONNRESET' }),
  'sign-out': refused(401, 'ERR_UNAUTHENTICATED'),
  'slow response': (request) => ({ ...request, end: request.begin + bounds.response + 1_000 }),
}

/**
 * Tries each kind of wrong outcome at served requests of the run: what would have excused it there
 * and then?
 */
function sharesOf(facts: Facts): Share[] {
  // The session of a copied cookie may have ended, so most outcomes of its requests are permitted.
  const served = facts.requests.filter(({ identity, copy }) => identity !== undefined && copy !== true)
  const step = Math.max(1, Math.floor(served.length / tries))
  const tried = served.filter((_, n) => n % step === 0)
  return Object.entries(changes).map(([kind, change]) => {
    const excuses = tried.map((request) => excuseOf(facts, change(request)))
    const excused = excuses.filter((excuse) => excuse !== undefined)
    const counted = new Map([...Map.groupBy(excused, (excuse) => excuse)].map(([excuse, all]) => [excuse, all.length]))
    return { kind, tried: tried.length, judged: tried.length - excused.length, excuses: counted }
  })
}

function excuseOf(facts: Facts, request: Request): string | undefined {
  if (request.identity === undefined) return excusesOf(facts, request)?.[0]
  return isSlow(facts, request) ? undefined : 'something was late'
}

/** Least numbers for each minute of a run. */
const leastEachMinute = {
  ...{ refreshed: 5, kept: 1, repeated: 1, cut: 2, copies: 3, denied: 5, called: 5 },
  ...{ broken: 5, signals: 1, bound: 3, keyless: 1, calls: 30, over: 2, exchanged: 10 },
}

function countsOf(facts: Facts, logs: ReadonlyMap<string, LogLine>): Count[] {
  const { requests, endings, streams, uses } = facts
  const [first, last] = [requests[0]?.begin ?? 0, requests.at(-1)?.begin ?? 0]
  const least = (each: number) => Math.max(1, Math.floor((each * (last - first)) / 60_000))
  const orders = Map.groupBy(endings, ({ id }) => id)
  const copies = Map.groupBy(
    requests.filter(({ copy }) => copy),
    ({ id }) => logs.get(id)?.worker,
  )
  const workers = [...new Set([...logs.values()].map(({ worker }) => worker))]
  const { replicas, workers: each = 2 } = facts.run
  const often = (worker: string) => copies.get(worker)?.length ?? 0
  // A fault may have killed others.
  const busiest = replicas.flatMap((name) => {
    const own = workers.filter((worker) => worker.split('.')[0] === name)
    return own.toSorted((a, b) => often(b) - often(a)).slice(0, each)
  })
  const { refreshed, kept, repeated, cut, copies: tried, denied, called } = leastEachMinute
  const { broken, signals, bound, keyless, calls, over, exchanged } = leastEachMinute
  const receipts = [...facts.receipts.values()].flat()
  // Browsers have keys only where the gateway has https.
  const hasKeys = facts.proofs.length > 0
  return [
    {
      what: 'tokens refreshed',
      count: [...uses.values()].flat().filter(({ accepted }) => accepted).length,
      least: least(refreshed),
    },
    { what: 'kept forms sent', count: requests.filter((one) => one.kept).length, least: least(kept) },
    {
      what: 'orders to end sessions repeated',
      count: [...orders.values()].filter(({ length }) => length > 1).length,
      least: least(repeated),
    },
    {
      what: 'streams cut by the end of their session',
      count: streams.filter((one) => one.reason === 'gateway' && facts.mayHaveEnded(one.session, one)).length,
      least: least(cut),
    },
    {
      what: 'requests denied',
      count: requests.filter((one) => one.code === 'ERR_FORBIDDEN').length,
      least: least(denied),
    },
    { what: 'logout calls', count: facts.logoutCalls.size, least: least(called) },
    {
      what: 'responses that an application broke off',
      count: receipts.filter(({ failed }) => failed).length,
      least: least(broken),
    },
    {
      what: 'sessions ended by a signal',
      count: endings.filter(({ by, confirmed }) => by === 'signal' && confirmed).length,
      least: least(signals),
    },
    {
      what: 'sessions bound to a key',
      count: facts.proofs.filter(({ purpose, proved }) => purpose === 'registration' && proved).length,
      least: hasKeys ? least(bound) : 0,
    },
    {
      what: 'copies of cookies refused because they lack the key',
      count: requests.filter((one) => one.unproved && one.code !== undefined && !facts.deviceOf(one).mayPass).length,
      least: hasKeys ? least(keyless) : 0,
    },
    {
      what: 'calls with an access token',
      count: requests.filter((one) => one.token !== undefined && one.identity !== undefined).length,
      least: least(calls),
    },
    {
      what: 'access tokens refused after their end',
      count: requests.filter((one) => one.code === 'ERR_TOKEN_INVALID').length,
      least: least(over),
    },
    {
      what: 'tokens exchanged',
      count: receipts.filter((one) => one.exchanged?.sub === one.identity.sub).length,
      least: least(exchanged),
    },
    ...busiest.toSorted().map((worker) => ({
      what: `copies of cookies tried at worker ${worker}`,
      count: often(worker),
      least: least(tried),
    })),
    { what: 'workers with a log', count: busiest.length, least: replicas.length * each },
  ]
}
