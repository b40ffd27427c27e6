// Slow: 16 s, the checker judges thousands of falsified histories
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { brotliDecompressSync } from 'node:zlib'
import { findingsOf } from '../../chaos/checker.ts'
import { Facts } from '../../chaos/facts.ts'
import type { HistoryEvent, Receipt, Refresh, Request, Stream, Token } from '../../chaos/history.ts'
import { changes } from '../../chaos/judge.ts'
import { modelHistory } from '../../chaos/model.ts'
import { type Random, seeded } from '../support/random.ts'
import { isLongSearch, searchFor } from '../support/searches.ts'

// How much the checker sees: in true histories, some events of a kind are changed at random places,
// and the share is asserted that it finds. What a fault excuses, it must not find.

/** Changes one event of a history, picked at random. Returns what a finding has to name. */
type Change = (events: HistoryEvent[], random: Random, facts: Facts) => HistoryEvent

interface Source {
  readonly name: string
  readonly histories: readonly { readonly events: readonly HistoryEvent[]; readonly facts: Facts }[]
  /** So many histories are changed for each kind, at so many places at once. */
  readonly times: number
  readonly placesEach: number
  /** The least share of each kind that is not always found. */
  readonly least: Readonly<Record<string, number>>
  /** Whether it has what a kind changes. */
  readonly has: (kind: string) => boolean
}

const lateCall = 'a logout call a minute later'

/** No event is changed twice. */
const changed = new Set<HistoryEvent>()

function note<T extends HistoryEvent>(event: T): T {
  changed.add(event)
  return event
}

function pick<T extends HistoryEvent>(
  events: readonly HistoryEvent[],
  random: Random,
  isGood: (event: T) => boolean,
): T {
  const found = events.filter((event) => !changed.has(event) && isGood(event as T)) as T[]
  return note(random.pick(found))
}

function replace<T extends HistoryEvent>(events: HistoryEvent[], event: T, by: T): T {
  events[events.indexOf(event)] = by
  return note(by)
}

function replaceLast<T extends HistoryEvent>(events: HistoryEvent[], by: T): T {
  events[events.length - 1] = by
  return note(by)
}

const isServed = (event: HistoryEvent): boolean => event.type === 'request' && event.identity !== undefined

const ofRequest =
  (change: (request: Request, random: Random) => Request, isGood: (request: Request) => boolean = isServed): Change =>
  (events, random) => {
    const request = pick<Request>(events, random, (event) => isServed(event) && isGood(event))
    return replace(events, request, change(request, random))
  }

/** A copy of an admitted request of a session, at another time. */
function admit(events: HistoryEvent[], like: Request, session: string, begin: number): Request {
  const id = `planted-${events.length}`
  const request = { ...like, session, id, echo: id, begin, end: begin + 5 }
  const receipt = { type: 'receipt', at: begin + 1, request: id, application: like.application } as const
  if (like.identity !== undefined) events.push({ ...receipt, identity: like.identity })
  events.push(request)
  return request
}

