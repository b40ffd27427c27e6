import { AddressSet } from '../../core/addresses.ts'
import { parseClaimPath } from '../../core/claims.ts'
import { withoutDelimiters } from '../../core/linear-pattern.ts'
import { TimeWindow } from '../../core/time-window.ts'
import { hintForClaimPath } from '../document/claim-hints.ts'
import type { Setting } from '../document/report.ts'
import type { ClaimTests, Networks, RequirementConfig } from '../model/requirement.ts'
import type { RequirementSettings, RuleSettings } from '../settings.ts'
import { isList, readEach } from './build-context.ts'
import { type ShortNames, withLongName } from './claim-names.ts'

/** Reads one requirement, or a list of which all must be met. */
export function readRequirements(
  settings: RuleSettings['require'],
  at: Setting,
  claims: ShortNames,
): readonly RequirementConfig[] {
  if (settings === undefined) return []
  return isList(settings) ? readList(settings, at, claims) : [readRequirement(settings, at, claims) ?? []].flat()
}

function readList(list: readonly RequirementSettings[], at: Setting, claims: ShortNames): readonly RequirementConfig[] {
  return readEach(list, at, (one, oneAt) => readRequirement(one, oneAt, claims))
}

function readRequirement(
  settings: RequirementSettings,
  at: Setting,
  claims: ShortNames,
): RequirementConfig | undefined {
  const { claim, emailDomains, verified, networks, time, methods, all, any, not, ...tests } = settings
  if (claim !== undefined) return readClaimRequirement(tests, claim, at, claims)
  if (emailDomains !== undefined) return readEmailDomains(verified, emailDomains, at)
  if (networks !== undefined) return { kind: 'networks', ...networksOf(networks) }
  if (time !== undefined) return readTime(time, at.below('time'))
  if (methods !== undefined) return { kind: 'methods', methods }
  if (all !== undefined) return { kind: 'all', all: readList(all, at.below('all'), claims) }
  if (any !== undefined) return { kind: 'any', any: readList(any, at.below('any'), claims) }
  const negated = not && readRequirement(not, at.below('not'), claims)
  return negated && { kind: 'not', not: negated }
}

function readClaimRequirement(
  tests: ClaimTests,
  claim: string,
  at: Setting,
  claims: ShortNames,
): RequirementConfig | undefined {
  warnOfValues(tests, claim, at)
  const read = (): RequirementConfig => ({
    kind: 'claim',
    claim: withLongName(parseClaimPath(claim), claims),
    claimText: claim,
    ...tests,
  })
  return at.below('claim').parse(claim, read, /\s/.test(claim) ? undefined : hintForClaimPath(claim))
}

/** Warns about values that no claim has: lists in one text, and `*`, which is no wildcard. */
function warnOfValues(tests: ClaimTests, claim: string, at: Setting): void {
  const lists = { any_of: tests.anyOf, all_of: tests.allOf, none_of: tests.noneOf }
  for (const [name, values = []] of Object.entries(lists)) {
    if (isSplitName(values))
      at.below(name).warning(
        'looks like one distinguished name that is split at its commas',
        `write ${name}: ["${values.join(',')}"]`,
      )
    readEach(values, at.below(name), (value, valueAt) => warnOfValue(value, claim, valueAt, name))
  }
  const { equals, contains, beginsWith, endsWith } = tests
  const matches = tests.matches?.text
  const texts = { equals, contains, begins_with: beginsWith, ends_with: endsWith }
  for (const [name, text] of Object.entries(texts))
    if (text !== undefined) warnOfValue(text, claim, at.below(name), name)
  const [, delimited] = /^\/(?!\^)(.*[.*+?[(|\\$].*)\/[gimsuy]+$/.exec(matches ?? '') ?? []
  if (delimited !== undefined)
    at.below('matches').warning('has slashes around it, which are characters to match', withoutDelimiters(delimited))
  // After a name, and not after \\w.
  if (matches !== undefined && /^(?:.*[^\\])?[\w-]\*$/.test(matches))
    at.below('matches').warning(
      'ends with *, which repeats the character before it only',
      `write matches: '${matches.slice(0, -1)}.*'`,
    )
}

/** Whether a list has the parts of one distinguished name: `[CN=admins, OU=groups, DC=example]`. */
function isSplitName(values: readonly string[]): boolean {
  return (
    values.length > 1 &&
    values.every((value) => /^(?:CN|OU|DC|O|L|ST|C|UID)=[^,=]+$/i.test(value.trim())) &&
    values.slice(1).some((value) => /^(?:DC|O|OU)=/i.test(value.trim()))
  )
}

function warnOfValue(value: string, claim: string, at: Setting, test: string): void {
  const parts = value.split(',').map((part) => part.trim())
  if (/^[\w.@-]+(?:,[\w.@-]+|, [a-z\d][\w.@-]*)+$/.test(value))
    at.warning('is one value with a comma in it', `write ${test === 'equals' ? 'any_of' : test}: [${parts.join(', ')}]`)
  else if (test === 'equals' && /(?:groups|roles|permissions|entitlements)"?$/.test(claim))
    at.warning(
      `compares the whole list: a person who has a further value in ${claim} does not match`,
      `write any_of: [${/^[\w.@-]+$/.test(value) ? value : `'${value}'`}] in place of equals`,
    )
  // Permissions such as orders:* have this name.
  if (!/^\*|[\w@-]\*$/.test(value) || /permission|scope|entitlement/i.test(claim)) return
  const rest = value.replace(/^\*|\*$/g, '')
  const isOne = test === 'equals' || test === 'any_of'
  at.warning(
    'is compared as it is: * is no wildcard here',
    rest === ''
      ? "for any value, write matches: '.+'"
      : isOne
        ? rest.startsWith('@')
          ? `write email_domains: [${rest.slice(1)}] in place of claim`
          : `write ${value.startsWith('*') ? 'ends_with' : 'begins_with'}: '${rest}'`
        : `write '${rest}'`,
  )
}

function readEmailDomains(verified: boolean, emailDomains: readonly string[], at: Setting): RequirementConfig {
  if (!verified)
    at.below('verified').warning(
      'is false: with many providers, people can set any e-mail address for themselves',
      'let the provider send email_verified, or require a claim that only administrators change',
    )
  return { kind: 'email_domains', emailDomains, verified }
}

export function networksOf(networks: NonNullable<RuleSettings['networks']>): Networks {
  return { networks: new AddressSet(networks), text: networks.map(({ text }) => text) }
}

function readTime(
  { days, from, to, zone }: NonNullable<RequirementSettings['time']>,
  at: Setting,
): RequirementConfig | undefined {
  if (zone !== undefined && from === to) at.below('to').error('is the same as from', 'for the whole day, remove both')
  return at.below('zone').parse(zone, (zone): RequirementConfig => {
    try {
      return { kind: 'time', time: new TimeWindow({ days, from, to, zone }) }
    } catch {
      throw new SyntaxError('must be the name of a time zone such as Europe/Berlin or UTC')
    }
  })
}
