import type { MisuseLog } from '../device/misuse.ts'
import { type Admission, misuseIn } from '../gate/admission.ts'
import type { Admit } from '../gate/admit.ts'
import { auditCaller, auditDenial, auditObserved, type Refusal, refusalOf, type Refused } from '../gate/refusal.ts'
import type { Incoming } from '../http/incoming.ts'
import type { MemoryBudget } from '../limits/memory-budget.ts'
import type { Audit } from '../observe/audit.ts'
import type { RequestRecord } from '../observe/request-record.ts'
import type { Pass } from '../proxy/parts.ts'
import type { Refusals } from './refusals.ts'

export interface DecisionsParts {
  readonly admit: Admit
  readonly audit: Audit
  readonly misuseLog: Pick<MisuseLog, 'note'>
  readonly memory: Pick<MemoryBudget, 'admits'>
}

type Decided = Omit<Incoming, 'res'>

/** Has requests decided about, and records the decisions. */
export class Decisions {
  readonly #parts: DecisionsParts
  readonly #refusals: Refusals

  constructor(parts: DecisionsParts, refusals: Refusals) {
    this.#parts = parts
    this.#refusals = refusals
  }

  /** Calls `done` at once when nothing has to be waited for. */
  decide({ facts, record }: Decided, done: (admission: Admission) => void, failed: (error: unknown) => void): void {
    const decided = (admission: Admission) => {
      const misuse = misuseIn(admission)
      if (misuse !== undefined) this.#parts.misuseLog.note(misuse, facts.skippedSession, record.cause)
      done(admission)
    }
    try {
      const admission = this.#parts.admit(facts)
      if (admission instanceof Promise) admission.then(decided).catch(failed)
      else decided(admission)
    } catch (error) {
      failed(error)
    }
  }

  /**
   * Whether there is memory for the request. Only strangers' requests for applications are
   * rejected. A rejected Logout Token would leave a session open.
   */
  hasMemoryFor({ req, facts }: Decided, pass?: Pass): boolean {
    const { clientAddress } = facts.forwarded
    const party = pass?.session ?? (pass?.caller === undefined ? undefined : `${pass.caller} ${clientAddress}`)
    return this.#parts.memory.admits(req.socket, clientAddress, party)
  }

  /** The upstream gets the request. */
  recordPass(record: RequestRecord, { upstream, session, caller, observed }: Pass): void {
    record.upstream = upstream.name
    record.session = session
    record.caller = caller
    if (observed !== undefined) auditObserved(this.#parts.audit, record, observed)
  }

  /**
   * Records why a request is refused, in the audit log or in the log. A missing sign-in is the
   * usual case, so callers that can expect it do not record it.
   */
  recordRefusal({ req, record }: Decided, admission: Refused): Refusal {
    const refusal = refusalOf(admission)
    const { code, why } = refusal
    if ('rule' in admission) auditDenial(this.#parts.audit, record, { ...admission, code })
    else if (admission.kind === 'caller_refused') auditCaller(this.#parts.audit, record, admission)
    else this.#refusals.log(req, record, code, why)
    return refusal
  }
}
