import type { ProviderConfig } from '../config/model.ts'
import { harmOfOfflineAccess, offlineAccess } from '../config/provider-kind.ts'
import { issuerHint } from '../provider/discovery.ts'
import type { ProviderFacts, RedirectUriFact } from '../provider/examine.ts'
import { kindOf, type RequestedAccess } from '../provider/requested-access.ts'
import { connectionAdvice } from './connection-advice.ts'
import { fault, type Finding, ok, warning } from './finding.ts'

type Metadata = Readonly<Record<string, unknown>>

/** What there is to say of a provider and of its client. */
export function providerFindings(facts: ProviderFacts, config: ProviderConfig, env: Environment): Finding[] {
  const clock = clockFindings(facts, config)
  if ('why' in facts.metadata) return [noAnswer(facts.metadata.why, facts.wrongScheme, env), ...clock]
  const { value: metadata, ms } = facts.metadata
  if ('why' in facts.taken) return [notTaken(facts.taken.why), ...clock]
  return [
    ok('provider.discovery', `answers in ${Math.ceil(ms)} ms, and calls itself ${config.issuer}`),
    ...clock,
    keysFinding(facts.keys, facts.taken.algorithm),
    pkceFinding(metadata),
    ...capabilityFindings(metadata, config),
    ...scopeFindings(metadata, config, facts.taken.access),
    ...userinfoFindings(metadata),
    ...logoutFindings(metadata, config),
    ...facts.redirectUris.map(redirectUriFinding),
    clientFinding(facts, config),
  ]
}

/** The environment variables that matter here. */
export type Environment = Readonly<Record<string, string | undefined>>

function noAnswer(why: string, wrongScheme: string | undefined, env: Environment): Finding {
  const proxy = env['HTTPS_PROXY'] ?? env['https_proxy'] ?? env['HTTP_PROXY'] ?? env['http_proxy']
  const isElsewhere = wrongScheme === undefined && /status 404|did not answer with a JSON object/.test(why)
  const todo = wrongScheme ?? (isElsewhere ? issuerHint : connectionAdvice(why, 'provider.issuer', 'provider.ca_file'))
  return fault('provider.discovery', `has no discovery document that can be read: ${why}`, {
    why: 'nobody can sign in; who is signed in is served until tokens have to be refreshed',
    todo:
      proxy === undefined || isElsewhere || wrongScheme !== undefined
        ? todo
        : `${todo}; the gateway does not use the HTTP proxy that the environment names`,
  })
}

function notTaken(why: string): Finding {
  return fault('provider.discovery', `answers, and cannot be used: ${why}`, {
    why: 'nobody can sign in: tokens of another issuer, or without a key to verify them with, must not be believed',
    todo: /calls itself|issuer/.test(why)
      ? 'write the issuer exactly as the provider spells it, a slash at its end included'
      : 'change what is named, at the provider or in provider.*',
  })
}

function clockFindings({ clockAheadMs, metadata }: ProviderFacts, { clockToleranceMs }: ProviderConfig): Finding[] {
  if (clockAheadMs !== undefined) return [clockFinding(clockAheadMs, clockToleranceMs)]
  if ('why' in metadata) return []
  return [ok('provider.clock', 'sends no Date, so that its clock cannot be compared with this one')]
}

function clockFinding(aheadMs: number, toleranceMs: number): Finding {
  const seconds = (Math.abs(aheadMs) / 1000).toFixed(1)
  const what = `its clock is ${seconds} s ${aheadMs < 0 ? 'behind' : 'ahead of'} this one (to about half a second)`
  const remedy = {
    why: `tokens are refused when they are not valid yet or any more by more than provider.clock_tolerance (${toleranceMs / 1000} s)`,
    todo: 'keep both clocks by NTP; a container has the clock of its host',
  }
  if (Math.abs(aheadMs) > toleranceMs + 1000) return fault('provider.clock', what, remedy)
  if (Math.abs(aheadMs) > Math.max(2000, toleranceMs / 2)) return warning('provider.clock', what, remedy)
  return ok('provider.clock', what)
}

const keyTypes: Readonly<Record<string, string>> = { RS: 'RSA', PS: 'RSA', ES: 'EC', Ed: 'OKP' }

