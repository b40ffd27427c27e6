import type { GatewayConfig } from '../model/gateway.ts'
import type { ProviderConfig } from '../model/provider.ts'
import type { At, Check } from './check.ts'

/** What a provider without ID Tokens (`kind: oauth2`) makes impossible or weaker. */
export const oauth2Checks: readonly Check[] = [lostLogout, withoutIdTokens]

function lostLogout({ providers, session }: GatewayConfig, at: At): void {
  for (const { setting, oauth2 } of providers) {
    const kindAt = at(...setting.split('.'), 'kind')
    if (oauth2 !== undefined && kindAt.isValid && session.pollUserinfoMs === undefined)
      kindAt.warning(
        'is oauth2: the provider tells nobody that a session has ended, so it continues here until idle_timeout',
        'set session.poll_userinfo, for example to 60s: a revoked access token then ends the session',
      )
  }
}

/** Settings of upstreams that need an ID Token, or keys of the provider. */
function withoutIdTokens({ providers, upstreams }: GatewayConfig, at: At): void {
  for (const { name, rules, headers, accessTokens, providers: own } of upstreams) {
    const provider = providers.find((one) => one.oauth2 !== undefined && own.includes(one.name))
    if (provider === undefined) continue
    const refuse = (place: ReturnType<At>) => place.isValid && place.error(reasonFor(provider), 'use another provider')
    if (accessTokens !== undefined) refuse(at('upstreams', name, 'access_tokens'))
    for (const header of headers)
      if (header.source.kind === 'bearer' && header.source.bearer === 'id_token')
        refuse(at('upstreams', name, 'headers', header.name))
    for (const [index, rule] of rules.entries()) {
      if (rule.stepUp !== undefined) refuse(at('upstreams', name, 'rules', index, 'step_up'))
      for (const header of rule.headers ?? [])
        if (header.source.kind === 'bearer' && header.source.bearer === 'id_token')
          refuse(at('upstreams', name, 'rules', index, 'headers', header.name))
    }
  }
}

function reasonFor({ setting }: ProviderConfig): string {
  return `is not possible with ${setting}.kind: oauth2, because the provider issues no ID Tokens and signs nothing`
}
