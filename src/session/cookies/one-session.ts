// Chooses between several session cookies of one name, as another host of the domain can add one.
import { GatewayError } from '../../core/errors.ts'
import type { SessionId } from '../../core/names.ts'
import type { SessionsOfAudience } from '../live/live-sessions.ts'
import { sessionIdFromCookie, sessionKey, type StoredSession } from '../record/record.ts'
import type { SessionCookie } from './session-cookie.ts'

/** How many session cookies of a request are compared, and how many of them are looked up. */
const maxCompared = 64
const maxLookedUp = 8

/** A request has the session cookies of two people. */
export class SeveralSessionsError extends GatewayError {
  /** `Set-Cookie` values that expire the cookies which another host may have added. */
  readonly setCookies: readonly string[]

  constructor(setCookies: readonly string[]) {
    super('ERR_SESSION_AMBIGUOUS', 'the request has session cookies of two people')
    this.setCookies = setCookies
  }
}

interface CookieOfProvider {
  readonly cookie: SessionCookie
  readonly sessions: Pick<SessionsOfAudience, 'peek' | 'findInMemory'>
}

/** A request with its `Cookie` header. `host` is without port, `path` without query. */
interface RequestWithCookies {
  readonly cookie: string | undefined
  readonly host: string
  readonly path: string
}

/** A `Cookie` header with one session cookie of each name. */
interface OneSession {
  readonly cookie: string | undefined
  /** `Set-Cookie` values that expire the cookies beside that of a live session. */
  readonly expireAdded: readonly string[]
}

/**
 * Chooses the session cookie of a live session. One of the same name that another host has added
 * must neither hide the session of the person nor take its place.
 * @throws {SeveralSessionsError} when there are live sessions of different people
 * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
 */
export async function withOneSession(
  { cookie: header, host, path }: RequestWithCookies,
  realms: readonly CookieOfProvider[],
): Promise<OneSession> {
  let one = header
  const expireAdded: string[] = []
  for (const { cookie, sessions } of realms) {
    if (one === undefined) continue
    const values = cookie.severalIn(one)
    if (values.length === 0) continue
    const found: (readonly [value: string, session: StoredSession])[] = []
    for (const id of candidates(values, sessions)) {
      const session = await sessions.peek(sessionKey(id))
      if (session !== undefined) found.push([id, session])
    }
    const [live, ...further] = found
    if (live !== undefined && further.some(([, other]) => !isOfSamePerson(live[1], other)))
      throw new SeveralSessionsError(cookie.expireAdded(host, path))
    if (live !== undefined) expireAdded.push(...cookie.expireAdded(host, path))
    one = cookie.withOnly(one, live?.[0] ?? values[0] ?? '')
  }
  return { cookie: one, expireAdded }
}

/**
 * The values that are looked up: first sessions in memory, because another host can add many, then
 * the last ones, because browsers send longer paths first (RFC 6265bis §5.8.3).
 */
function candidates(
  values: readonly string[],
  sessions: Pick<SessionsOfAudience, 'findInMemory'>,
): readonly SessionId[] {
  const ids = [...new Set(values.slice(-maxCompared))].flatMap((value) => sessionIdFromCookie(value) ?? [])
  const isInMemory = (id: SessionId) => sessions.findInMemory(sessionKey(id)) !== undefined
  const inMemory = ids.filter(isInMemory)
  return [...inMemory, ...ids.filter((id) => !inMemory.includes(id)).toReversed()].slice(0, maxLookedUp)
}

function isOfSamePerson({ record: one }: StoredSession, { record: other }: StoredSession): boolean {
  return one.iss === other.iss && one.sub === other.sub
}
