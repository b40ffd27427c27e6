import type { RequirementConfig } from './requirement.ts'

/** How the gateway itself responds to the requests that a rule admits. */
export type RespondConfig = OwnResponseConfig | MaintenanceConfig

/** A response for the requests that the rule admits. */
export type OwnResponseConfig = RedirectConfig | FixedResponseConfig | FilesConfig

/** Only requests that meet `unless` are let through: the next rule decides about them. */
export interface MaintenanceConfig {
  readonly kind: 'maintenance'
  /** When clients may try again. */
  readonly retryAfterMs: number
  /** All of them must be met. Empty: all requests get the page. */
  readonly unless: readonly RequirementConfig[]
}

interface Cacheable {
  /** How long browsers may use the response without asking again. */
  readonly maxAgeMs: number
  /** Further header fields of the response. */
  readonly headers: Readonly<Record<string, string>>
}

/** A redirect to `to`. */
export interface RedirectConfig extends Cacheable {
  readonly kind: 'redirect'
  readonly status: RedirectStatus
  /**
   * A URL, or a path at the host of the request. Has a path with a slash at its end with `rest`.
   */
  readonly to: string
  /** What `*` at the end of the path of the rule matches follows `to`. */
  readonly rest: boolean
}

/** RFC 9110 §15.4. After 307 and 308, a client repeats the request with its method and content. */
export const redirectStatuses = [301, 302, 303, 307, 308] as const
export type RedirectStatus = (typeof redirectStatuses)[number]

/** The same response to each request. */
export interface FixedResponseConfig extends Cacheable {
  readonly kind: 'fixed'
  readonly status: number
  readonly bytes: Buffer
}

/** The files of a folder. */
export interface FilesConfig extends Cacheable {
  readonly kind: 'files'
  /** What `*` at the end of the path of the rule matches is the path of a file in it. */
  readonly folder: string
}
