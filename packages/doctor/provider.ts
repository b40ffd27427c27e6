import {
  type ApiFact,
  type ClaimSourceFact,
  connectionAdvice,
  describeAssertion,
  encryptedKinds,
  encryptionOf,
  harmOfOfflineAccess,
  issuerHint,
  kindOf,
  lackOfOauth2,
  offlineAccess,
  ownMember,
  type ProbeFailure,
  type ProviderConfig,
  type ProviderFacts,
  proxyFor,
  proxyText,
  readClientAssertion,
  type RedirectUriFact,
  type RequestedAccess,
  type UpstreamConfig,
} from '../../src/entries/doctor.ts'
import { fault, type Finding, found, ok, warning } from './finding.ts'
import { overageFindings, unrequestedScopeFindings } from './upstream-claims.ts'

type Metadata = Readonly<Record<string, unknown>>

/** The findings about the provider and about this client there. */
export function providerFindings(
  facts: ProviderFacts,
  config: ProviderConfig,
  upstreams: readonly UpstreamConfig[],
): Finding[] {
  const around = found(proxyFinding(config), clockFinding(facts, config), assertionFinding(config, facts.metadata))
  if ('why' in facts.metadata) return [unreachableFinding(facts.metadata, facts.wrongScheme, config), ...around]
  const { value: metadata, ms } = facts.metadata
  if ('why' in facts.derived) return [unusableFinding(facts.derived), ...around]
  const ofOauth2 = config.oauth2 && [
    ok('provider.discovery', 'is described by provider.metadata, without ID Tokens (kind: oauth2)'),
    oauth2Finding(),
  ]
  if (ofOauth2 !== undefined)
    return found(...ofOauth2, ...around, ...facts.redirectUris.map(redirectUriFinding), clientFinding(facts, config))
  return found(
    ok(
      'provider.discovery',
      config.metadata === undefined
        ? `responds in ${Math.ceil(ms)} ms, with the issuer ${config.issuer}`
        : 'is described by provider.metadata; its discovery document is not read',
    ),
    ...around,
    keysFinding(facts.keys, facts.derived.algorithm),
    pkceFinding(metadata),
    ...capabilityFindings(metadata, config),
    scopeFinding(metadata, config, facts.derived.access),
    ...unrequestedScopeFindings(config, upstreams, {
      requested: facts.derived.access.scopes,
      listed: metadata['scopes_supported'],
    }),
    acrFinding(metadata, upstreams),
    keyFinding(metadata, config, upstreams),
    userinfoFinding(metadata),
    ...overageFindings(config, upstreams),
    backchannelFinding(metadata),
    endSessionFinding(metadata),
    frontchannelFinding(metadata, config),
    ...facts.redirectUris.map(redirectUriFinding),
    clientFinding(facts, config),
  )
}

/** The proxy between the gateway and the provider, if there is one. */
function proxyFinding({ issuer, egressProxy }: ProviderConfig): Finding | undefined {
  const proxy = proxyFor(new URL(issuer), egressProxy)
  return proxy && ok('provider.proxy', `is reached through the proxy ${proxyText(proxy)}`)
}

/** The JWT that authenticates the client, which somebody else renews. */
function assertionFinding(
  { clientAssertion: file, issuer }: ProviderConfig,
  metadata: ProviderFacts['metadata'],
): Finding | undefined {
  if (file === undefined) return undefined
  const id = 'provider.client_assertion'
  const assertion = readClientAssertion(file, Date.now())
  if ('why' in assertion)
    return fault(id, `${file} ${assertion.why}`, {
      why: 'nobody can sign in, and no session can be refreshed',
      todo: 'look at the program that renews the file',
    })
  const what = `${file} has ${describeAssertion(assertion)}`
  const tokenEndpoint = 'why' in metadata ? undefined : metadata.value['token_endpoint']
  // Entra ID has an audience of its own for federated credentials.
  const wanted = [issuer, tokenEndpoint, 'api://AzureADTokenExchange']
  if ('why' in metadata || assertion.aud.some((aud) => wanted.includes(aud))) return ok(id, what)
  return warning(id, what, {
    why: 'a provider accepts a JWT only if it is the audience (RFC 7523 §3)',
    todo: `let the program that renews the file ask for the audience ${issuer}`,
  })
}

