import { isDomainOf } from '../../core/domain.ts'
import { matchesAny, type NamePattern } from '../../core/name-pattern.ts'
import { belongsTo, type CookieScope, type KeptCookie, sizeOf } from '../../http/cookie-jar.ts'
import { cookieNames } from '../../http/cookies.ts'
import type { SessionRecord } from '../record/record.ts'

/** The most cookies that a session remembers. */
const maxCookies = 64
const maxBytes = 8 * 1024

/**
 * The names of application cookies in a request that applications have not set in this session, so
 * they may be those of another person. A name also counts when the request has more cookies of this
 * name than the session, because a request does not say which of them the session has.
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

/**
 * The cookies of a session that a response of this host can expire.
 * @param record absent: nothing is known about the session
 */
export function browserCookiesAt(record: SessionRecord | undefined, host: string): readonly KeptCookie[] {
  return (record?.browser_cookies ?? none).filter(({ domain, hostOnly }) =>
    hostOnly === true ? domain === host : isDomainOf(domain, host),
  )
}

/** The cookies that fit into a session. The oldest ones are forgotten. */
export function withoutOldest(cookies: readonly KeptCookie[]): readonly KeptCookie[] {
  let kept = cookies.slice(-maxCookies)
  while (sizeOf(kept) > maxBytes) kept = kept.slice(1)
  return kept
}

/** What a session remembers of a cookie: where it is, and not its value. */
export function placeOf({ name, domain, hostOnly, path, expires_at }: KeptCookie, now: number): KeptCookie {
  const hasExpired = expires_at !== undefined && expires_at <= now
  return { name, value: '', domain, path, ...(hostOnly && { hostOnly }), ...(hasExpired && { expires_at }) }
}
