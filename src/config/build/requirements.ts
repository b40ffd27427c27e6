import { AddressSet, asciiDomain, ipAddress } from '../../core/addresses.ts'
import { parseClaimPath } from '../../core/claims.ts'
import { LinearPattern, withoutDelimiters } from '../../core/linear-pattern.ts'
import { TimeWindow } from '../../core/time-window.ts'
import { parseSubnet } from '../addresses.ts'
import type { Setting } from '../document/report.ts'
import type { Networks, RequirementConfig } from '../model/requirement.ts'
import type { List, RequirementSettings, RuleSettings } from '../settings.ts'
import { parseEach, readEach, valuesOf } from './build-context.ts'
import { hintForClaimPath, type ShortNames, withLongName } from './claim-names.ts'

/** Reads one requirement, or a list of which all must be met. */
export function readRequirements(
  settings: RuleSettings['require'],
  at: Setting,
  claims: ShortNames,
): readonly RequirementConfig[] {
  if (settings === undefined) return []
  return isList(settings) ? readList(settings, at, claims) : [readRequirement(settings, at, claims) ?? []].flat()
}

function isList(settings: NonNullable<RuleSettings['require']>): settings is List<RequirementSettings> {
  return Array.isArray(settings)
}

function readList(list: List<RequirementSettings>, at: Setting, claims: ShortNames): readonly RequirementConfig[] {
  return readEach(list, at, (one, oneAt) => readRequirement(one, oneAt, claims))
}

function readRequirement(
  settings: RequirementSettings,
  at: Setting,
  claims: ShortNames,
): RequirementConfig | undefined {
  const settingAt = (setting: string) => at.below(setting)
  const { methods, all, any, not } = settings
  if (settings.claim !== undefined) return readClaimRequirement(settings, settings.claim, at, claims)
  if (settings.emailDomains !== undefined) return readEmailDomains(settings, settings.emailDomains, at)
  if (settings.networks !== undefined)
    return { kind: 'networks', ...readNetworks(settings.networks, settingAt('networks')) }
  if (settings.time !== undefined) return readTime(settings.time, settingAt('time'))
  if (methods !== undefined) return { kind: 'methods', methods: valuesOf(methods) }
  if (all !== undefined) return { kind: 'all', all: readList(all, settingAt('all'), claims) }
  if (any !== undefined) return { kind: 'any', any: readList(any, settingAt('any'), claims) }
  const negated = not && readRequirement(not, settingAt('not'), claims)
  return negated && { kind: 'not', not: negated }
}

function readClaimRequirement(
  settings: RequirementSettings,
  claim: string,
  at: Setting,
  claims: ShortNames,
): RequirementConfig | undefined {
  const texts = (list: List<string> | undefined) => list && valuesOf(list)
  warnOfValues(settings, claim, at)
  const pattern = at.below('matches').parse(settings.matches, (matches) => new LinearPattern(matches))
  const read = (): RequirementConfig => ({
    kind: 'claim',
    claim: withLongName(parseClaimPath(claim), claims),
    claimText: claim,
    equals: settings.equals,
    anyOf: texts(settings.anyOf),
    allOf: texts(settings.allOf),
    noneOf: texts(settings.noneOf),
    contains: settings.contains,
    beginsWith: settings.beginsWith,
    endsWith: settings.endsWith,
    matches: pattern,
  })
  return at.below('claim').parse(claim, read, /\s/.test(claim) ? undefined : hintForClaimPath(claim))
}

/** Warns about values that no claim has: lists in one text, and `*`, which is no wildcard. */
function warnOfValues(settings: RequirementSettings, claim: string, at: Setting): void {
  const lists = { any_of: settings.anyOf, all_of: settings.allOf, none_of: settings.noneOf }
  for (const [name, list] of Object.entries(lists)) {
    const values = list === undefined ? [] : valuesOf(list)
    if (isSplitName(values))
      at.below(name).warning(
        'looks like one distinguished name that is split at its commas',
        `write ${name}: ["${values.join(',')}"]`,
      )
    for (const [index, value] of values.entries()) warnOfValue(value, claim, at.below(name, index), name)
  }
  const { equals, contains, beginsWith, endsWith, matches } = settings
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

function readEmailDomains({ verified }: RequirementSettings, domains: List<string>, at: Setting): RequirementConfig {
  const emailDomains = parseEach(domains, at.below('email_domains'), parseDomain, hintForDomain)
  if (!verified)
    at.below('verified').warning(
      'is false: with many providers, people can set any e-mail address for themselves',
      'let the provider send email_verified, or require a claim that only administrators change',
    )
  return { kind: 'email_domains', emailDomains, verified }
}

function parseDomain(text: string): string {
  const domain = asciiDomain(text)
  if (domain === undefined) throw new SyntaxError('must be a domain such as example.com')
  return domain
}

function hintForDomain(text: string): string | undefined {
  if (text === '*') return 'without this requirement, people of every domain have access'
  const meant = text.replace(/^[^@]*@|^\*?\./, '')
  if (meant === text || meant === '') return undefined
  return /^\*?\./.test(text) ? `name each domain: a domain does not include those below it` : `did you mean ${meant}?`
}

/** Reads IP addresses and CIDR ranges. */
export function readNetworks(networks: List<string>, at: Setting): Networks {
  return { networks: new AddressSet(parseEach(networks, at, parseSubnet, hintForNetwork)), text: valuesOf(networks) }
}

/** A hint for what is neither an address nor a network. */
export function hintForNetwork(text: string): string | undefined {
  const address = /^(?:\w+:\/\/)?\[?([\d.]{7,}|[\da-f:]+:[\da-f:]*)\]?(?::\d+)?\/?$/i.exec(text)?.[1]
  if (address !== undefined && ipAddress(address) !== undefined) return `write ${address}, without scheme and port`
  return /^(?:[a-z][\w.-]*|\*)$/i.test(text)
    ? 'a host name is not possible here: write the addresses or networks that connections come from, such as 10.0.0.0/8'
    : undefined
}

function readTime(
  { days, from, to, zone }: NonNullable<RequirementSettings['time']>,
  at: Setting,
): RequirementConfig | undefined {
  if (zone !== undefined && from === to) at.below('to').error('is the same as from', 'for the whole day, remove both')
  return at.below('zone').parse(zone, (zone): RequirementConfig => {
    try {
      return { kind: 'time', time: new TimeWindow({ days: valuesOf(days), from, to, zone }) }
    } catch {
      throw new SyntaxError('must be the name of a time zone such as Europe/Berlin or UTC')
    }
  })
}
