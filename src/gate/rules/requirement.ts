import type { ClaimRequirement, RequirementConfig } from '../../config/model/requirement.ts'
import type { RuleConfig } from '../../config/model/rule.ts'
import { asciiDomain, ipAddress } from '../../core/addresses.ts'
import {
  absenceOf,
  type ClaimPath,
  type Claims,
  isExactScalar,
  isWithheld,
  type JsonValue,
  readClaim,
  withheldReason,
} from '../../core/claims.ts'
import { matchesMethod } from '../../core/patterns.ts'
import { type Authentication, insufficiency } from '../../core/step-up.ts'

/** Why a requirement is not met. `why`, for the log, names no values of claims. */
export interface Unmet {
  readonly code: 'ERR_FORBIDDEN' | 'ERR_CLAIM_ABSENT' | 'ERR_CLAIM_WITHHELD' | 'ERR_STEP_UP' | 'ERR_DEVICE_BINDING'
  readonly why: string
  /** It cannot be decided, because of the shape of a claim. Then `not` of it is not met either. */
  readonly isUnknown?: true
}

/** The facts that requirements are checked against. */
export interface Subject {
  readonly claims: Claims
  readonly method: string
  /** The address of the client, as `ipAddress` gives it. */
  readonly clientAddress: string
  /** In ms since the epoch. */
  readonly now: number
}

/**
 * Why a rule is not met: the first requirement that is not. `undefined` when all are met.
 * @param tell gets the outcome of each requirement, also of those after the first unmet one
 */
export function unmetRequirement(
  { require }: Pick<RuleConfig, 'require'>,
  subject: Subject,
  tell?: (requirement: RequirementConfig, unmet: Unmet | undefined) => void,
): Unmet | undefined {
  let first: Unmet | undefined
  for (const requirement of require) {
    const unmet = outcomeOf(requirement, subject)
    if (unmet !== undefined && tell === undefined) return unmet
    tell?.(requirement, unmet)
    first ??= unmet
  }
  return first
}

/** Why an authentication is not sufficient for a rule: see {@link insufficiency}. */
export function unmetStepUp(
  { stepUp }: Pick<RuleConfig, 'stepUp'>,
  authentication: Authentication = {},
  options: Parameters<typeof insufficiency>[2],
): Unmet | undefined {
  const why = stepUp && insufficiency(stepUp, authentication, options)
  return why === undefined ? undefined : { code: 'ERR_STEP_UP', why }
}

function outcomeOf(requirement: RequirementConfig, subject: Subject): Unmet | undefined {
  switch (requirement.kind) {
    case 'claim':
      return claimOutcome(requirement, subject.claims)
    case 'email_domains':
      return emailOutcome(requirement, subject.claims)
    case 'networks':
      if (ipAddress(subject.clientAddress) === undefined) return unknown('the address of the client is unknown')
      return requirement.networks.has(subject.clientAddress)
        ? undefined
        : forbidden(`the client is not in ${list(requirement.text)}`)
    case 'time':
      return requirement.time.has(subject.now)
        ? undefined
        : forbidden(`the time is not within ${requirement.time.text}`)
    case 'methods':
      return matchesMethod(requirement.methods, subject.method)
        ? undefined
        : forbidden(`the method is not ${list(requirement.methods)}`)
    case 'all':
      return allOutcome(requirement.all, subject)
    case 'any':
      return anyOutcome(requirement.any, subject)
    case 'not': {
      const unmet = outcomeOf(requirement.not, subject)
      if (unmet === undefined) return forbidden(`this must not be true: ${requirementText(requirement.not)}`)
      return unmet.isUnknown === true ? unmet : undefined
    }
  }
}

/**
 * The reason of a requirement that is certainly not met comes before that of one that cannot be
 * decided, because `not` depends on the difference.
 */
function allOutcome(all: readonly RequirementConfig[], subject: Subject): Unmet | undefined {
  const unmet = all.flatMap((each) => outcomeOf(each, subject) ?? [])
  return unmet.find(({ isUnknown }) => isUnknown !== true) ?? unmet[0]
}

function anyOutcome(any: readonly RequirementConfig[], subject: Subject): Unmet | undefined {
  const unmet: Unmet[] = []
  for (const each of any) {
    const outcome = outcomeOf(each, subject)
    if (outcome === undefined) return undefined
    unmet.push(outcome)
  }
  const isUnknown = unmet.some((each) => each.isUnknown === true)
  const isAbsent = unmet.length > 0 && unmet.every(({ code }) => code === 'ERR_CLAIM_ABSENT')
  const isWithheld = unmet.some(({ code }) => code === 'ERR_CLAIM_WITHHELD')
  return {
    code: isWithheld ? 'ERR_CLAIM_WITHHELD' : isAbsent ? 'ERR_CLAIM_ABSENT' : 'ERR_FORBIDDEN',
    why: `none of these is met: ${unmet.map(({ why }) => why).join('; ')}`,
    ...(isUnknown && { isUnknown }),
  }
}

function claimOutcome(requirement: ClaimRequirement, claims: Claims): Unmet | undefined {
  const { claimText, equals, anyOf, allOf, contains, beginsWith, endsWith, matches } = requirement
  const claim = readClaim(claims, requirement.claim)
  const absence = absenceOf(claims, requirement.claim)
  if (absence === 'withheld') return withheld(claimText)
  if (absence === 'another type') return unknown(`${claimText}: a part of this path is of another type`)
  const needed = [equals, anyOf, allOf, contains, beginsWith, endsWith, matches]
  if (needed.some((condition) => condition !== undefined) && absence === 'missing')
    return { code: 'ERR_CLAIM_ABSENT', why: `${claimText}: the claim is absent` }
  const values = valuesOf(claim)
  if (values === undefined)
    return unknown(`${claimText}: the claim is neither text, a number, true or false, nor a list of those`)
  const why = unmetReason(requirement, values)
  return why === undefined ? undefined : forbidden(`${claimText}: ${why}`)
}

