import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findingsOf } from '../../chaos/checker.ts'
import { Facts } from '../../chaos/facts.ts'
import type { HistoryEvent, Refresh, Request, Stream } from '../../chaos/history.ts'
import { changes } from '../../chaos/judge.ts'
import { modelHistory } from '../../chaos/model.ts'
import { type Random, seeded } from '../support/random.ts'

// How much the checker sees: in true histories, some events of a kind are changed at random places,
// and the share is asserted that it finds. What a fault excuses, it must not find.

/** Changes one event of a history, picked at random. Returns what a finding has to name. */
type Change = (events: HistoryEvent[], random: Random, facts: Facts) => HistoryEvent

/** So many changes of each kind, each in a history of its own. */
const changesEach = 300
/** Each of the histories has some of the changes. */
const seeds = [101, 102, 103, 104, 105, 106, 107, 108, 109, 110]

function pick<T extends HistoryEvent>(
  events: readonly HistoryEvent[],
  random: Random,
  isGood: (event: T) => boolean,
): T {
  const found = events.filter((event) => isGood(event as T)) as T[]
  return random.pick(found)
}

function replace<T extends HistoryEvent>(events: HistoryEvent[], event: T, by: T): T {
  events[events.indexOf(event)] = by
  return by
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
  const request = { ...like, session, id: 'planted', echo: 'planted', begin, end: begin + 5 }
  const receipt = { type: 'receipt', at: begin + 1, request: 'planted', application: like.application } as const
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
    const receipt = pick<Extract<HistoryEvent, { type: 'receipt' }>>(
      events,
      random,
      ({ type, form }) => type === 'receipt' && form !== undefined,
    )
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
  'a message of another stream': (events, random) => {
    const stream = pick<Stream>(events, random, ({ type }) => type === 'stream')
    return replace(events, stream, { ...stream, otherMessage: '{}' })
  },
}

/** Why a kind does not reach 100 % is in the comment. The shares are a little below what it reaches. */
const least: Readonly<Record<string, number>> = {
  // A connection of the same replica to Redis was cut at most 2.5 s before.
  'refusal: Redis away': 0.75,
  'refusal: provider away': 0.75,
  'refusal: application away': 0.75,
  'no response': 0.75,
  'sign-out': 0.75,
  'slow response': 0.75,
  'another identity': 1,
  'another response': 1,
  'other content': 1,
  'a form twice': 1,
  'a refresh token used again after 10 s': 0.75,
  'an ended session admitted after 5 s': 1,
  'a stream closed early': 0.75,
  'a stream kept for 8 s': 0.75,
  'a message of another stream': 1,
}

const histories = seeds.map((seed) => {
  const events = modelHistory(seed)
  return { events, facts: new Facts(events) }
})

/** The share of changes that findings name. */
function shareFound(change: Change): number {
  const random = seeded(1)
  let found = 0
  for (let n = 0; n < changesEach; n += 1) {
    const { events, facts } = histories[n % histories.length] as (typeof histories)[number]
    const changed = [...events]
    const event = change(changed, random, facts)
    if (findingsOf(changed).some((finding) => finding.events.includes(event))) found += 1
  }
  return found / changesEach
}

const all: Readonly<Record<string, Change>> = {
  ...Object.fromEntries(Object.entries(changes).map(([kind, change]) => [kind, ofRequest(change)])),
  ...other,
}

for (const [kind, change] of Object.entries(all))
  test(`of 300 times "${kind}", the checker finds the share that it can`, (t) => {
    const share = shareFound(change)
    t.diagnostic(`${kind}: ${(share * 100).toFixed(1)} %`)
    assert.ok(share >= (least[kind] ?? 1), `${kind}: ${share}`)
  })
