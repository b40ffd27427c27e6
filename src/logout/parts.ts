import type { ApplicationCookie } from '../config/model.ts'
import type { Audit, Cause } from '../observe/audit.ts'
import type { Log } from '../observe/log.ts'
import type { OpenidProvider } from '../provider/openid-provider.ts'
import type { SessionCookie } from '../session/cookie.ts'
import type { Sessions } from '../session/sessions.ts'

export interface LogoutParts {
  readonly provider: Pick<OpenidProvider, 'verifyLogoutToken' | 'endSessionUrl' | 'endSession' | 'revoke' | 'config'>
  readonly sessions: Pick<Sessions, 'read' | 'endOne' | 'endSid' | 'endPresentSid' | 'endSub'>
  readonly cookie: SessionCookie
  readonly log: Log
  readonly audit: Audit
  readonly reservedPrefix: string
}

/** What signing out needs to know of a request. */
export interface SignOutRequest {
  readonly method: string
  /** The path and query, as they were asked for. */
  readonly url: string
  readonly cookie: string | undefined
  /** `Sec-Fetch-Site`, `Sec-Fetch-Mode`, `Sec-Fetch-Dest`, `Origin` and `Referer`, as far as they were sent. */
  readonly secFetchSite: string | undefined
  readonly secFetchMode: string | undefined
  readonly secFetchDest: string | undefined
  /** `Sec-Purpose`, `Purpose` and `X-Moz`: what browsers announce a load with that nobody has clicked for. */
  readonly purpose: string | undefined
  readonly origin: string | undefined
  readonly referer: string | undefined
  readonly externalUrl: URL
  /** The cookies of the applications on this host, which are expired with the session. */
  readonly applicationCookies: readonly ApplicationCookie[]
  readonly cause: Cause
}
