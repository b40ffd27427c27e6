import { clientOf } from '../core/addresses.ts'
import type { Audit, AuditEvents, Cause } from './audit.ts'

/** How long equal denials are combined, in ms. */
const windowMs = 10_000
/** How many different denials are combined at a time. Further ones are recorded individually. */
const maxWatched = 1000

const denials = [
  ...(['access.denied', 'access.would_be_denied', 'token.refused', 'token.would_be_refused'] as const),
  ...(['service_account.refused', 'service_account.would_be_refused'] as const),
]
type Denial = (typeof denials)[number]

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
 * last one. Refused credentials are combined in the same way, for each client.
 */
export class RepeatedDenials implements Audit {
  readonly #audit: Audit
  readonly #watched = new Map<string, Watched>()

  constructor(audit: Audit) {
    this.#audit = audit
  }

  record<E extends keyof AuditEvents>(event: E, fields: AuditEvents[E], cause?: Cause): void {
    if (isDenial(event)) this.#denied(event, fields as AuditEvents[Denial], cause)
    else this.#audit.record(event, fields, cause)
  }

  /** Records the denials that were combined so far. */
  flush(): void {
    for (const key of [...this.#watched.keys()]) this.#close(key)
  }

  #denied(event: Denial, fields: AuditEvents[Denial], cause: Cause | undefined): void {
    const isFull = this.#watched.size >= maxWatched
    const key = keyOf(event, fields, isFull ? undefined : cause?.client)
    const watched = this.#watched.get(key)
    if (watched !== undefined) {
      watched.repeated += 1
      watched.fields = fields
      watched.cause = cause
      return
    }
    this.#audit.record(event, fields, cause)
    // One more for each upstream, when a flood comes from many addresses.
    if (isFull && 'session' in fields) return
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

function isDenial(event: keyof AuditEvents): event is Denial {
  return (denials as readonly string[]).includes(event)
}

/** The reason of refused credentials is no part of it, because a client can choose the text. */
function keyOf(event: Denial, fields: AuditEvents[Denial], client: string | undefined): string {
  const { upstream, code } = fields
  if ('session' in fields) return [event, fields.session, upstream, fields.rule, code].join('\n')
  const { iss, sub, account }: { readonly iss?: unknown; readonly sub?: unknown; readonly account?: unknown } = fields
  // Without a client, the flood comes from many.
  const who = client === undefined ? [] : [iss, sub, account, clientOf(client)]
  return JSON.stringify([event, upstream, code, ...who])
}