const other: Readonly<Record<string, Change>> = {
  'another identity': ofRequest((request) => ({ ...request, identity: { sub: 'mallory', sid: 'other' } })),
  'another response': ofRequest((request) => ({ ...request, echo: 'another' })),
  'other content': (events, random) => {
    const request = pick<Request>(events, random, (one) => isServed(one) && one.digest !== undefined)
    return replace(events, request, { ...request, digest: 'other' })
  },
  'a form twice': (events, random) => {
    const receipt = pick<Receipt>(events, random, ({ type, form }) => type === 'receipt' && form !== undefined)
    const again = { ...receipt, at: receipt.at + 1 }
    events.push(again)
    return again
  },
  'a refresh token used again after 10 s': (events, random) => {
    const use = pick<Refresh>(events, random, ({ type, accepted }) => type === 'refresh' && accepted)
    const again = { ...use, begin: use.end + 10_000, end: use.end + 10_010, accepted: false, isRejected: true }
    events.push(again)
    return again
  },
  'an ended session admitted after 5 s': (events, random, facts) => {
    const ended = [...facts.signIns.values()].flatMap(({ id }) => {
      const like = facts.requests.find(({ session, identity }) => session === id && identity !== undefined)
      const [end] = facts.certainEnds(id)
      return like === undefined || end === undefined || end.cause === 'timeout' ? [] : [{ id, like, at: end.at }]
    })
    const { id, like, at } = random.pick(ended)
    return admit(events, like, id, at + 5_000)
  },
  'a stream closed early': (events, random) => {
    const stream = pick<Stream>(events, random, ({ type, reason }) => type === 'stream' && reason === 'browser')
    return replace(events, stream, { ...stream, reason: 'gateway' })
  },
  'a stream kept for 8 s': (events, random) => {
    const stream = pick<Stream>(events, random, ({ type, reason }) => type === 'stream' && reason === 'gateway')
    return replace(events, stream, { ...stream, end: stream.end + 8_000, lastMessage: stream.end + 8_000 })
  },
  'a session admitted 5 s after a signal': (events, random, facts) => {
    const ended = [...facts.signIns.values()].flatMap(({ id }) => {
      const like = facts.requests.find(({ session, identity }) => session === id && identity !== undefined)
      const end = facts
        .certainEnds(id)
        .find(({ cause }) => cause !== 'timeout' && cause.type === 'ending' && cause.by === 'signal')
      return like === undefined || end === undefined ? [] : [{ id, like, at: end.at }]
    })
    const { id, like, at } = random.pick(ended)
    return admit(events, like, id, at + 5_000)
  },
  'a copy without its key admitted after 45 s': (events, random, facts) => {
    const bound = facts.proofs.flatMap(({ purpose, proved, session, end }) => {
      const like = facts.requests.find((one) => one.session === session && one.identity !== undefined)
      return purpose !== 'registration' || !proved || like === undefined ? [] : [{ session, like, end }]
    })
    const { session, like, end } = random.pick(bound)
    return replaceLast(events, { ...admit(events, like, session, end + 45_000), unproved: true })
  },
  'an access token admitted 40 s after its time': (events, random) => {
    const call = pick<Request>(events, random, (one) => isServed(one) && one.token !== undefined)
    const token = events.find((one) => one.type === 'token' && one.id === call.token) as Token
    const begin = token.expires + 45_000
    return replace(events, call, { ...call, begin, end: begin + 5 })
  },
  'an access token admitted 5 s after its session was ended': (events, random, facts) => {
    const like = facts.requests.find((one) => one.token !== undefined && one.identity !== undefined) as Request
    const ended = [...facts.tokens.values()].flatMap((token) => {
      const order = facts.endings.find(
        ({ by, confirmed, replayed, begin, sid, sub }) =>
          (by === 'logout-token' || by === 'signal') &&
          confirmed &&
          replayed !== true &&
          begin > token.at + 1_000 &&
          (sid === undefined ? sub === token.sub : sid === token.sid),
      )
      return order === undefined || order.end + 5_000 > token.expires ? [] : [{ token, begin: order.end + 5_000 }]
    })
    const { token, begin } = random.pick(ended)
    const { id, sub, sid } = token
    const replica = random.pick(facts.run.replicas)
    const request = { ...like, id: `planted-${events.length}`, token: id, replica, identity: { sub, sid } }
    events.push({ ...request, echo: request.id, begin, end: begin + 5 })
    return note(events.at(-1) as HistoryEvent)
  },
  'a token that was exchanged for another one': (events, random) => {
    const receipt = pick<Receipt>(
      events,
      random,
      ({ type, exchanged }) => type === 'receipt' && exchanged !== undefined,
    )
    return replace(events, receipt, { ...receipt, exchanged: { sub: 'mallory', aud: 'api' } })
  },
  'half of a download, with an end': (events, random) => {
    const request = pick<Request>(events, random, (one) => isServed(one) && one.kind === 'download')
    const { identity: _, echo: __, ...rest } = request
    return replace(events, request, { ...rest, incomplete: true })
  },
  [lateCall]: (events, random, facts) => {
    const called = facts.ownSessions.filter((own) => facts.logoutCalls.has(own.cookie) && !changed.has(own))
    const own = note(random.pick(called))
    for (const call of facts.logoutCalls.get(own.cookie) ?? []) replace(events, call, { ...call, at: call.at + 60_000 })
    return own
  },
  'a message of another stream': (events, random) => {
    const stream = pick<Stream>(events, random, ({ type }) => type === 'stream')
    return replace(events, stream, { ...stream, otherMessage: '{}' })
  },
}

/** The kinds that the first recorded run does not have. */
const newer: readonly string[] = [
  ...['a session admitted 5 s after a signal', 'a copy without its key admitted after 45 s'],
  ...['an access token admitted 40 s after its time', 'an access token admitted 5 s after its session was ended'],
  ...['a token that was exchanged for another one', 'half of a download, with an end', lateCall],
]

const withFacts = (events: readonly HistoryEvent[]) => ({ events, facts: new Facts(events) })

