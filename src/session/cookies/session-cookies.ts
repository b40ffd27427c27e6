import type { Clock } from '../../core/clock.ts'
import { GatewayError } from '../../core/errors.ts'
import type { SessionKey } from '../../core/names.ts'
import { keepCookies, type KeptCookie, type ReceivedCookies, sizeOf } from '../../http/cookie-jar.ts'
import type { Sessions } from '../live/sessions.ts'
import type { SessionRecord } from '../record/record.ts'
import { placeOf, withoutOldest } from './browser-cookies.ts'

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
   * Stores cookies that an upstream has set, or where they are. Cookies that other processes store
   * at the same time stay. Does nothing when the session has ended, or has these cookies already.
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

/** The cookies of an upstream in a session. */
export function cookiesOf({ cookies }: SessionRecord, upstream: string): readonly KeptCookie[] {
  return cookies !== undefined && Object.hasOwn(cookies, upstream) ? (cookies[upstream] ?? none) : none
}

const none: readonly KeptCookie[] = []

function checkSize(upstream: string, cookies: readonly KeptCookie[]): void {
  const bytes = sizeOf(cookies)
  if (cookies.length <= maxCookies && bytes <= maxCookiesBytes) return
  const [has, limit] =
    cookies.length > maxCookies
      ? [`${cookies.length} cookies`, maxCookies]
      : [`cookies of ${bytes} bytes`, `${maxCookiesBytes} bytes`]
  throw new GatewayError('ERR_COOKIES_FULL', `"${upstream}" has set ${has}; at most ${limit} are kept in a session`)
}
