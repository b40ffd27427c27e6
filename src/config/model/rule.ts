import type { NamePattern, PathPattern } from '../../core/patterns.ts'
import type { StepUp } from '../../core/step-up.ts'
import type { Place } from '../document/diagnostics.ts'
import type { RuleSettings } from '../settings.ts'
import type { HeaderConfig } from './header.ts'
import type { Networks, RequirementConfig } from './requirement.ts'
import type { RespondConfig } from './respond.ts'

export interface RuleConfig {
  /**
   * Its place and its path (`upstreams.orders.rules[0]`). Absent in the rule that applies when no
   * other one matches.
   */
  readonly place?: Place
  readonly setting?: string
  /** A name for people. */
  readonly name?: string | undefined
  readonly path: PathPattern
  /** Absent: any method. */
  readonly methods: readonly string[] | undefined
  /** Absent: any client. */
  readonly clients?: Networks | undefined
  /** Which requests of the Model Context Protocol. Absent: any request. */
  readonly mcp?: { readonly call: readonly NamePattern[]; readonly method: readonly NamePattern[] }
  readonly access: RuleSettings['access']
  readonly unauthenticated: 'auto' | 'redirect' | '401'
  /** All of them apply to a signed-in person. */
  readonly require: readonly RequirementConfig[]
  /**
   * `observe`: a person who does not meet `require` or `stepUp` has access, and the audit log says
   * so.
   */
  readonly mode?: RuleSettings['mode']
  /** How the person has to authenticate. Absent: as for any sign-in. */
  readonly stepUp?: StepUp
  /** Whether a session without a key of the device has no access. Absent: as the upstream says. */
  readonly needsDeviceBinding?: boolean
  /**
   * A request may have an access token instead of a session. It needs these scopes besides those of
   * the upstream. Absent: the rule accepts no access tokens.
   */
  readonly accessTokens?: { readonly scopes: readonly string[] }
  /**
   * A request may have the credentials of one of these service accounts instead of a session.
   * Absent: the rule accepts no service accounts.
   */
  readonly serviceAccounts?: readonly string[] | 'all'
  /** A request may have a client certificate instead of a session. */
  readonly clientCertificates?: true
  /** A request may have the key of a person instead of a session. */
  readonly keys?: true
  /** The policy decision point of the upstream is not asked. */
  readonly authorizeWith?: false
  /** All headers for requests of this rule. Absent: those of the upstream. */
  readonly headers?: readonly HeaderConfig[]
  /** The gateway itself responds. Absent: the application gets the requests. */
  readonly respond?: RespondConfig
}
