import type { EndpointRequest } from '../../http/endpoint-request.ts'
import type { Cause } from '../../observe/audit.ts'
import type { SessionsOfAudience } from '../live/live-sessions.ts'
import type { Viewer } from '../people/person-sessions.ts'
import { sessionKey, type StoredSession } from '../record/record.ts'
import type { BoundCookie, BoundCookieFault } from './gateway-cookies.ts'
import type { SessionCookie } from './session-cookie.ts'

/** What finds the session of a browser. */
export interface BrowserParts {
  readonly sessions: Pick<SessionsOfAudience, 'read'>
  readonly cookie: Pick<SessionCookie, 'read'>
  readonly boundCookie: Pick<BoundCookie, 'faultOf'>
}

export interface ViewerParts extends BrowserParts {
  readonly boundCookie: Pick<BoundCookie, 'faultOf' | 'lacksDevice' | 'expire'>
  /** Records that a request uses the cookie of a bound session without its key. */
  readonly misuseLog: {
    note(
      misuse: { readonly session: StoredSession; readonly fault: BoundCookieFault },
      skipped: string | undefined,
      cause: Cause,
    ): void
  }
}

/** The session of a browser, on its device if it is bound. This does not extend the session. */
export async function sessionOf(
  header: string | undefined,
  { cookie, boundCookie, sessions }: BrowserParts,
): Promise<StoredSession | undefined> {
  const id = cookie.read(header)
  const session = id && (await sessions.read(sessionKey(id)))
  const isOfDevice = session && boundCookie.faultOf(session.key, session.record.device, header) === undefined
  return isOfDevice ? session : undefined
}

/** The person whose sessions and keys a browser shows. */
export interface SignedInViewer extends Viewer {
  readonly session: StoredSession
}

/**
 * The signed-in person of a browser. A copy of the cookie of a bound session sees nothing. This
 * does not extend the session.
 * @returns `ERR_UNAUTHENTICATED` when the session may have ended (see `isDoubtful`);
 * `ERR_DEVICE_BINDING` for a session without a key where one is required
 */
export async function viewerOf(
  { cookie: header, skippedSession, cause }: EndpointRequest,
  { cookie, boundCookie, sessions, misuseLog }: ViewerParts,
): Promise<SignedInViewer | 'ERR_UNAUTHENTICATED' | 'ERR_DEVICE_BINDING' | undefined> {
  const id = cookie.read(header)
  const session = id && (await sessions.read(sessionKey(id)))
  if (!session) return undefined
  const fault = boundCookie.faultOf(session.key, session.record.device, header)
  if (fault !== undefined) return void misuseLog.note({ session, fault }, skippedSession, cause)
  if (session.isDoubtful === true) return 'ERR_UNAUTHENTICATED'
  if (boundCookie.lacksDevice(session.record)) return 'ERR_DEVICE_BINDING'
  const { sub, sid } = session.record
  return { sub, sid, secret: id, current: session.key, session }
}