function unreachableFinding(
  { why, problem }: ProbeFailure,
  wrongScheme: string | undefined,
  { issuer, egressProxy }: ProviderConfig,
): Finding {
  const proxy = proxyFor(new URL(issuer), egressProxy)
  const hasNoDocument = wrongScheme === undefined && problem === 'no_document'
  const failure = { why, isTimeout: problem === 'timeout' }
  const todo =
    wrongScheme ?? (hasNoDocument ? issuerHint : connectionAdvice(failure, 'provider.issuer', 'provider.ca_file'))
  return fault('provider.discovery', `its discovery document cannot be read: ${why}`, {
    why: 'nobody can sign in; signed-in people are served until their tokens need a refresh',
    todo:
      proxy === undefined || hasNoDocument
        ? todo
        : `check that the proxy ${proxyText(proxy)} runs and permits this host, or write egress_proxy: { no_proxy: [${new URL(issuer).hostname}] }`,
  })
}

function unusableFinding({ why, problem }: ProbeFailure): Finding {
  return fault('provider.discovery', `responds, but cannot be used: ${why}`, {
    why: 'nobody can sign in: the gateway must not accept tokens of another issuer, or tokens that it cannot verify',
    todo:
      problem === 'issuer'
        ? 'write the issuer exactly as the provider does, including a slash at the end'
        : problem === 'no_document'
          ? issuerHint
          : 'change this at the provider or in provider.*',
  })
}

function clockFinding(
  { clockAheadMs: aheadMs, metadata }: ProviderFacts,
  { clockToleranceMs: toleranceMs }: ProviderConfig,
): Finding | undefined {
  const id = 'provider.clock'
  if (aheadMs === undefined)
    return 'why' in metadata ? undefined : ok(id, 'sends no Date, so its clock cannot be compared with the local clock')
  const seconds = (Math.abs(aheadMs) / 1000).toFixed(1)
  const what = `its clock is ${seconds} s ${aheadMs < 0 ? 'behind' : 'ahead of'} the local clock (accurate to about half a second)`
  const remedy = {
    why: `tokens are rejected when the clocks differ by more than provider.clock_tolerance (${toleranceMs / 1000} s)`,
    todo: 'synchronize both clocks with NTP; a container uses the clock of its host',
  }
  if (Math.abs(aheadMs) > toleranceMs + 1000) return fault(id, what, remedy)
  if (Math.abs(aheadMs) > Math.max(2000, toleranceMs / 2)) return warning(id, what, remedy)
  return ok(id, what)
}

const keyTypes: Readonly<Record<string, string>> = { RS: 'RSA', PS: 'RSA', ES: 'EC', Ed: 'OKP' }

function keysFinding(keys: ProviderFacts['keys'], algorithm: string): Finding {
  const remedy = {
    why: 'without a matching key, the gateway cannot verify ID Tokens and Logout Tokens: nobody can sign in, and logouts at the provider have no effect',
    todo: 'set provider.id_token_signed_response_alg to the algorithm that is registered for this client at the provider',
  }
  if (keys === undefined || 'why' in keys)
    return fault('provider.keys', `its key set cannot be read: ${keys?.why ?? 'not requested'}`, remedy)
  const matching = keys.value.filter(
    (key) =>
      key['kty'] === ownMember(keyTypes, algorithm.slice(0, 2)) &&
      key['use'] !== 'enc' &&
      (key['alg'] === undefined || key['alg'] === algorithm),
  )
  const what = `${matching.length} of ${keys.value.length} keys ${matching.length === 1 ? 'is' : 'are'} for ${algorithm}`
  if (matching.length === 0) return fault('provider.keys', what, remedy)
  const short = matching.filter((key) => key['kty'] === 'RSA' && modulusBits(key['n']) < 2048)
  if (short.length > 0)
    return warning('provider.keys', `${what}; ${short.length} shorter than 2048 bits`, {
      why: 'an attacker who breaks such a key can sign in as anybody (RFC 7518 §3.3)',
      todo: 'generate longer keys at the provider',
    })
  return ok('provider.keys', what)
}

