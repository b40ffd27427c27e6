import { reason } from '../core/errors.ts'
import type { SessionKey } from '../core/names.ts'
import type { EndpointRequest } from '../http/endpoint-request.ts'
import { hostName } from '../http/request-target.ts'
import { browserCookiesAt } from '../session/cookies/application-cookies.ts'
import { carryOver } from '../session/live/carry-over.ts'
import { markEnding } from '../session/live/endings.ts'
import { sessionKey, type SessionRecord } from '../session/record/record.ts'
import type { SignInParts } from './sign-in-parts.ts'

/** What the end of previous sessions needs. */
export type PreviousSessionsParts = Pick<
  SignInParts,
  'others' | 'cookie' | 'expiredCookies' | 'sessions' | 'endings' | 'store' | 'log'
>

/**
 * Ends the sessions of the browser at other providers of the same upstreams, which would not know
 * who is meant.
 */
export async function endOthers(request: EndpointRequest, parts: PreviousSessionsParts): Promise<string[]> {
  const setCookies: string[] = []
  for (const { cookie, personCookie } of parts.others) {
    // A form that a page sends later is not one of the person who signed in there.
    setCookies.push(...personCookie.expire(request.cookie))
    setCookies.push(...cookie.expireAll(request.cookie, []))
    const id = cookie.read(request.cookie)
    if (id === undefined) continue
    parts.expiredCookies.add(sessionKey(id))
    await endReplaced(sessionKey(id), request, parts)
  }
  return setCookies
}

/**
 * Ends the previous session of the browser, which has one session. That at the provider stays,
 * because the new session may belong to it. If it is the same person, cookies of applications move.
 * @returns `Set-Cookie` values that expire the cookies of applications, because the next request
 * may be that of another person
 */
export async function endPrevious(
  next: SessionKey,
  person: Pick<SessionRecord, 'iss' | 'sub'>,
  request: EndpointRequest,
  parts: PreviousSessionsParts,
): Promise<readonly string[]> {
  const { cookie, expiredCookies, sessions, store, log } = parts
  const previous = cookie.read(request.cookie)
  if (previous === undefined) return cookie.expiry.ofApplications(request.cookie, request.applicationCookies)
  const key = sessionKey(previous)
  const isCarriedOver = await carryOver({ from: key, to: next, person }, sessions).catch((error: unknown) => {
    log.warn('session.cookies_not_carried_over', { reason: reason(error) })
    return false
  })
  // Without it, open pages learn that the session has ended, and soon that there is a new one.
  if (isCarriedOver) await markEnding(key, 'renewal', store).catch(() => {})
  expiredCookies.add(key)
  const [ended] = await endReplaced(key, request, parts)
  if (isCarriedOver) return []
  const cookies = browserCookiesAt(ended?.record, hostName(request.host))
  return cookie.expiry.ofApplications(request.cookie, request.applicationCookies, { cookies })
}

/** Ends a session that the new one replaces. The sign-in goes on if this fails. */
export function endReplaced(key: SessionKey, { cause }: EndpointRequest, { endings, log }: PreviousSessionsParts) {
  return endings.endOne(key, 'new_sign_in', cause).catch((error: unknown) => {
    log.warn('session.previous_not_ended', { reason: reason(error) })
    return []
  })
}
