import type { Setting } from '../document/report.ts'
import type { ProviderConfig } from '../model/provider.ts'
import type { RuleConfig } from '../model/rule.ts'
import type { AccessTokensConfig } from '../model/upstream.ts'
import type { RuleSettings, UpstreamSettings } from '../settings.ts'
import { valuesOf } from './build-context.ts'

/** Which access tokens an upstream accepts; `undefined` when it accepts none. */
export function readAccessTokens(
  settings: UpstreamSettings['accessTokens'],
  at: Setting,
  providers: readonly Pick<ProviderConfig, 'client_id'>[],
): AccessTokensConfig | undefined {
  if (settings === undefined) return undefined
  const { check } = settings
  const audience = valuesOf(settings.audience ?? [])
  const types = valuesOf(settings.types).map((type) => type.toLowerCase())
  // A token that is no JWT does not name its provider, and must not be shown to another one.
  if (check === 'introspection' && providers.length > 1)
    at.below('check').error(
      'needs an upstream with one provider, because an opaque token does not name the provider that issued it',
      'name the provider of the upstream in its providers, or use check: jwt',
    )
  const ofClient = providers.find(({ client_id }) => audience.includes(client_id))
  if (ofClient !== undefined && types.some((type) => type !== 'at+jwt'))
    at.below('audience').error(
      `contains the client_id ${ofClient.client_id}, which is the audience of ID Tokens: they would be accepted as access tokens`,
      'register the API at the provider with an audience of its own, or accept types: [at+jwt] only',
    )
  return { ...settings, audience, types, scopes: valuesOf(settings.scopes) }
}

/** Whether a rule accepts access tokens. `hasUpstream`: its upstream has `access_tokens`. */
export function readRuleTokens(
  { accessTokens: settings, access }: Pick<RuleSettings, 'accessTokens' | 'access'>,
  at: Setting,
  hasUpstream: boolean,
): Pick<RuleConfig, 'accessTokens'> {
  if (settings === false) return {}
  if (access === 'public')
    at.error('has no effect with access: public, which lets everybody in', 'remove access_tokens or access')
  else if (!hasUpstream)
    at.error(
      'needs access_tokens of the upstream, with the audience of its tokens',
      'add access_tokens: { audience: [https://api.example.com] } to the upstream',
    )
  return { accessTokens: { scopes: valuesOf(settings.scopes) } }
}
