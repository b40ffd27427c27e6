import type { AddressSet } from '../../core/addresses.ts'
import type { ClaimPath } from '../../core/claims.ts'
import type { TimeWindow } from '../../core/time-window.ts'
import type { RequirementSettings } from '../settings.ts'

export interface Networks {
  readonly networks: AddressSet
  /** As they are written. */
  readonly text: readonly string[]
}

/** What has to be true of a signed-in person or of the request. */
export type RequirementConfig =
  | ClaimRequirement
  /** The e-mail address is in one of these domains: lower case, in ASCII (RFC 5891). */
  | { readonly kind: 'email_domains'; readonly emailDomains: readonly string[]; readonly verified: boolean }
  | ({ readonly kind: 'networks' } & Networks)
  | { readonly kind: 'time'; readonly time: TimeWindow }
  | { readonly kind: 'methods'; readonly methods: readonly string[] }
  | { readonly kind: 'all'; readonly all: readonly RequirementConfig[] }
  | { readonly kind: 'any'; readonly any: readonly RequirementConfig[] }
  | { readonly kind: 'not'; readonly not: RequirementConfig }

/** A requirement that consists of no others. */
type Condition = Exclude<RequirementConfig, { kind: 'all' | 'any' | 'not' }>

/** The conditions of a requirement, also those that it negates. */
export function conditionsOf(requirement: RequirementConfig): readonly Condition[] {
  if (requirement.kind === 'all') return requirement.all.flatMap(conditionsOf)
  if (requirement.kind === 'any') return requirement.any.flatMap(conditionsOf)
  return requirement.kind === 'not' ? conditionsOf(requirement.not) : [requirement]
}

/** Conditions for the values of one claim, all of which apply. */
export interface ClaimRequirement extends ClaimTests {
  readonly kind: 'claim'
  readonly claim: ClaimPath
  /** The path of the claim as in the configuration, for messages. */
  readonly claimText: string
}

/** The settings that test a claim. */
export type ClaimTests = Pick<
  RequirementSettings,
  'equals' | 'anyOf' | 'allOf' | 'noneOf' | 'contains' | 'beginsWith' | 'endsWith' | 'matches'
>