function keysFinding(keys: ProviderFacts['keys'], algorithm: string): Finding {
  const remedy = {
    why: 'without a key that fits, no ID Token and no Logout Token can be verified: nobody can sign in, and no logout arrives',
    todo: 'set provider.id_token_signed_response_alg to the algorithm that this client is registered with at the provider',
  }
  if (keys === undefined || 'why' in keys)
    return fault('provider.keys', `has no key set: ${keys?.why ?? 'it was not asked'}`, remedy)
  const fitting = keys.value.filter(
    (key) =>
      key['kty'] === keyTypes[algorithm.slice(0, 2)] &&
      key['use'] !== 'enc' &&
      (key['alg'] === undefined || key['alg'] === algorithm),
  )
  const what = `${fitting.length} of ${keys.value.length} keys ${fitting.length === 1 ? 'is' : 'are'} for ${algorithm}`
  if (fitting.length === 0) return fault('provider.keys', what, remedy)
  const short = fitting.filter((key) => key['kty'] === 'RSA' && modulusBits(key['n']) < 2048)
  if (short.length > 0)
    return warning('provider.keys', `${what}; ${short.length} shorter than 2048 bits`, {
      why: 'such a key can be broken, and whoever does can sign in as anybody (RFC 7518 §3.3)',
      todo: 'have the provider make longer keys',
    })
  return ok('provider.keys', what)
}

function modulusBits(n: unknown): number {
  return typeof n === 'string' ? Buffer.from(n, 'base64url').length * 8 : Infinity
}

function pkceFinding(metadata: Metadata): Finding {
  if (includes(metadata, 'code_challenge_methods_supported', 'S256'))
    return ok('provider.pkce', 'supports PKCE with S256')
  return warning('provider.pkce', 'does not say that it supports PKCE with S256 (code_challenge_methods_supported)', {
    why: 'the gateway sends a code challenge all the same; a provider that ignores it does not bind the code to the browser that asked',
    todo: 'switch PKCE on for this client, if the provider has it; nonce and state protect the sign-in meanwhile',
  })
}

/**
 * Whether a list in the metadata has a member; what is not said has the default of OpenID Connect
 * Discovery 1.0 §3.
 */
function includes(metadata: Metadata, name: string, member: string, otherwise: readonly string[] = []): boolean {
  const list = metadata[name]
  return (Array.isArray(list) ? list : otherwise).includes(member)
}

function capabilityFindings(metadata: Metadata, config: ProviderConfig): Finding[] {
  const { token_endpoint_auth_method: method, response_mode } = config
  const findings: Finding[] = []
  if (!includes(metadata, 'token_endpoint_auth_methods_supported', method, ['client_secret_basic']))
    findings.push(
      warning(
        'provider.token_endpoint_auth_method',
        `does not list ${method} among its token_endpoint_auth_methods_supported`,
        {
          why: 'the code cannot be redeemed if the provider takes the client’s secret in another way only',
          todo: `set provider.token_endpoint_auth_method to one that it lists: ${listed(metadata['token_endpoint_auth_methods_supported'])}`,
        },
      ),
    )
  if (!includes(metadata, 'response_modes_supported', response_mode, ['query', 'fragment']))
    findings.push(
      fault('provider.response_mode', `does not support response_mode ${response_mode}`, {
        why: 'the browser does not come back in the form that the gateway takes',
        todo: 'set provider.response_mode to query',
      }),
    )
  for (const [name, what] of demands)
    if (metadata[name] === true)
      findings.push(
        fault(`provider.${name}`, `demands ${what} (${name})`, {
          why: 'the gateway does not do that, so the provider will refuse its authorization requests',
          todo: 'switch it off for this client',
        }),
      )
  return findings
}

function scopeFindings(metadata: Metadata, { issuer }: ProviderConfig, access: RequestedAccess): Finding[] {
  const { scopes } = access
  const harm = scopes.includes(offlineAccess) ? harmOfOfflineAccess(kindOf(issuer, metadata)) : undefined
  if (harm !== undefined)
    return [
      warning('provider.scopes', 'is asked for offline_access, which does harm here', {
        why: harm.what,
        todo: 'remove offline_access from provider.scopes: this provider gives a refresh token without it',
      }),
    ]
  const unknown = scopes.filter(
    (scope) => Array.isArray(metadata['scopes_supported']) && !includes(metadata, 'scopes_supported', scope),
  )
  if (unknown.length === 0) {
    const mayNeedConsent = scopes.includes(offlineAccess) && !access.params['prompt']?.split(' ').includes('consent')
    const ifNone = '; if the log says provider.no_refresh_token, set provider.authorization_params: { prompt: consent }'
    return [ok('provider.scopes', `is asked for ${scopes.join(' ')}${mayNeedConsent ? ifNone : ''}`)]
  }
  return [
    warning('provider.scopes', `does not list ${unknown.join(', ')} among its scopes_supported`, {
      why: unknown.includes(offlineAccess)
        ? 'without a refresh token, a session that has expired at the provider goes on here until session.absolute_timeout'
        : 'claims that belong to these scopes may be missing; some providers do not list all they have',
      todo: 'see what the provider calls them, and whether this client may ask for them',
    }),
  ]
}

const demands = [
  ['require_pushed_authorization_requests', 'pushed authorization requests'],
  ['require_signed_request_object', 'signed request objects'],
] as const

