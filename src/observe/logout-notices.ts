import type { Audit, AuditEvents, Cause } from './audit.ts'

/**
 * A logout that the provider announced, and its result. It contains only what audit events contain.
 */
export interface LogoutNotice {
  /** In ms since the epoch. */
  readonly at: number
  readonly by: 'logout_token' | 'frame'
  readonly outcome: 'obeyed' | 'replayed' | 'refused' | 'not_now'
  readonly iss?: string | undefined
  readonly sid?: string | undefined
  readonly sub?: string | undefined
  /** How many sessions it ended. */
  readonly ended?: number
  /** Why it was refused, or could not be carried out. */
  readonly reason?: string
  /** The ID of its request. */
  readonly request?: string | undefined
}

/**
 * How many notices are kept of those that were obeyed, and of the others. Separate lists prevent
 * refused ones from displacing obeyed ones.
 */
const maxNotices = 20
/** The longest text that is kept, in characters, because clients choose these texts. */
const longestText = 200

/** The latest logouts that were announced. */
export class LogoutNotices {
  readonly #obeyed: LogoutNotice[] = []
  readonly #others: LogoutNotice[] = []

  /** In reverse chronological order. */
  get latest(): readonly LogoutNotice[] {
    return latestOf([this.#obeyed, this.#others])
  }

  /**
   * Wraps an audit and keeps its events about logouts.
   * @param now in ms since the epoch
   */
  watching(audit: Audit, now: () => number): Audit {
    return {
      record: (event, fields, cause) => {
        const notice = noticeOf(event, fields)
        if (notice !== undefined) this.#add({ at: now(), ...notice, ...requestOf(cause) })
        audit.record(event, fields, cause)
      },
    }
  }

  #add(notice: LogoutNotice): void {
    const list = notice.outcome === 'obeyed' ? this.#obeyed : this.#others
    list.unshift(notice)
    if (list.length > maxNotices) list.pop()
  }
}

/** Joins lists, the latest notices first. */
export function latestOf(lists: readonly (readonly LogoutNotice[])[]): readonly LogoutNotice[] {
  return lists.flat().toSorted((a, b) => b.at - a.at)
}

function requestOf(cause: Cause | undefined): { readonly request?: string } {
  return cause === undefined ? {} : { request: cause.request }
}

type Noticed = Omit<LogoutNotice, 'at' | 'request'>

function noticeOf<E extends keyof AuditEvents>(event: E, fields: AuditEvents[E]): Noticed | undefined
function noticeOf(event: keyof AuditEvents, fields: object): Noticed | undefined {
  switch (event) {
    case 'logout_token.obeyed':
      return { by: 'logout_token', outcome: 'obeyed', ...named(fields as AuditEvents['logout_token.obeyed']) }
    case 'logout_token.replayed':
      return { by: 'logout_token', outcome: 'replayed', ...named(fields as AuditEvents['logout_token.replayed']) }
    case 'logout_token.refused':
      return { by: 'logout_token', ...refused(fields as AuditEvents['logout_token.refused']) }
    case 'frontchannel_logout.obeyed':
      return { by: 'frame', outcome: 'obeyed', ...named(fields as AuditEvents['frontchannel_logout.obeyed']) }
    case 'frontchannel_logout.refused':
      return { by: 'frame', ...refused(fields as AuditEvents['frontchannel_logout.refused']) }
    default:
      return undefined
  }
}

function named(fields: Partial<AuditEvents['logout_token.obeyed']>): Omit<Noticed, 'by' | 'outcome'> {
  const { iss, sid, sub, ended } = fields
  return { iss: cut(iss), sid: cut(sid), sub: cut(sub), ...(ended === undefined ? {} : { ended }) }
}

function refused({ code, reason }: AuditEvents['logout_token.refused']): Pick<Noticed, 'outcome' | 'reason'> {
  return { outcome: code.endsWith('_UNAVAILABLE') ? 'not_now' : 'refused', reason: cut(reason) ?? code }
}

function cut<T extends string | undefined>(text: T): string | T {
  return text !== undefined && text.length > longestText ? `${text.slice(0, longestText)}…` : text
}
