import type { Setting } from '../document/report.ts'
import type { ProviderConfig } from '../model/provider.ts'
import type { ProviderSettings } from '../settings.ts'

/** Parameters whose effect only an ID Token shows. */
const paramsOfOpenid = ['max_age', 'acr_values', 'claims', 'nonce'] as const

/** The settings of a provider without ID Tokens, and what an OpenID Provider needs instead. */
export function readOauth2(settings: ProviderSettings, at: Setting): ProviderConfig['oauth2'] {
  const { kind, scopes, subject } = settings
  if (at.below('kind').isReported) return undefined
  if (kind === 'openid') {
    if (scopes !== undefined && at.below('scopes').isValid && !scopes.includes('openid'))
      at.below('scopes').error('must contain "openid"', `write scopes: [${['openid', ...scopes].join(', ')}]`)
    return undefined
  }
  for (const place of paramsOfOpenid.map((name) => at.below('authorization_params', name)))
    if (place.isSet)
      place.errorAtKey('is not possible with kind: oauth2, because the provider issues no ID Tokens', 'remove it')
  if (scopes?.includes('openid') === true) at.below('scopes').error('must not contain openid with kind: oauth2')
  return { subject: subject ?? ['sub'] }
}