function listed(value: unknown): string {
  return Array.isArray(value) ? value.join(', ') : 'it lists none'
}

function userinfoFindings(metadata: Metadata): Finding[] {
  if (metadata['userinfo_endpoint'] !== undefined) return []
  return [
    warning('provider.userinfo', 'has no userinfo_endpoint: all claims come from the ID Token', {
      why: 'claims are as they were at the sign-in or at the last refresh, and session.poll_userinfo finds out nothing',
      todo: 'nothing, if provider.id_token_claims names all claims that the application needs; a short session.absolute_timeout bounds the rest',
    }),
  ]
}

function logoutFindings(metadata: Metadata, config: ProviderConfig): Finding[] {
  return [backchannelFinding(metadata), endSessionFinding(metadata), ...frontchannelFindings(metadata, config)]
}

function backchannelFinding(metadata: Metadata): Finding {
  const id = 'provider.backchannel_logout'
  if (metadata['backchannel_logout_supported'] !== true)
    return warning(id, 'does not say that it supports back-channel logout (backchannel_logout_supported)', {
      why: 'a session that is ended at the provider would go on here until its tokens have to be refreshed, or idle_timeout',
      todo: 'if the provider has it, register the back-channel logout URI all the same; else set session.poll_userinfo, such as 60s',
    })
  if (metadata['backchannel_logout_session_supported'] !== true)
    return warning(id, 'supports back-channel logout, and does not say that its logout tokens name the session (sid)', {
      why: 'without a sid, a logout token ends all sessions of the person, on every device',
      todo: 'see whether backchannel_logout_session_required can be set for this client',
    })
  return ok(id, 'supports back-channel logout, with the session named (sid)')
}

function endSessionFinding(metadata: Metadata): Finding {
  if (typeof metadata['end_session_endpoint'] === 'string')
    return ok('provider.end_session', 'has an end_session_endpoint: signing out here signs out there')
  return warning('provider.end_session', 'has no end_session_endpoint', {
    why: 'who signs out here is still signed in there, and comes back without being asked for a password',
    todo: 'nothing can be done here; some providers have one that has to be switched on',
  })
}

function frontchannelFindings(metadata: Metadata, { frontchannelLogout }: ProviderConfig): Finding[] {
  if (!frontchannelLogout || metadata['frontchannel_logout_supported'] === true) return []
  return [
    warning('provider.frontchannel_logout', 'does not say that it supports front-channel logout', {
      why: 'provider.frontchannel_logout is on, and will not be used',
      todo: 'remove the setting, or switch front-channel logout on at the provider',
    }),
  ]
}

/**
 * What a provider tells a client whose person is not signed in there: OpenID Connect Core §3.1.2.6.
 */
const expectedErrors = ['login_required', 'interaction_required', 'consent_required', 'account_selection_required']

function redirectUriFinding({ redirect_uri, outcome, detail }: RedirectUriFact): Finding {
  const id = 'provider.redirect_uri'
  const remedy = {
    why: 'who signs in sees an error page of the provider, and never comes back',
    todo: `register ${redirect_uri} as a redirect URI of this client, letter by letter, and compare client_id`,
  }
  if (outcome === 'refused')
    return fault(id, `refuses an authorization request with ${redirect_uri} (${detail})`, remedy)
  if (outcome === 'unknown')
    return warning(id, `does not say whether ${redirect_uri} is registered (${detail})`, {
      why: remedy.why,
      todo: 'sign in once; if the provider shows an error, register the address',
    })
  if (expectedErrors.includes(detail) || detail === 'no error') return ok(id, `sends browsers back to ${redirect_uri}`)
  return fault(id, `sends browsers back to ${redirect_uri} with the error ${detail}`, {
    why: 'nobody can sign in',
    todo:
      detail === 'invalid_scope'
        ? 'see which of provider.scopes this client may ask for'
        : 'look at the provider’s log, and at the settings of this client there',
  })
}

function clientFinding(
  { client }: ProviderFacts,
  { client_id, token_endpoint_auth_method: method }: ProviderConfig,
): Finding {
  const id = 'provider.client'
  if (client?.outcome === 'refused')
    return fault(id, `refuses the client ${client_id} (${client.detail})`, {
      why: 'no code can be redeemed: nobody can sign in',
      todo: `compare client_id and client_secret, and see whether the provider takes the secret by ${method}`,
    })
  if (client?.outcome === 'accepted')
    return ok(id, `believes the client ${client_id}: of a made-up code it refused the code alone`)
  return warning(
    id,
    `does not say whether it believes the client ${client_id} (${client?.detail ?? 'it was not asked'})`,
    {
      why: 'with a wrong secret nobody can sign in',
      todo: 'sign in once',
    },
  )
}