function modulusBits(n: unknown): number {
  return typeof n === 'string' ? Buffer.from(n, 'base64url').length * 8 : Infinity
}

function pkceFinding(metadata: Metadata): Finding {
  if (includes(metadata, 'code_challenge_methods_supported', 'S256'))
    return ok('provider.pkce', 'supports PKCE with S256')
  return warning('provider.pkce', 'does not announce PKCE with S256 (code_challenge_methods_supported)', {
    why: 'the gateway sends a code_challenge anyway; a provider that ignores it does not bind the code to this sign-in',
    todo: 'enable PKCE for this client if the provider supports it; nonce and state protect the sign-in until then',
  })
}

/**
 * Whether a list in the metadata has a member. An absent list has the default of OpenID Connect
 * Discovery 1.0 §3.
 */
function includes(metadata: Metadata, name: string, member: string, defaults: readonly string[] = []): boolean {
  const list = metadata[name]
  return (Array.isArray(list) ? list : defaults).includes(member)
}

function capabilityFindings(metadata: Metadata, config: ProviderConfig): Finding[] {
  const { token_endpoint_auth_method: method, response_mode } = config
  // `provider.metadata` has no lists of methods and modes.
  if (config.metadata !== undefined) return []
  const methods = 'token_endpoint_auth_methods_supported'
  return found(
    includes(metadata, methods, method, ['client_secret_basic'])
      ? undefined
      : warning('provider.token_endpoint_auth_method', `does not list ${method} among its ${methods}`, {
          why: 'the code cannot be exchanged if the provider accepts only other methods',
          todo: `set provider.token_endpoint_auth_method to one that it lists: ${listed(metadata[methods])}`,
        }),
    includes(metadata, 'response_modes_supported', response_mode, ['query', 'fragment'])
      ? undefined
      : fault('provider.response_mode', `does not support response_mode ${response_mode}`, {
          why: 'the authorization response does not arrive in the expected form',
          todo: 'set provider.response_mode to query',
        }),
    ...algorithmFindings(metadata, config),
    ...encryptionFindings(metadata, config),
  )
}

/** The lists of algorithms that the gateway signs with, and the setting that each is about. */
function algorithmFindings(metadata: Metadata, config: ProviderConfig): Finding[] {
  const { token_endpoint_auth_method: method, clientKey, signedRequests, dpop } = config
  const uses: readonly (readonly [setting: string, list: string, alg: string | undefined])[] = [
    [
      'client_key',
      'token_endpoint_auth_signing_alg_values_supported',
      method === 'private_key_jwt' ? clientKey?.alg : method === 'client_secret_jwt' ? 'HS256' : undefined,
    ],
    ['signed_requests', 'request_object_signing_alg_values_supported', signedRequests ? clientKey?.alg : undefined],
    ['dpop', 'dpop_signing_alg_values_supported', dpop ? 'ES256' : undefined],
  ]
  return uses.flatMap(([setting, list, alg]) =>
    alg === undefined || (Array.isArray(metadata[list]) ? includes(metadata, list, alg) : setting !== 'dpop')
      ? []
      : [
          warning(`provider.${setting}`, `does not list ${alg} among its ${list}`, {
            why: 'nobody can sign in if the provider accepts only other signatures',
            todo:
              setting === 'dpop'
                ? 'enable DPoP at the provider, or remove provider.dpop'
                : `use a key for one that it lists: ${listed(metadata[list])}`,
          }),
        ],
  )
}

