import type { GatewayConfig } from '../model/gateway.ts'
import type { HeaderConfig } from '../model/header.ts'
import type { At, Check } from './check.ts'

/** What a provider without ID Tokens (`kind: oauth2`) makes impossible or weaker. */
export const oauth2Checks: readonly Check[] = [lostLogout, withoutIdTokens]

function lostLogout({ providers, session }: GatewayConfig, at: At): void {
  for (const { setting, oauth2 } of providers) {
    const kindAt = at(...setting.split('.'), 'kind')
    if (oauth2 !== undefined && kindAt.isValid && session.pollUserinfoMs === undefined)
      kindAt.warning(
        'is oauth2: the provider sends no Logout Tokens, so a session that ends there continues here until idle_timeout',
        'set session.poll_userinfo, for example to 60s: a revoked access token then ends the session',
      )
  }
}

/**
 * Settings of upstreams that need an ID Token, or keys of the provider. They are possible if people
 * of another provider, which has them, use the upstream too.
 */
function withoutIdTokens({ providers, upstreams }: GatewayConfig, at: At): void {
  for (const { name, rules, headers, accessTokens, keys, providers: own } of upstreams) {
    const [first, ...others] = providers.filter((provider) => own.includes(provider.name))
    if (first?.oauth2 === undefined || others.some(({ oauth2 }) => oauth2 === undefined)) continue
    const why = `is not possible with ${first.setting}.kind: oauth2, because the provider issues no ID Tokens and signs nothing`
    const refuse = (place: ReturnType<At>) => place.isValid && place.error(why, 'use another provider')
    const refuseIdTokens = (sent: readonly HeaderConfig[], ...place: readonly (string | number)[]) => {
      for (const { name: field, source } of sent)
        if (source.kind === 'bearer' && source.bearer === 'id_token') refuse(at(...place, 'headers', field))
    }
    if (accessTokens !== undefined) refuse(at('upstreams', name, 'access_tokens'))
    if (keys !== undefined) refuse(at('upstreams', name, 'keys'))
    refuseIdTokens(headers, 'upstreams', name)
    for (const [index, rule] of rules.entries()) {
      if (rule.stepUp !== undefined) refuse(at('upstreams', name, 'rules', index, 'step_up'))
      refuseIdTokens(rule.headers ?? [], 'upstreams', name, 'rules', index)
    }
  }
}
