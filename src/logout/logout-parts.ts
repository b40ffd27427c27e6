import type { Site } from '../core/site.ts'
import type { Audit, Cause } from '../observe/audit.ts'
import type { Log } from '../observe/log.ts'
import type { Pages } from '../pages/pages.ts'
import type { Provider } from '../provider/provider.ts'
import type { SessionCookie } from '../session/cookies/cookie.ts'
import type {
  BoundCookie,
  BoundCookieFault,
  PersonCookie,
  ProviderCookie,
  RefusedSignIns,
} from '../session/cookies/gateway-cookies.ts'
import type { SessionEndings } from '../session/live/endings.ts'
import type { SessionsOfAudience } from '../session/live/live-sessions.ts'
import type { PersonSessions } from '../session/people/person-sessions.ts'
import type { StoredSession } from '../session/record/record.ts'

export interface LogoutParts {
  readonly provider: Pick<
    Provider,
    'verifyLogoutToken' | 'endSessionRequest' | 'endSessionOrigin' | 'endSession' | 'frameOrigins' | 'revoke' | 'config'
  >
  readonly sessions: Pick<SessionsOfAudience, 'audience' | 'read'>
  readonly endings: Pick<SessionEndings, 'endOne' | 'endSid' | 'endPresentSid' | 'endSub'>
  readonly cookie: SessionCookie
  readonly boundCookie: Pick<BoundCookie, 'faultOf' | 'lacksDevice' | 'expire'>
  /** Records that a request uses the cookie of a bound session without its key. */
  readonly misuseLog: {
    note(
      misuse: { readonly session: StoredSession; readonly fault: BoundCookieFault },
      skipped: string | undefined,
      cause: Cause,
    ): void
  }
  readonly personCookie: Pick<PersonCookie, 'expire'>
  readonly personSessions: Pick<PersonSessions, 'list' | 'end'>
  /** Whether people have a page with their sessions. */
  readonly showsSessions: boolean
  readonly refusedSignIns: Pick<RefusedSignIns, 'read' | 'take' | 'expire'>
  readonly providerCookie: Pick<ProviderCookie, 'expire'>
  readonly log: Log
  readonly audit: Audit
  readonly pages: Pages
  /** The path of the endpoints of the provider. */
  readonly prefix: string
  readonly reservedPrefix: string
  /** The hosts that share a session. `undefined`: each host has a session of its own. */
  readonly site: Site | undefined
}
