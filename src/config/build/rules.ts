import { AddressSet, asciiDomain } from '../../core/addresses.ts'
import { parseClaimPath } from '../../core/claims.ts'
import { LinearPattern } from '../../core/linear-pattern.ts'
import { parsePathPattern } from '../../core/path-pattern.ts'
import { TimeWindow } from '../../core/time-window.ts'
import { parseSubnet } from '../addresses.ts'
import { below, type Report } from '../document/report.ts'
import type { HeaderConfig } from '../model/header.ts'
import type { Networks, RequirementConfig, RuleConfig } from '../model/rule.ts'
import type { ServiceAccountsConfig } from '../model/upstream.ts'
import type { List, RequirementSettings, RuleSettings, SessionDeviceBindingSettings } from '../settings.ts'
import { readRuleTokens } from './access-tokens.ts'
import { parseEach, present, valuesOf } from './build-context.ts'
import { hintForClaims, type ShortNames, withLongName } from './claim-names.ts'
import { type HeaderContext, readHeaders } from './headers.ts'
import { hintForPath } from './path-hints.ts'
import { readRuleAccounts } from './service-accounts.ts'

/**
 * Reads a rule. Returns an empty list when its path is missing or invalid.
 * @param inherited the headers of the upstream
 */
export function readRule(
  settings: RuleSettings,
  at: string,
  inherited: readonly HeaderConfig[],
  context: HeaderContext &
    BindingContext & {
      readonly takesTokens: boolean
      readonly serviceAccounts: ServiceAccountsConfig | undefined
    },
): RuleConfig[] {
  const { report } = context
  const require = readRequirements(settings.require, below(at, 'require'), context)
  if (require.length > 0 && settings.access !== 'signed_in')
    report.error(
      below(at, 'require'),
      `has no effect with access: ${settings.access}, which lets everybody in`,
      'remove require or access',
    )
  if (settings.stepUp !== undefined && settings.access !== 'signed_in')
    report.error(
      below(at, 'step_up'),
      `has no effect with access: ${settings.access}, which lets everybody in`,
      'remove step_up or access',
    )
  if (settings.deviceBinding !== undefined) {
    if (settings.access === 'public')
      report.error(below(at, 'device_binding'), 'has no effect with access: public', 'remove it')
    reportUselessBinding(settings, at, context)
  }
  const asksNothing = require.length === 0 && settings.stepUp === undefined
  if (asksNothing && settings.mode === 'observe' && report.isValid(below(at, 'require')))
    report.error(
      below(at, 'mode'),
      'has no effect without require or step_up: people must sign in all the same',
      'remove mode',
    )
  const own = readHeaders(settings.headers ?? {}, below(at, 'headers'), context)
  const { path } = settings
  if (path === undefined) return []
  const read = (): RuleConfig[] => [
    {
      place: report.keyPlace(at),
      setting: report.pathText(at),
      name: settings.name,
      path: parsePathPattern(path),
      methods: readMethods(settings.methods),
      clients: settings.networks && readNetworks(settings.networks, below(at, 'networks'), report),
      access: settings.access,
      unauthenticated: settings.unauthenticated === 401 ? '401' : settings.unauthenticated,
      require,
      mode: settings.mode,
      ...readStepUp(settings),
      ...(settings.deviceBinding && { needsDeviceBinding: settings.deviceBinding === 'required' }),
      ...readRuleTokens(settings, below(at, 'access_tokens'), context.takesTokens, report),
      ...readRuleAccounts(settings, below(at, 'service_accounts'), context.serviceAccounts, report),
      ...(own.length > 0 && { headers: withReplaced(inherited, own) }),
    },
  ]
  return report.parse(below(at, 'path'), [], read, hintForPath(path))
}

/** Reports a setting that needs keys of devices, which browsers do not register. */
export function reportUselessBinding(
  settings: Pick<RuleSettings, 'deviceBinding'>,
  at: string,
  { report, deviceBinding, externalUrl, cookieDomain }: BindingContext & { readonly report: Report },
): void {
  if (settings.deviceBinding !== 'required') return
  if (deviceBinding === 'off')
    report.error(
      below(at, 'device_binding'),
      'cannot be met with session.device_binding: off',
      'set session.device_binding to when_supported',
    )
  else if (cookieDomain !== undefined)
    report.error(
      below(at, 'device_binding'),
      'cannot be met with session.cookie.domain: a browser binds a session to one host',
      'remove one of them',
    )
  else if (externalUrl.protocol !== 'https:')
    report.error(below(at, 'device_binding'), 'needs an https external_url: browsers bind sessions over https only')
}

export interface BindingContext {
  /** `session.device_binding`. */
  readonly deviceBinding: SessionDeviceBindingSettings['mode']
  /** `session.cookie.domain`. */
  readonly cookieDomain: string | undefined
  readonly externalUrl: URL
}

function readStepUp({ stepUp }: Pick<RuleSettings, 'stepUp'>): Pick<RuleConfig, 'stepUp'> {
  if (stepUp === undefined) return {}
  const { acr_values, maxAgeMs } = stepUp
  return {
    stepUp: {
      ...(acr_values && { acr_values: valuesOf(acr_values) }),
      ...(maxAgeMs !== undefined && { max_age: Math.floor(maxAgeMs / 1000) }),
    },
  }
}

