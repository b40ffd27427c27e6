import { isDomainOf } from '../../core/addresses.ts'
import type { Clock } from '../../core/clock.ts'
import { GatewayError } from '../../core/errors.ts'
import { ownMember } from '../../core/json.ts'
import type { SessionKey } from '../../core/names.ts'
import { matchesAny, type NamePattern } from '../../core/patterns.ts'
import {
  belongsTo,
  type CookieScope,
  keepCookies,
  type KeptCookie,
  type ReceivedCookies,
  sizeOf,
} from '../../http/cookie-jar.ts'
import { cookieNames } from '../../http/cookies.ts'
import type { Sessions } from '../live/live-sessions.ts'
import type { ApplicationSession, SessionRecord } from '../record/record.ts'

/** The most cookies that a session remembers. */
const maxRemembered = 64
const maxRememberedBytes = 8 * 1024

/**
 * The names of application cookies in a request that were not set in this session, so they may be
 * those of another person. A name also counts when the request has more cookies of it than the
 * session, because a request does not say which of them the session has.
 * @param patterns the names of the cookies that belong to one person
 */
export function foreignCookies(
  header: string | undefined,
  { browser_cookies }: SessionRecord,
  patterns: readonly NamePattern[],
  scope: CookieScope,
): readonly string[] {
  // Sessions of earlier versions do not know their cookies.
  if (header === undefined || browser_cookies === undefined || patterns.length === 0) return none
  const counts = new Map<string, number>()
  for (const name of cookieNames(header, '')) counts.set(name, (counts.get(name) ?? 0) + 1)
  const foreign: string[] = []
  for (const [name, count] of counts) {
    if (!matchesAny(patterns, name)) continue
    const own = browser_cookies.filter((cookie) => cookie.name === name && belongsTo(cookie, scope))
    if (count > own.length) foreign.push(name)
  }
  return foreign.length === 0 ? none : foreign
}

const none: readonly never[] = []

/** The cookies of a session, if it is known, that a response of this host can expire. */
export function browserCookiesAt(record: SessionRecord | undefined, host: string): readonly KeptCookie[] {
  return (record?.browser_cookies ?? none).filter(({ domain, hostOnly }) =>
    hostOnly === true ? domain === host : isDomainOf(domain, host),
  )
}

/** The cookies that fit into a session. The oldest ones are forgotten. */
function withoutOldest(cookies: readonly KeptCookie[]): readonly KeptCookie[] {
  let kept = cookies.slice(-maxRemembered)
  while (sizeOf(kept) > maxRememberedBytes) kept = kept.slice(1)
  return kept
}

/** What a session remembers of a cookie: where it is, and not its value. */
function placeOf({ name, domain, hostOnly, path, expires_at }: KeptCookie, now: number): KeptCookie {
  const hasExpired = expires_at !== undefined && expires_at <= now
  return { name, value: '', domain, path, ...(hostOnly && { hostOnly }), ...(hasExpired && { expires_at }) }
}

/** The most cookies of one upstream in a session. */
const maxCookies = 64
/** Their size together. */
const maxCookiesBytes = 16 * 1024

export interface SessionCookiesParts {
  readonly sessions: Pick<Sessions, 'find' | 'read' | 'replace'>
  readonly clock: Clock
}

/** The cookies of applications that are kept in sessions, or expire with them. */
export class SessionCookies {
  readonly #parts: SessionCookiesParts

  constructor(parts: SessionCookiesParts) {
    this.#parts = parts
  }

  /**
   * Stores cookies that an upstream has set, or where they are, beside those of other processes.
   * Does nothing when the session has ended, or has these cookies already.
   * @throws {GatewayError} `ERR_COOKIES_FULL`, and nothing is stored; `ERR_STORE_UNAVAILABLE`
   */
  async keep(key: SessionKey, upstream: string, { kept, inBrowser }: ReceivedCookies): Promise<void> {
    const { sessions, clock } = this.#parts
    const now = clock.now()
    const places = inBrowser.map((cookie) => placeOf(cookie, now))
    for (let stored = await sessions.find(key); stored !== undefined; stored = await sessions.read(key)) {
      const { record } = stored
      const { browser_cookies } = record
      const present = cookiesOf(record, upstream)
      const cookies = keepCookies(present, kept, now)
      const seen = browser_cookies && keepCookies(browser_cookies, places, now)
      if (cookies === present && seen === browser_cookies) return
      checkSize(upstream, cookies)
      const outcome = await sessions.replace(stored, {
        ...record,
        ...(cookies !== present && { cookies: { ...record.cookies, [upstream]: cookies } }),
        ...(seen !== undefined && { browser_cookies: withoutOldest(seen) }),
      })
      if (outcome !== 'conflict') return
    }
  }
}

export function cookiesOf({ cookies }: SessionRecord, upstream: string): readonly KeptCookie[] {
  return cookies !== undefined && Object.hasOwn(cookies, upstream) ? (cookies[upstream] ?? none) : none
}

/** What is known of the session of a person at an upstream. */
export function applicationSessionOf(
  { application_sessions }: SessionRecord,
  upstream: string,
): ApplicationSession | undefined {
  return application_sessions && ownMember(application_sessions, upstream)
}

function checkSize(upstream: string, cookies: readonly KeptCookie[]): void {
  const bytes = sizeOf(cookies)
  if (cookies.length <= maxCookies && bytes <= maxCookiesBytes) return
  const [has, limit] =
    cookies.length > maxCookies
      ? [`${cookies.length} cookies`, maxCookies]
      : [`cookies of ${bytes} bytes`, `${maxCookiesBytes} bytes`]
  throw new GatewayError('ERR_COOKIES_FULL', `"${upstream}" has set ${has}; at most ${limit} are kept in a session`)
}
