import type { Setting } from '../document/report.ts'
import type { HeaderConfig } from '../model/header.ts'
import type { RuleConfig } from '../model/rule.ts'
import type { ServiceAccountsConfig } from '../model/upstream.ts'
import type { RuleSettings } from '../settings.ts'
import { readRuleAccounts } from './callers.ts'
import { type HeaderContext, readHeaders } from './headers.ts'
import { networksOf, readRequirements } from './requirements.ts'
import { readRespond } from './respond.ts'

/**
 * Reads a rule. Returns `undefined` when its path is missing or invalid.
 * @param inherited the headers of the upstream
 */
export function readRule(
  settings: RuleSettings,
  at: Setting,
  inherited: readonly HeaderConfig[],
  context: HeaderContext & { readonly serviceAccounts: ServiceAccountsConfig | undefined },
): RuleConfig | undefined {
  const require = readRequirements(settings.require, at.below('require'), context.claims)
  const own = readHeaders(settings.headers ?? {}, at.below('headers'), context)
  const { path } = settings
  const respond = path && settings.respond && readRespond(settings.respond, at, path, context.claims)
  return (
    path && {
      place: at.place,
      setting: at.path,
      name: settings.name,
      path,
      methods: settings.methods,
      clients: settings.networks && networksOf(settings.networks),
      ...(settings.mcp && { mcp: { call: settings.mcp.call ?? [], method: settings.mcp.method ?? [] } }),
      access: settings.access,
      unauthenticated: settings.unauthenticated === 401 ? '401' : settings.unauthenticated,
      require,
      mode: settings.mode,
      ...(!settings.authorizeWith && { authorizeWith: false as const }),
      ...readStepUp(settings),
      ...(settings.deviceBinding && { needsDeviceBinding: settings.deviceBinding === 'required' }),
      ...(settings.accessTokens && { accessTokens: settings.accessTokens }),
      ...(settings.clientCertificates && { clientCertificates: true as const }),
      ...(settings.keys && { keys: true as const }),
      ...readRuleAccounts(settings.serviceAccounts, at.below('service_accounts'), context.serviceAccounts),
      ...(own.length > 0 && { headers: withReplaced(inherited, own) }),
      // A header that the application needs must not keep a person from this response.
      ...(respond && { respond, headers: [] }),
    }
  )
}

function readStepUp({ stepUp }: Pick<RuleSettings, 'stepUp'>): Pick<RuleConfig, 'stepUp'> {
  if (stepUp === undefined) return {}
  const { acr_values, maxAgeMs } = stepUp
  return {
    stepUp: {
      ...(acr_values && { acr_values }),
      ...(maxAgeMs !== undefined && { max_age: Math.floor(maxAgeMs / 1000) }),
    },
  }
}

/** Letter case makes no difference in names of headers (RFC 9110 §5.1). */
function withReplaced(headers: readonly HeaderConfig[], by: readonly HeaderConfig[]): readonly HeaderConfig[] {
  const names = new Set(by.map(({ name }) => name.toLowerCase()))
  return [...headers.filter(({ name }) => !names.has(name.toLowerCase())), ...by]
}
