import type { Audit, AuditEvents, Cause } from './audit.ts'

/** How long equal denials are combined, in ms. */
const windowMs = 10_000
/** How many different denials are combined at a time. Further ones are recorded individually. */
const maxWatched = 1000

type Denial = 'access.denied' | 'access.would_be_denied'

interface Watched {
  repeated: number
  readonly event: Denial
  fields: AuditEvents[Denial]
  cause: Cause | undefined
  readonly timer: NodeJS.Timeout
}

/**
 * Wraps an audit and combines repeated denials. The first denial of a session by a rule is recorded
 * at once. Those of the next ten seconds become one event with their number and the fields of the
 * last one.
 */
export class RepeatedDenials implements Audit {
  readonly #audit: Audit
  readonly #watched = new Map<string, Watched>()

  constructor(audit: Audit) {
    this.#audit = audit
  }

  record<E extends keyof AuditEvents>(event: E, fields: AuditEvents[E], cause?: Cause): void {
    if (event === 'access.denied' || event === 'access.would_be_denied')
      this.#denied(event, fields as AuditEvents[Denial], cause)
    else this.#audit.record(event, fields, cause)
  }

  /** Records the denials that were combined so far. */
  flush(): void {
    for (const key of [...this.#watched.keys()]) this.#close(key)
  }

  #denied(event: Denial, fields: AuditEvents[Denial], cause: Cause | undefined): void {
    const key = [event, fields.session, fields.upstream, fields.rule, fields.code].join('\n')
    const watched = this.#watched.get(key)
    if (watched !== undefined) {
      watched.repeated += 1
      watched.fields = fields
      watched.cause = cause
      return
    }
    this.#audit.record(event, fields, cause)
    if (this.#watched.size >= maxWatched) return
    const timer = setTimeout(() => this.#close(key), windowMs).unref()
    this.#watched.set(key, { repeated: 0, event, fields, cause, timer })
  }

  #close(key: string): void {
    const watched = this.#watched.get(key)
    if (watched === undefined) return
    const { repeated, event, fields, cause, timer } = watched
    clearTimeout(timer)
    this.#watched.delete(key)
    if (repeated > 0) this.#audit.record(event, { ...fields, repeated }, cause)
  }
}
