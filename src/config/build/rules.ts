import { AddressSet, asciiDomain } from '../../core/addresses.ts'
import { parseClaimPath } from '../../core/claims.ts'
import { LinearPattern } from '../../core/linear-pattern.ts'
import { parsePathPattern } from '../../core/patterns.ts'
import { TimeWindow } from '../../core/time-window.ts'
import { parseSubnet } from '../addresses.ts'
import type { Setting } from '../document/report.ts'
import type { HeaderConfig } from '../model/header.ts'
import type { Networks, RequirementConfig, RuleConfig } from '../model/rule.ts'
import type { ServiceAccountsConfig } from '../model/upstream.ts'
import type { List, RequirementSettings, RuleSettings, SessionDeviceBindingSettings } from '../settings.ts'
import { parseEach, readEach, valuesOf } from './build-context.ts'
import { readRuleAccounts, readRuleTokens } from './callers.ts'
import { hintForClaims, type ShortNames, withLongName } from './claim-names.ts'
import { type HeaderContext, readHeaders } from './headers.ts'
import { hintForPath } from './path-hints.ts'
import { readRespond } from './respond.ts'

/**
 * Reads a rule. Returns `undefined` when its path is missing or invalid.
 * @param inherited the headers of the upstream
 */
export function readRule(
  settings: RuleSettings,
  at: Setting,
  inherited: readonly HeaderConfig[],
  context: HeaderContext &
    BindingContext & {
      readonly takesTokens: boolean
      readonly serviceAccounts: ServiceAccountsConfig | undefined
    },
): RuleConfig | undefined {
  const require = readRequirements(settings.require, at.below('require'), context.claims)
  if (settings.access !== 'signed_in') {
    const noEffect = `has no effect with access: ${settings.access}, which lets everybody in`
    if (require.length > 0) at.below('require').error(noEffect, 'remove require or access')
    if (settings.stepUp !== undefined) at.below('step_up').error(noEffect, 'remove step_up or access')
  }
  if (settings.deviceBinding !== undefined) {
    if (settings.access === 'public') at.below('device_binding').error('has no effect with access: public', 'remove it')
    reportUselessBinding(settings, at, context)
  }
  const asksNothing = require.length === 0 && settings.stepUp === undefined
  if (asksNothing && settings.mode === 'observe' && at.below('require').isValid)
    at.below('mode').error('has no effect without require or step_up: people must sign in all the same', 'remove mode')
  const own = readHeaders(settings.headers ?? {}, at.below('headers'), context)
  if (settings.respond !== undefined && settings.headers !== undefined)
    at.below('headers').errorAtKey('has no effect with respond: the application gets no request', 'remove it')
  const path = at.below('path').parse(settings.path, parsePathPattern, hintForPath(settings.path ?? ''))
  const respond = path && settings.respond && readRespond(settings.respond, at.below('respond'), path)
  return (
    path && {
      place: at.place,
      setting: at.path,
      name: settings.name,
      path,
      methods: readMethods(settings.methods),
      clients: settings.networks && readNetworks(settings.networks, at.below('networks')),
      access: settings.access,
      unauthenticated: settings.unauthenticated === 401 ? '401' : settings.unauthenticated,
      require,
      mode: settings.mode,
      ...readStepUp(settings),
      ...(settings.deviceBinding && { needsDeviceBinding: settings.deviceBinding === 'required' }),
      ...readRuleTokens(settings, at.below('access_tokens'), context.takesTokens),
      ...readRuleAccounts(settings, at.below('service_accounts'), context.serviceAccounts),
      ...(own.length > 0 && { headers: withReplaced(inherited, own) }),
      // A header that the application needs must not keep a person from this response.
      ...(respond && { respond, headers: [] }),
    }
  )
}

/** Reports a setting that needs keys of devices, which browsers do not register. */
export function reportUselessBinding(
  settings: Pick<RuleSettings, 'deviceBinding'>,
  at: Setting,
  { deviceBinding, externalUrl, cookieDomain }: BindingContext,
): void {
  if (settings.deviceBinding !== 'required') return
  if (deviceBinding === 'off')
    at.below('device_binding').error(
      'cannot be met with session.device_binding: off',
      'set session.device_binding to when_supported',
    )
  else if (cookieDomain !== undefined)
    at.below('device_binding').error(
      'cannot be met with session.cookie.domain: a browser binds a session to one host',
      'remove one of them',
    )
  else if (externalUrl.protocol !== 'https:')
    at.below('device_binding').error('needs an https external_url: browsers bind sessions over https only')
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

function readRequirements(
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

/** The settings that test a claim. */
const claimTests = [
  ...['equals', 'any_of', 'all_of', 'none_of'],
  ...['contains', 'begins_with', 'ends_with', 'matches'],
]

function readRequirement(
  settings: RequirementSettings,
  at: Setting,
  claims: ShortNames,
): RequirementConfig | undefined {
  const settingAt = (setting: string) => at.below(setting)
  if (settings.claim === undefined)
    for (const test of claimTests)
      if (settingAt(test).isSet) settingAt(test).errorAtKey('needs claim beside it: the path of a claim')
  if (settings.emailDomains === undefined && settingAt('verified').isSet)
    settingAt('verified').errorAtKey('has no effect without email_domains', 'remove it')

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
  return at.below('claim').parse(claim, read, hintForClaims(claim))
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

function readNetworks(networks: List<string>, at: Setting): Networks {
  return { networks: new AddressSet(parseEach(networks, at, parseSubnet)), text: valuesOf(networks) }
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