export function readMethods(methods: List<string> | undefined): readonly string[] | undefined {
  return methods && valuesOf(methods)
}

/** Letter case makes no difference in names of headers (RFC 9110 §5.1). */
function withReplaced(headers: readonly HeaderConfig[], by: readonly HeaderConfig[]): readonly HeaderConfig[] {
  const names = new Set(by.map(({ name }) => name.toLowerCase()))
  return [...headers.filter(({ name }) => !names.has(name.toLowerCase())), ...by]
}

interface RequirementContext {
  readonly report: Report
  /** Short name → name of the claim. */
  readonly claims: ShortNames
}

function readRequirements(
  settings: RuleSettings['require'],
  at: string,
  context: RequirementContext,
): readonly RequirementConfig[] {
  if (settings === undefined) return []
  return isList(settings) ? readList(settings, at, context) : readRequirement(settings, at, context)
}

function isList(settings: NonNullable<RuleSettings['require']>): settings is List<RequirementSettings> {
  return Array.isArray(settings)
}

function readList(
  list: List<RequirementSettings>,
  at: string,
  context: RequirementContext,
): readonly RequirementConfig[] {
  return present(list).flatMap(([index, one]) => readRequirement(one, below(at, index), context))
}

/** The settings that test a claim. */
const claimTests = [
  ...['equals', 'any_of', 'all_of', 'none_of'],
  ...['contains', 'begins_with', 'ends_with', 'matches'],
]

function readRequirement(
  settings: RequirementSettings,
  at: string,
  context: RequirementContext,
): readonly RequirementConfig[] {
  const { report } = context
  const settingAt = (setting: string) => below(at, setting)
  if (settings.claim === undefined)
    for (const test of claimTests)
      if (report.isSet(settingAt(test)))
        report.errorAtKey(settingAt(test), 'needs claim beside it: the path of a claim')
  if (settings.emailDomains === undefined && report.isSet(settingAt('verified')))
    report.errorAtKey(settingAt('verified'), 'has no effect without email_domains', 'remove it')

  const { methods, all, any, not } = settings
  if (settings.claim !== undefined) return readClaimRequirement(settings, settings.claim, at, context)
  if (settings.emailDomains !== undefined) return readEmailDomains(settings, settings.emailDomains, at, report)
  if (settings.networks !== undefined)
    return [{ kind: 'networks', ...readNetworks(settings.networks, settingAt('networks'), report) }]
  if (settings.time !== undefined) return readTime(settings.time, settingAt('time'), report)
  if (methods !== undefined) return [{ kind: 'methods', methods: readMethods(methods) ?? [] }]
  if (all !== undefined) return [{ kind: 'all', all: readList(all, settingAt('all'), context) }]
  if (any !== undefined) return [{ kind: 'any', any: readList(any, settingAt('any'), context) }]
  if (not !== undefined)
    return readRequirement(not, settingAt('not'), context).map((requirement) => ({ kind: 'not', not: requirement }))
  return []
}

function readClaimRequirement(
  settings: RequirementSettings,
  claim: string,
  at: string,
  { report, claims }: RequirementContext,
): readonly RequirementConfig[] {
  const texts = (list: List<string> | undefined) => list && valuesOf(list)
  const { matches } = settings
  const pattern =
    matches === undefined ? undefined : report.parse(below(at, 'matches'), undefined, () => new LinearPattern(matches))
  const read = (): RequirementConfig[] => [
    {
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
    },
  ]
  return report.parse(below(at, 'claim'), [], read, hintForClaims(claim))
}

function readEmailDomains(
  { verified }: RequirementSettings,
  domains: List<string>,
  at: string,
  report: Report,
): readonly RequirementConfig[] {
  const emailDomains = parseEach(domains, below(at, 'email_domains'), report, parseDomain, hintForDomain)
  if (!verified)
    report.warning(
      below(at, 'verified'),
      'is false: with many providers, people can set any e-mail address for themselves',
      'let the provider send email_verified, or require a claim that only administrators change',
    )
  return [{ kind: 'email_domains', emailDomains, verified }]
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

function readNetworks(networks: List<string>, at: string, report: Report): Networks {
  return { networks: new AddressSet(parseEach(networks, at, report, parseSubnet)), text: valuesOf(networks) }
}

function readTime(
  { days, from, to, zone }: NonNullable<RequirementSettings['time']>,
  at: string,
  report: Report,
): readonly RequirementConfig[] {
  if (zone === undefined) return []
  const names = valuesOf(days)
  if (from === to) report.error(below(at, 'to'), 'is the same as from', 'for the whole day, remove both')
  return report.parse(below(at, 'zone'), [], () => {
    try {
      return [{ kind: 'time', time: new TimeWindow({ days: names, from, to, zone }) }]
    } catch {
      throw new SyntaxError('must be the name of a time zone such as Europe/Berlin or UTC')
    }
  })
}