/** The algorithms of encrypted responses that the provider does not list. */
function encryptionFindings(metadata: Metadata, config: ProviderConfig): Finding[] {
  return encryptedKinds.flatMap((kind) => {
    const { alg, enc } = encryptionOf(config, kind)
    if (alg === undefined) return []
    return Object.entries({ alg, enc }).flatMap(([name, value]) => {
      const list = `${kind}_encryption_${name}_values_supported`
      if (includes(metadata, list, value)) return []
      return warning(`provider.${kind}_encrypted_response_${name}`, `does not list ${value} among its ${list}`, {
        why: 'the gateway refuses what is encrypted with another algorithm, or not at all',
        todo: `register this client with one that it lists: ${listed(metadata[list])}`,
      })
    })
  })
}

function scopeFinding(metadata: Metadata, { issuer }: ProviderConfig, access: RequestedAccess): Finding {
  const { scopes } = access
  const harm = scopes.includes(offlineAccess) ? harmOfOfflineAccess(kindOf(issuer, metadata)) : undefined
  if (harm !== undefined)
    return warning('provider.scopes', 'the gateway requests offline_access, which is harmful at this provider', {
      why: harm.what,
      todo: 'remove offline_access from provider.scopes: this provider issues refresh tokens without it',
    })
  const unknown = scopes.filter(
    (scope) => Array.isArray(metadata['scopes_supported']) && !includes(metadata, 'scopes_supported', scope),
  )
  if (unknown.length === 0) {
    const mayNeedConsent = scopes.includes(offlineAccess) && !access.params['prompt']?.split(' ').includes('consent')
    const hint = '; if the log has provider.no_refresh_token, set provider.authorization_params: { prompt: consent }'
    return ok('provider.scopes', `the gateway requests ${scopes.join(' ')}${mayNeedConsent ? hint : ''}`)
  }
  return warning('provider.scopes', `does not list ${unknown.join(', ')} among its scopes_supported`, {
    why: unknown.includes(offlineAccess)
      ? 'without a refresh token, a session that has expired at the provider continues here until session.absolute_timeout'
      : 'claims of these scopes may be missing; some providers do not list all of their scopes',
    todo: 'check the names of the scopes at the provider, and whether this client may request them',
  })
}

/** Whether the provider can issue the refresh tokens of keys. */
function keyFinding(
  metadata: Metadata,
  { issuer }: ProviderConfig,
  upstreams: readonly Pick<UpstreamConfig, 'keys'>[],
): Finding | undefined {
  if (upstreams.every(({ keys }) => keys === undefined)) return undefined
  const id = 'provider.offline_access'
  const kind = kindOf(issuer, metadata)
  const lists = (name: string, value: string) => !Array.isArray(metadata[name]) || includes(metadata, name, value)
  const isLimited = !lists('scopes_supported', offlineAccess) && kind !== 'google' && kind !== 'cognito'
  if (!isLimited && lists('grant_types_supported', 'refresh_token'))
    return ok(id, 'keys get a refresh token of their own, if the provider allows this client offline_access')
  return warning(id, 'does not list offline_access or refresh_token, so keys get no refresh token', {
    why: 'nothing tells the gateway later that an account is gone: a key lasts for session.absolute_timeout at most',
    todo: 'allow this client offline_access at the provider',
  })
}

