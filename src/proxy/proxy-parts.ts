import type { Clock } from '../core/clock.ts'
import type { SessionKey } from '../core/names.ts'
import type { ReceivedCookies } from '../http/cookie-jar.ts'
import type { Log } from '../observe/log.ts'
import type { Pages } from '../pages/pages.ts'
import type { LiveStreams } from './live-streams.ts'
import type { Upstreams } from './upstream.ts'

export interface ProxyParts {
  readonly upstreams: Upstreams
  readonly live: LiveStreams
  readonly log: Log
  readonly pages: Pages
  /** Whether a cookie is one of the gateway's own, which upstreams neither receive nor set. */
  readonly isGatewayCookie: (name: string) => boolean
  /** Stores the cookies that an upstream sets in a session, and are kept there. */
  readonly keepCookies: (session: SessionKey, upstream: string, cookies: ReceivedCookies) => Promise<void>
  /** Whether the session remembers where a cookie of this name is in the browser. */
  readonly isNotedCookie: (name: string) => boolean
  /** Whether there are names of such cookies. */
  readonly notesCookies: boolean
  readonly clock: Clock
  /** How long a client may pause while it sends content, in ms. */
  readonly bodyIdleTimeoutMs: number
  /** The minimum rate of content, in bytes/s, averaged over `bodyIdleTimeoutMs`. 0: none. */
  readonly bodyRateBytesPerSecond: number
  /** Whether a session has ended. */
  readonly hasEnded: (session: SessionKey) => boolean
  /** The session is in use: content has moved, or the client of a tunnel has sent data. */
  readonly onActivity: (session: SessionKey) => void
}
