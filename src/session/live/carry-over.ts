import type { SessionKey } from '../../core/names.ts'
import type { SessionRecord } from '../record/record.ts'
import { changeSession, type Sessions } from './live-sessions.ts'

/** The cookies of applications that a session has, or remembers. */
type Cookies = Pick<SessionRecord, 'cookies' | 'browser_cookies'>

const none: Cookies = { cookies: {}, browser_cookies: [] }

/**
 * Moves the cookies of applications to a new session of the same person, so that the applications
 * keep their own sessions. The logout job moves too: when the previous session ends afterwards, no
 * application is called. At any moment one of the two sessions has the job.
 * @returns `false`, and nothing has moved, when one of the sessions is over, or the previous one is
 * that of another person or may be over (see `StoredSession.isDoubtful`)
 * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
 */
export async function carryOver(
  { from, to, person }: { readonly from: SessionKey; readonly to: SessionKey; readonly person: Person },
  sessions: Pick<Sessions, 'read' | 'replace'>,
): Promise<boolean> {
  let hasGiven = false
  for (;;) {
    const previous = await sessions.read(from)
    const isOver = previous === undefined || previous.isDoubtful === true || !isOf(previous.record, person)
    const cookies = isOver ? none : previous.record
    // A session that ended at once cannot take the job over.
    if (
      (hasGiven || !isEmpty(cookies)) &&
      !(await changeSession(to, sessions, (record) => withCookies(record, cookies)))
    )
      return false
    hasGiven = true
    if (isOver) return false
    if (isEmpty(cookies)) return true
    // Fails when a response has set a cookie since the record was read. Then it is read again.
    const outcome = await sessions.replace(previous, withCookies(previous.record, none))
    if (typeof outcome === 'object') return true
  }
}

type Person = Pick<SessionRecord, 'iss' | 'sub'>

function isOf(record: SessionRecord, { iss, sub }: Person): boolean {
  return record.iss === iss && record.sub === sub
}

function isEmpty({ cookies = {}, browser_cookies }: Cookies): boolean {
  // Without the list, the session does not know its cookies: see `SessionRecord`.
  return browser_cookies?.length === 0 && Object.values(cookies).every(({ length }) => length === 0)
}

/**
 * The record with other cookies. An upstream without any keeps an empty list, which removes the job
 * (see `LogoutJobs.sealedFor`).
 */
function withCookies(record: SessionRecord, { cookies = {}, browser_cookies }: Cookies): SessionRecord {
  const { cookies: present = {}, browser_cookies: _, ...others } = record
  const emptied = Object.fromEntries(Object.keys(present).map((upstream) => [upstream, []]))
  return { ...others, cookies: { ...emptied, ...cookies }, ...(browser_cookies && { browser_cookies }) }
}