const model: Source = {
  name: 'the model',
  histories: Array.from({ length: 10 }, (_, n) => withFacts(modelHistory(101 + n))),
  ...{ times: 60, placesEach: 5 },
  has: (kind) => kind !== lateCall,
  // A little below what each kind reaches. The rest may be true: it is near a fault, and says why.
  least: {
    // 2.5 s before, a connection of the replica to Redis was cut.
    'refusal: Redis away': 0.9,
    // The access token had expired, and the provider, Redis or another replica was away.
    'refusal: provider away': 0.88,
    // The application was away.
    'refusal: application away': 0.97,
    // The replica was killed or suspended, or the session ended in this moment.
    'no response': 0.86,
    // An order to end the session was not confirmed, or the session was new in a failover.
    'sign-out': 0.88,
    // For more than 4 of its 6 s, the replica, Redis or the provider was away.
    'slow response': 0.73,
    // The replica could not reach Redis just after it had got the new token.
    'a refresh token used again after 10 s': 0.8,
    // The session may have ended, or the replica was killed.
    'a stream closed early': 0.84,
    // Redis was away from the end of the session on.
    'a stream kept for 8 s': 0.95,
    // A failover may have lost the key.
    'a copy without its key admitted after 45 s': 0.94,
    // The process may not have heard of it.
    'an access token admitted 5 s after its session was ended': 0.5,
  },
}

/**
 * Two minutes before a Cluster, with the seed 3, on a machine with two processors and other work.
 * Without samples of memory, and without most of the copies that were refused; tokens are shorter.
 */
const recorded: Source = {
  name: 'a run',
  histories: [withFacts(readRecorded('recorded'))],
  has: (kind) => !newer.includes(kind),
  ...{ times: searchFor(15, 2), placesEach: 20 },
  // For the same reasons. The short search has few places, so its shares differ by some percent.
  least: {
    'refusal: Redis away': 0.9,
    'refusal: provider away': 0.9,
    'refusal: application away': 0.95,
    'no response': 0.84,
    'sign-out': 0.87,
    // Processes also waited for a processor.
    'slow response': isLongSearch ? 0.7 : 0.6,
    // There are 20 refreshes only.
    'a refresh token used again after 10 s': 0.65,
    'a stream closed early': 0.88,
    'a stream kept for 8 s': 0.7,
  },
}

/**
 * A minute and a half before one gateway with a file, with the seed 42, in the same way: browsers
 * with keys, programs and signals. It has few faults.
 */
const recordedAlone: Source = {
  name: 'a run with a file',
  histories: [withFacts(readRecorded('recorded-file'))],
  ...{ times: searchFor(15, 2), placesEach: 20 },
  has: (kind) => newer.includes(kind),
  least: {
    // The process was suspended meanwhile.
    'an access token admitted 5 s after its session was ended': 0.6,
    // Most sessions end in the last minute, or have no cookie of an application any more.
    [lateCall]: 0.12,
  },
}

function readRecorded(name: string): HistoryEvent[] {
  const file = join(import.meta.dirname, `${name}.jsonl.br`)
  const lines = brotliDecompressSync(readFileSync(file)).toString().trimEnd().split('\n')
  return lines.map((line) => JSON.parse(line) as HistoryEvent)
}

/** The share of changes that findings name. */
function shareFound({ histories, times, placesEach }: Source, change: Change): number {
  const random = seeded(1)
  let found = 0
  for (let n = 0; n < times; n += 1) {
    const { events, facts } = histories[n % histories.length] as Source['histories'][number]
    changed.clear()
    const falsified = [...events]
    const changes = Array.from({ length: placesEach }, () => change(falsified, random, facts))
    const named = new Set(findingsOf(falsified).flatMap((finding) => finding.events))
    found += changes.filter((event) => named.has(event)).length
  }
  return found / (times * placesEach)
}

const all: Readonly<Record<string, Change>> = {
  ...Object.fromEntries(Object.entries(changes).map(([kind, change]) => [kind, ofRequest(change)])),
  ...other,
}

for (const { name, histories } of [recorded, recordedAlone])
  test(`the history of ${name} is true`, () => {
    assert.deepEqual(
      histories.map(({ events }) => findingsOf(events)),
      [[]],
    )
  })

for (const source of [model, recorded, recordedAlone])
  for (const [kind, change] of Object.entries(all).filter(([kind]) => source.has(kind)))
    test(`in histories of ${source.name}, the checker finds what it can of "${kind}"`, (t) => {
      const share = shareFound(source, change)
      t.diagnostic(`${(share * 100).toFixed(1)} % of ${source.times * source.placesEach}: ${kind} (${source.name})`)
      assert.ok(share >= (source.least[kind] ?? 1), `${kind}: ${share}`)
    })
