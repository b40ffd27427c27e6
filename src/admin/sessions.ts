import type { GatewayConfig } from '../config/model/gateway.ts'
import type { Clock } from '../core/clock.ts'
import { reason } from '../core/errors.ts'
import { pauses } from '../core/pauses.ts'
import { randomId } from '../core/random.ts'
import { Keyring } from '../core/seal.ts'
import type { EndingResult, SessionsAdministration, SessionSummary } from './administration.ts'
import type { Selection } from './selection.ts'
import type { SessionColumn, SessionQuery, OrderOutcome, Overview } from './view.ts'

/** How many sessions are listed at most, on all pages. */
const maxSessions = 10_000
/** How many sessions a page of the list has. */
const pageSize = 25
/** How long the form on the page can be used, in ms. */
const orderLifetimeMs = 60 * 60 * 1000
/** Binds the seal of an order to this purpose. */
const orderContext = 'page for administration: end a session'

export interface AdminSessionsParts {
  readonly running: () => GatewayConfig
  readonly administration: () => SessionsAdministration
  readonly clock: Clock
}

/** The sessions that the page shows, each with the value of the form that ends it. */
export async function findSessions(query: SessionQuery, parts: AdminSessionsParts): Promise<Overview['sessions']> {
  const administration = parts.administration()
  const search = { deadline: performance.now() + pauses.searchSessionsMs, read: 0 }
  const found = new Map<string, SessionSummary>()
  const options = { deadline: search.deadline, onRead: (count: number) => void (search.read += count) }
  try {
    for (const selection of selectionsOf(query))
      for await (const session of administration.list(selection, options)) {
        found.set(session.key, session)
        if (found.size > maxSessions) break
      }
    const isCut = found.size > maxSessions || performance.now() > search.deadline
    const sorted = sortedBy(query.sort, [...found.values()].slice(0, maxSessions))
    const pages = Math.max(1, Math.ceil(sorted.length / pageSize))
    const page = Math.min(query.page, pages)
    const countDeadline = performance.now() + pauses.searchSessionsMs
    return {
      found: sorted
        .slice((page - 1) * pageSize, page * pageSize)
        .map((session) => ({ ...session, order: sealOrder(session.key, parts) })),
      page,
      pages,
      listed: sorted.length,
      isCut,
      // A text is in no index, so the count is that of all sessions.
      count: isCut ? await administration.count(exactSelection(query), countDeadline) : found.size,
      read: search.read,
    }
  } catch (error) {
    return { fault: reason(error) }
  }
}

/** People by name, and the latest times first. */
const sortKeys: Readonly<Record<SessionColumn, (session: SessionSummary) => string | number>> = {
  person: ({ person, sub }) => (person ?? sub).toLowerCase(),
  // To the minute, as the page shows it: the store is not exact, and rows must keep their places.
  activity: ({ last_used_at = 0 }) => -Math.floor(last_used_at / 60_000),
  began: ({ created_at }) => -created_at,
}

/** Equal sessions are in the order of their keys, so that no page repeats one of another. */
function sortedBy(sort: SessionQuery['sort'], sessions: readonly SessionSummary[]): readonly SessionSummary[] {
  const keyOf = sortKeys[sort.replace('-', '') as SessionColumn]
  const sign = sort.startsWith('-') ? -1 : 1
  const keyed = sessions.map((session) => [keyOf(session), session] as const)
  return keyed
    .toSorted(([a, one], [b, other]) => (a < b ? -sign : a > b ? sign : one.key < other.key ? -1 : 1))
    .map(([, session]) => session)
}

/**
 * What to look for, in this order. The indexes find the whole value of a `sub`, `sid` or key at
 * once, even in a store that is too large to be read.
 */
function selectionsOf(query: SessionQuery): readonly Selection[] {
  const { sub, sid, text } = query
  if (text === '') return [exactSelection(query)]
  if (sub !== '' || sid !== '') return [{ ...exactSelection(query), text }]
  return [{ sid: text }, { sub: text }, { key: text }, { text }]
}

function exactSelection({ sub, sid }: SessionQuery): Selection {
  return { ...(sub === '' ? {} : { sub }), ...(sid === '' ? {} : { sid }) }
}

/** Ends the session that a form of the page names. */
export async function endByOrder(order: string, client: string, parts: AdminSessionsParts): Promise<OrderOutcome> {
  const key = openOrder(order, parts)
  if (key === undefined)
    return {
      status: 400,
      title: 'No session was ended',
      text: 'The form was not from this page, or the page was open for too long, or the session keys have changed. Open the overview again and use its button.',
    }
  try {
    return outcomeOf(await parts.administration().end({ key }, { request: randomId(), client }))
  } catch (error) {
    return notEnded(reason(error))
  }
}

/** The outcome for a session that may still exist. */
export function notEnded(why: string): OrderOutcome {
  return {
    status: 503,
    title: 'The session has not ended everywhere',
    text: `${why.replace(/\.+$/, '')}. Press the button again.`,
  }
}

/**
 * Seals the value of a form. All processes and replicas share the session keys, so each can open
 * the value, and a client cannot create one.
 */
function sealOrder(key: string, { running, clock }: AdminSessionsParts): string {
  const order = JSON.stringify({ key, until: clock.now() + orderLifetimeMs })
  return new Keyring(running().session.keys).seal(order, orderContext).toString('base64url')
}

function openOrder(order: string, { running, clock }: AdminSessionsParts): string | undefined {
  const opened = new Keyring(running().session.keys).open(Buffer.from(order, 'base64url'), orderContext)
  if (opened === undefined) return undefined
  const { key, until } = JSON.parse(opened.toString()) as { readonly key: string; readonly until: number }
  return clock.now() < until ? key : undefined
}

function outcomeOf({ ended, atProvider, failure }: EndingResult): OrderOutcome {
  if (failure !== undefined) return notEnded(failure)
  if (ended === 0) return { status: 404, title: 'No session was ended', text: 'This session has ended already.' }
  const [outcome = 'not_asked'] = Object.keys(atProvider) as (keyof typeof atProvider)[]
  const atTheProvider = {
    ended: 'It has ended at the provider too.',
    unsupported: 'The provider has no end_session_endpoint: the person can sign in again without a password.',
    unknown: 'Whether it has ended at the provider is unknown.',
    unreachable: 'The provider is unreachable: the person can sign in again without a password.',
    not_asked: 'No request was sent to the provider.',
  }[outcome]
  return { status: 200, title: 'The session has ended', text: `It has ended on every replica. ${atTheProvider}` }
}
