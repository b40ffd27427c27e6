import type { RequirementConfig } from '../config/model/requirement.ts'
import type { StepUp } from '../core/step-up.ts'
import type { RequestFacts } from '../http/request-facts.ts'
import type { PrincipalRecord } from '../session/record/record.ts'
import type { KeyIdentity } from '../tokens/access-keys.ts'
import type { AccountIdentity } from '../tokens/service-accounts.ts'
import type { Identity } from './identify.ts'
import type { Unmet } from './rules/requirement.ts'
import type { Route } from './rules/route-table.ts'

/** A step of a decision. */
export type DecisionStep =
  /**
   * Absent: no upstream serves the request. After a rule about maintenance, the next one follows.
   */
  | { readonly step: 'route'; readonly route: Route | undefined }
  /** The rule lets anybody in, so no session is read. */
  | { readonly step: 'anybody' }
  | { readonly step: 'session'; readonly isOptional: boolean; readonly identity: Identity }
  /** Absent: the token is not accepted. `missing`: the scopes that it lacks. */
  | {
      readonly step: 'token'
      readonly record?: Pick<PrincipalRecord, 'sub' | 'sid'>
      readonly missing: readonly string[]
    }
  | { readonly step: 'account'; readonly name: string | undefined; readonly identity: AccountIdentity }
  | { readonly step: 'key'; readonly identity: KeyIdentity }
  /** `why` the request must not act in the name of the person. Absent: it may. */
  | { readonly step: 'cross-site'; readonly facts: RequestFacts; readonly why: string | undefined }
  | { readonly step: 'requirement'; readonly requirement: RequirementConfig; readonly unmet: Unmet | undefined }
  | { readonly step: 'step-up'; readonly stepUp: StepUp; readonly unmet: Unmet | undefined }

/**
 * Gets the steps of a decision while it is made, in its order. Requests are served without one;
 * `explain` prints them.
 */
export type Trace = (step: DecisionStep) => void