/** Whether the provider knows the `acr_values` that rules and keys require. */
function acrFinding(
  metadata: Metadata,
  upstreams: readonly Pick<UpstreamConfig, 'rules' | 'keys'>[],
): Finding | undefined {
  const required = new Set(
    upstreams.flatMap(({ rules, keys }) => [
      ...rules.flatMap(({ stepUp }) => stepUp?.acr_values ?? []),
      ...(keys?.acr_values ?? []),
    ]),
  )
  if (required.size === 0) return undefined
  const id = 'provider.acr'
  const what = `rules require acr ${[...required].join(', ')}`
  if (!Array.isArray(metadata['acr_values_supported']))
    return ok(id, `${what}; it does not list its acr_values_supported, so try such a page once`)
  const unknown = [...required].filter((acr) => !includes(metadata, 'acr_values_supported', acr))
  if (unknown.length === 0) return ok(id, what)
  return warning(id, `${what}, but it does not list ${unknown.join(', ')} among its acr_values_supported`, {
    why: 'if it does not send this acr, nobody can open the pages of these rules (ERR_STEP_UP_UNMET)',
    todo: `compare acr_values of step_up with those that it lists: ${listed(metadata['acr_values_supported'])}`,
  })
}

function listed(value: unknown): string {
  return Array.isArray(value) ? value.join(', ') : 'none listed'
}

function userinfoFinding(metadata: Metadata): Finding | undefined {
  if (metadata['userinfo_endpoint'] !== undefined) return undefined
  return warning('provider.userinfo', 'has no userinfo_endpoint: all claims come from the ID Token', {
    why: 'claims change at the sign-in and at refreshes only, and session.poll_userinfo has no effect',
    todo: 'nothing, if provider.id_token_claims names all claims that the application needs; a short session.absolute_timeout limits their age',
  })
}

function backchannelFinding(metadata: Metadata): Finding {
  const id = 'provider.backchannel_logout'
  if (metadata['backchannel_logout_supported'] !== true)
    return warning(id, 'does not announce back-channel logout (backchannel_logout_supported)', {
      why: 'a session that ends at the provider would continue here until its tokens need a refresh, or until idle_timeout',
      todo: 'if the provider supports it, register the back-channel logout URI anyway; otherwise set session.poll_userinfo, for example to 60s',
    })
  if (metadata['backchannel_logout_session_supported'] !== true)
    return warning(
      id,
      'supports back-channel logout, but does not announce a sid in Logout Tokens (backchannel_logout_session_supported)',
      {
        why: 'without a sid, a Logout Token ends all sessions of the person, on every device',
        todo: 'set backchannel_logout_session_required for this client, if the provider has it',
      },
    )
  return ok(id, 'supports back-channel logout, with a sid in Logout Tokens')
}

function endSessionFinding(metadata: Metadata): Finding {
  if (typeof metadata['end_session_endpoint'] === 'string')
    return ok(
      'provider.end_session',
      'has an end_session_endpoint: a sign-out here also ends the session at the provider',
    )
  return warning('provider.end_session', 'has no end_session_endpoint', {
    why: 'a person who signs out here stays signed in at the provider, and can sign in again without a password',
    todo: 'enable it at the provider, if the provider has one',
  })
}

function frontchannelFinding(metadata: Metadata, { frontchannelLogout }: ProviderConfig): Finding | undefined {
  if (!frontchannelLogout || metadata['frontchannel_logout_supported'] === true) return undefined
  return warning(
    'provider.frontchannel_logout',
    'does not announce front-channel logout (frontchannel_logout_supported)',
    {
      why: 'provider.frontchannel_logout is on, but has no effect',
      todo: 'remove the setting, or enable front-channel logout at the provider',
    },
  )
}

/** What a provider without ID Tokens does not have. */
function oauth2Finding(): Finding {
  return warning('provider.oauth2', `has ${lackOfOauth2}`, {
    why: 'a session continues here until its access token is revoked, or until idle_timeout; only state, PKCE and the redirect URI of this provider protect the sign-in',
    todo: 'set session.poll_userinfo, for example to 60s, and a short session.absolute_timeout',
  })
}