function unmetReason(requirement: ClaimRequirement, values: readonly string[]): string | undefined {
  const { equals, anyOf, allOf, noneOf, contains, beginsWith, endsWith, matches } = requirement
  if (equals !== undefined && (values.length !== 1 || values[0] !== equals)) return `is not ${shown(equals)}`
  if (anyOf && !anyOf.some((wanted) => values.includes(wanted))) return `holds none of ${list(anyOf)}`
  if (allOf && (values.length === 0 || !allOf.every((wanted) => values.includes(wanted))))
    return `does not hold all of ${list(allOf)}`
  if (noneOf?.some((unwanted) => values.includes(unwanted))) return `holds one of ${list(noneOf)}`
  if (contains !== undefined && !values.some((value) => value.includes(contains)))
    return `no value contains ${contains}`
  if (beginsWith !== undefined && !values.some((value) => value.startsWith(beginsWith)))
    return `no value begins with ${beginsWith}`
  if (endsWith !== undefined && !values.some((value) => value.endsWith(endsWith)))
    return `no value ends with ${endsWith}`
  if (matches !== undefined && !values.some((value) => matches.matches(value)))
    return `no value matches ${matches.text}`
  return undefined
}

/**
 * The values of a claim; `undefined` when it has a shape that cannot be compared. Such a claim is
 * not treated as absent, because `none_of` would then apply.
 */
function valuesOf(claim: JsonValue | undefined): readonly string[] | undefined {
  if (claim === undefined || claim === null) return []
  const members: readonly JsonValue[] = Array.isArray(claim) ? claim : [claim]
  return members.every(isExactScalar) ? members.map(String) : undefined
}

function emailOutcome(
  { emailDomains, verified }: Extract<RequirementConfig, { kind: 'email_domains' }>,
  claims: Claims,
): Unmet | undefined {
  const read: readonly ClaimPath[] = verified ? [['email'], ['email_verified']] : [['email']]
  const hidden = read.find((path) => isWithheld(claims, path))
  if (hidden !== undefined) return withheld(String(hidden[0]))
  const email = readClaim(claims, ['email'])
  if (email === undefined || email === null) return { code: 'ERR_CLAIM_ABSENT', why: 'email: the claim is absent' }
  const domain = typeof email === 'string' ? domainOf(email) : undefined
  if (domain === undefined) return unknown('email: the claim is not one e-mail address')
  if (verified && !isTrue(readClaim(claims, ['email_verified'])))
    return unknown('email_verified: the provider has not verified the e-mail address')
  return emailDomains.includes(domain) ? undefined : forbidden(`email: the domain is none of ${list(emailDomains)}`)
}

/** Some providers send `email_verified` as text. */
function isTrue(claim: JsonValue | undefined): boolean {
  return claim === true || claim === 'true'
}

/** The domain of an e-mail address, in lower case and in ASCII. `undefined` for other texts. */
function domainOf(email: string): string | undefined {
  const [, domain] = /^[^@\s\p{Cc}]+@([^@]+)$/u.exec(email) ?? []
  return domain === undefined ? undefined : asciiDomain(domain)
}

function forbidden(why: string): Unmet {
  return { code: 'ERR_FORBIDDEN', why }
}

function withheld(claimText: string): Unmet {
  return { code: 'ERR_CLAIM_WITHHELD', why: `${claimText}: ${withheldReason}`, isUnknown: true }
}

function unknown(why: string): Unmet {
  return { code: 'ERR_FORBIDDEN', why, isUnknown: true }
}

/** A requirement in words: `groups has any of admins, editors`. */
export function requirementText(requirement: RequirementConfig): string {
  switch (requirement.kind) {
    case 'claim': {
      const { claimText, equals, anyOf, allOf, noneOf, contains, beginsWith, endsWith, matches } = requirement
      const parts = [
        equals !== undefined && `only ${shown(equals)}`,
        anyOf && `any of ${list(anyOf)}`,
        allOf && `all of ${list(allOf)}`,
        noneOf && `none of ${list(noneOf)}`,
        contains && `a value that contains ${contains}`,
        beginsWith && `a value that begins with ${beginsWith}`,
        endsWith && `a value that ends with ${endsWith}`,
        matches && `a value that matches ${matches.text}`,
      ].filter((part) => typeof part === 'string')
      return `${claimText} has ${parts.join(' and ')}`
    }
    case 'email_domains':
      return `the ${requirement.verified ? 'verified ' : ''}e-mail address is in ${requirement.emailDomains.join(' or ')}`
    case 'networks':
      return `the client is in ${requirement.text.join(' or ')}`
    case 'time':
      return `the time is within ${requirement.time.text}`
    case 'methods':
      return `the method is ${requirement.methods.join(' or ')}`
    case 'all':
      return `(${requirement.all.map(requirementText).join(' and ')})`
    case 'any':
      return `(${requirement.any.map(requirementText).join(' or ')})`
    case 'not':
      return `it is not true that ${requirementText(requirement.not)}`
  }
}

function list(values: readonly string[]): string {
  return values.map(shown).join(', ')
}

/** An empty value in quotation marks, because it would be invisible. */
function shown(value: string): string {
  return value === '' ? '""' : value
}
