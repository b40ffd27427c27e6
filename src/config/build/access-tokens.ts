import { below, type Report } from '../document/report.ts'
import type { AccessTokensConfig, ProviderConfig, RuleConfig } from '../model.ts'
import type { List, RuleSettings, UpstreamSettings } from '../settings.ts'
import { present, readDuration } from './build-context.ts'

const texts = (list: List<string>) => present(list).map(([, text]) => text)

/** Which access tokens an upstream accepts; `undefined` when it accepts none. */
export function readAccessTokens(
  settings: UpstreamSettings['access_tokens'],
  at: string,
  {
    report,
    providers,
  }: { readonly report: Report; readonly providers: readonly Pick<ProviderConfig, 'name' | 'client_id'>[] },
): AccessTokensConfig | undefined {
  if (settings === undefined) return undefined
  const { check, metadata } = settings
  const audience = texts(settings.audience ?? [])
  const types = texts(settings.types).map((type) => type.toLowerCase())
  // A token that is no JWT does not name its provider, and must not be shown to another one.
  if (check === 'introspection' && providers.length > 1)
    report.error(
      below(at, 'check'),
      'needs an upstream with one provider, because an opaque token does not name the provider that issued it',
      'name the provider of the upstream in its providers, or use check: jwt',
    )
  const ofClient = providers.find(({ client_id }) => audience.includes(client_id))
  if (ofClient !== undefined && types.some((type) => type !== 'at+jwt'))
    report.error(
      below(at, 'audience'),
      `contains the client_id ${ofClient.client_id}, which is the audience of ID Tokens: they would be accepted as access tokens`,
      'register the API at the provider with an audience of its own, or accept types: [at+jwt] only',
    )
  return {
    ...{ audience, check, types, metadata },
    scopes: texts(settings.scopes),
    introspectionCacheMs: readDuration(
      settings.introspection_cache,
      below(at, 'introspection_cache'),
      '0s',
      '10m',
      report,
    ),
  }
}

/** Whether a rule accepts access tokens. `hasUpstream`: its upstream has `access_tokens`. */
export function readRuleTokens(
  { access_tokens: settings, access }: Pick<RuleSettings, 'access_tokens' | 'access'>,
  at: string,
  hasUpstream: boolean,
  report: Report,
): Pick<RuleConfig, 'accessTokens'> {
  if (settings === false) return {}
  if (access === 'public')
    report.error(at, 'has no effect with access: public, which lets everybody in', 'remove access_tokens or access')
  else if (!hasUpstream)
    report.error(
      at,
      'needs access_tokens of the upstream, with the audience of its tokens',
      'add access_tokens: { audience: [https://api.example.com] } to the upstream',
    )
  return { accessTokens: { scopes: settings === true ? [] : texts(settings.scopes) } }
}
