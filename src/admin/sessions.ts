import type { GatewayConfig } from '../config/model.ts'
import type { Clock } from '../core/clock.ts'
import { reason } from '../core/errors.ts'
import { randomId } from '../core/random.ts'
import { Keyring } from '../core/seal.ts'
import type { SessionQuery, OrderOutcome, Overview } from '../pages/admin-page.ts'
import type { EndedByAdministrator, SessionsAdministration, SessionSummary } from './administration.ts'

/** So many sessions are shown at most; others are found by name. */
const mostSessions = 100
/** How long sessions are looked for, and then counted, in ms. */
const lookLimitMs = 2_000
/** How long the page of a session may lie open before its button is pressed, in ms. */
const orderLifetimeMs = 60 * 60 * 1000
/** What an order is sealed for; it is good for nothing else. */
const orderContext = 'page for administration: end a session'

/** What is known of sessions where one looks after them. */
export interface AdminSessionsParts {
  readonly running: () => GatewayConfig
  readonly administration: () => SessionsAdministration
  readonly clock: Clock
}

/** The sessions that the page shows, each with what the form sends that ends it. */
export async function findSessions(
  { sub, sid }: SessionQuery,
  parts: AdminSessionsParts,
): Promise<Overview['sessions']> {
  const administration = parts.administration()
  const selection = { ...(sub === '' ? {} : { sub }), ...(sid === '' ? {} : { sid }) }
  const deadline = performance.now() + lookLimitMs
  const found: SessionSummary[] = []
  try {
    for await (const session of administration.list(selection, deadline)) {
      found.push(session)
      if (found.length > mostSessions) break
    }
    const isTooMany = found.length > mostSessions
    const shown = found.slice(0, mostSessions).toSorted((a, b) => b.created_at - a.created_at)
    return {
      found: shown.map(({ key, sub, person, sid, origin, created_at, absolute_expires_at }) => ({
        ...{
          key,
          sub,
          person,
          sid,
          origin,
          began: created_at,
          ends: absolute_expires_at,
          order: orderToEnd(key, parts),
        },
      })),
      cut: isTooMany ? 'too_many' : performance.now() > deadline ? 'too_slow' : undefined,
      count: isTooMany ? await administration.count(selection, performance.now() + lookLimitMs) : found.length,
      // A store on its own goes through all of them in an order of its own.
      areLatest: parts.running().session.store.kind === 'memory' || Object.keys(selection).length > 0,
    }
  } catch (error) {
    return { fault: reason(error) }
  }
}

/** Ends the session that a form of the page is about. */
export async function endByOrder(order: string, client: string, parts: AdminSessionsParts): Promise<OrderOutcome> {
  const key = keyIn(order, parts)
  if (key === undefined)
    return {
      status: 400,
      title: 'Nothing was ended',
      text: 'What came is no form of this page, or the page has lain open for too long, or the keys have changed. Open the overview again and press the button there.',
    }
  try {
    return told(await parts.administration().end({ key }, { request: randomId(), client }))
  } catch (error) {
    return notEnded(reason(error))
  }
}

/** What is said of a session that may still be there. */
export function notEnded(why: string): OrderOutcome {
  return {
    status: 503,
    title: 'The session has not ended everywhere',
    text: `${why.replace(/\.+$/, '')}. Press the button again.`,
  }
}

/**
 * Sealed by the keys that all processes and replicas share: whichever of them gets the form can
 * open it, and nobody else can make one.
 */
function orderToEnd(key: string, { running, clock }: AdminSessionsParts): string {
  const order = JSON.stringify({ key, until: clock.now() + orderLifetimeMs })
  return new Keyring(running().session.keys).seal(order, orderContext).toString('base64url')
}

function keyIn(order: string, { running, clock }: AdminSessionsParts): string | undefined {
  const opened = new Keyring(running().session.keys).open(Buffer.from(order, 'base64url'), orderContext)
  if (opened === undefined) return undefined
  const { key, until } = JSON.parse(opened.toString()) as { readonly key: string; readonly until: number }
  return clock.now() < until ? key : undefined
}

function told({ ended, atProvider, failure }: EndedByAdministrator): OrderOutcome {
  if (failure !== undefined) return notEnded(failure)
  if (ended === 0) return { status: 404, title: 'Nothing was ended', text: 'This session had ended already.' }
  const [outcome = 'not_asked'] = Object.keys(atProvider) as (keyof typeof atProvider)[]
  const there = {
    ended: 'At the provider it has ended, too.',
    unsupported: 'The provider has no end-session endpoint: whoever is signed in there comes back without a password.',
    unknown: 'The provider did not say whether it has ended there.',
    unreachable: 'The provider could not be reached: a person who is signed in there comes back without a password.',
    not_asked: 'The provider was not asked.',
  }[outcome]
  return { status: 200, title: 'The session has ended', text: `It has ended on every replica. ${there}` }
}