/** Whether an API of `claims_from` can be read. */
export function apiFinding({ claim, url, outcome, why }: ApiFact): Finding {
  const id = 'provider.claims_from'
  if (outcome === 'read') return ok(id, `${url} responds with values for ${claim}`)
  if (outcome === 'untried') return ok(id, `${url} ${why}; whether it has ${claim} can be tried by a sign-in only`)
  if (outcome === 'doubtful')
    return warning(id, `${url} ${why}`, {
      why: `if it is not there, the claim ${claim} is withheld from everybody: rules that read it deny access (ERR_CLAIM_WITHHELD)`,
      todo: 'compare url of its entry in provider.claims_from with the documentation of the API',
    })
  return fault(id, `${url} cannot be read: ${why}`, {
    why: `the claim ${claim} is withheld from everybody: rules that read it deny access (ERR_CLAIM_WITHHELD)`,
    todo: 'check url, scopes and select of its entry in provider.claims_from, and the rights of the client there',
  })
}

/** Whether the claims of an issuer in `claim_sources` can be verified. */
export function claimSourceFinding({ issuer, keys }: ClaimSourceFact): Finding {
  const id = 'provider.claim_sources'
  const why = 'why' in keys ? keys.why : keys.value.length === 0 ? 'its key set has no keys' : undefined
  if (why === undefined) return ok(id, `the keys of ${issuer} can be read`)
  return fault(id, `the keys of ${issuer} cannot be read: ${why}`, {
    why: 'claims of this issuer are withheld from everybody: rules that read them deny access (ERR_CLAIM_WITHHELD)',
    todo: 'check jwks_uri of its entry in provider.claim_sources',
  })
}

/** The errors for a person who is not signed in at the provider: OpenID Connect Core §3.1.2.6. */
const expectedErrors = ['login_required', 'interaction_required', 'consent_required', 'account_selection_required']

function redirectUriFinding({ redirect_uri, outcome, detail }: RedirectUriFact): Finding {
  const id = 'provider.redirect_uri'
  const remedy = {
    why: 'people who sign in see an error page of the provider',
    todo: `register exactly ${redirect_uri} as a redirect URI of this client, and compare client_id`,
  }
  if (outcome === 'refused')
    return fault(id, `rejects an authorization request with ${redirect_uri} (${detail})`, remedy)
  if (outcome === 'unknown')
    return warning(id, `does not tell whether ${redirect_uri} is registered (${detail})`, {
      why: remedy.why,
      todo: 'sign in once; if the provider shows an error, register the URI',
    })
  if (expectedErrors.includes(detail) || detail === 'no error') return ok(id, `redirects browsers to ${redirect_uri}`)
  return fault(id, `redirects browsers to ${redirect_uri} with the error ${detail}`, {
    why: 'nobody can sign in',
    todo:
      detail === 'invalid_scope'
        ? 'check which of provider.scopes this client may request'
        : 'check the log of the provider, and the settings of this client there',
  })
}

function credentialOf({
  token_endpoint_auth_method: method,
  clientAssertion,
}: Pick<ProviderConfig, 'token_endpoint_auth_method' | 'clientAssertion'>): string {
  if (method === 'private_key_jwt') return clientAssertion === undefined ? 'client_key' : 'client_assertion'
  return method.startsWith('client_secret') ? 'client_secret' : 'client_certificate'
}

function clientFinding(
  { client }: ProviderFacts,
  config: Pick<ProviderConfig, 'client_id' | 'token_endpoint_auth_method' | 'clientAssertion'>,
): Finding {
  const id = 'provider.client'
  const { client_id, token_endpoint_auth_method: method } = config
  if (client?.outcome === 'refused')
    return fault(id, `rejects the client ${client_id} (${client.detail})`, {
      why: 'no code can be exchanged: nobody can sign in',
      todo: `compare client_id and ${credentialOf(config)}, and check that the provider accepts ${method}`,
    })
  if (client?.outcome === 'accepted')
    return ok(id, `accepts the credentials of the client ${client_id} (tested with an invalid code)`)
  return warning(
    id,
    `does not tell whether it accepts the client ${client_id} (${client?.detail ?? 'not requested'})`,
    { why: `with a wrong ${credentialOf(config)} nobody can sign in`, todo: 'sign in once' },
  )
}
