import { authenticationClaims, type ClaimPath, parseClaimPath } from '../../core/claims.ts'
import { ownMember } from '../../core/json.ts'
import { isLoopback, parseHttpUrl } from '../addresses.ts'
import { claimsNeeded } from '../claims-in-use.ts'
import type { Setting } from '../document/report.ts'
import { endSessionPlaceholders, placeholdersIn } from '../end-session-params.ts'
import { issuerFault } from '../issuer-faults.ts'
import type { GatewayConfig } from '../model/gateway.ts'
import type { EgressProxyConfig, EndSessionConfig, ProviderConfig, ProviderMetadata } from '../model/provider.ts'
import type { UpstreamConfig } from '../model/upstream.ts'
import { providerKind, type ProviderKind } from '../provider-kind.ts'
import type { GatewaySettings, ProviderMetadataSettings, ProviderSettings } from '../settings.ts'
import { readEach } from './build-context.ts'
import type { ShortNames } from './claim-names.ts'
import { readClaimSources, readClaimsFrom } from './claims-from.ts'
import { readCredentials } from './client-credentials.ts'
import { readOauth2 } from './oauth2.ts'
import { readGlobalTokenRevocation, readSignals } from './signals.ts'

interface ProviderContext {
  readonly egressProxy: EgressProxyConfig | undefined
  readonly reservedPrefix: string
  /** The name of the session cookie. */
  readonly cookieName: string
}

/** Builds the provider of the setting `provider`, or those below `providers`. */
export function buildProviders(
  { provider, providers }: Pick<GatewaySettings, 'provider' | 'providers'>,
  file: Setting,
  context: ProviderContext,
): GatewayConfig['providers'] {
  const { reservedPrefix, cookieName } = context
  const [first, ...others] = Object.entries(providers ?? {}).map(([name, settings]): ProviderConfig => {
    const built = buildProvider(settings, file.below('providers', name), context, {})
    return {
      ...built,
      name,
      setting: `providers.${name}`,
      title: settings.title ?? name,
      prefix: `${reservedPrefix}${name}/`,
      // No other cookie of the gateway has such a name, because names of providers have no "-".
      cookieName: `${cookieName}-at-${name}`,
      claims: {},
      renamedClaims: Object.fromEntries(Object.entries(settings.claims).map(([short, long]) => [long, short])),
    }
  })
  if (first !== undefined) return [first, ...others]
  if (!file.below('provider').isSet)
    if (file.below('providers').isReported) file.below('provider').markReported()
    else file.below('provider').missing('is missing', 'The OpenID Provider where people sign in.')
  return [buildProvider(provider, file.below('provider'), context, provider.claims)]
}

/** `shortNames`: those that replace other names in sessions. */
function buildProvider(
  settings: ProviderSettings,
  at: Setting,
  context: ProviderContext,
  shortNames: ShortNames,
): ProviderConfig {
  const { egressProxy, reservedPrefix, cookieName } = context
  checkLinkParams(settings, at.below('link_params'))
  checkAuthorizationParams(settings, at.below('authorization_params'))
  for (const [short, name] of Object.entries(settings.claims)) requireName(name, at.below('claims', short))
  const { kind: _kind, subject: _subject, ...others } = settings
  return {
    ...others,
    ...{ name: 'provider', setting: 'provider', prefix: reservedPrefix, cookieName, egressProxy },
    ...{ renamedClaims: {}, userinfoClaims: [] },
    issuer: readIssuer(settings, at.below('issuer'), at.below('kind')),
    oauth2: readOauth2(settings, at),
    metadata: readMetadata(settings.metadata, settings.issuer, at.below('metadata')),
    title: settings.title ?? '',
    client_id: settings.client_id ?? '',
    ...readCredentials(settings, at),
    resource: [settings.resource ?? []].flat(),
    globalTokenRevocation: readGlobalTokenRevocation(settings, at.below('global_token_revocation')),
    signals: readSignals(settings, at.below('signals')),
    ...readEndSession(settings, at),
    idTokenClaims: readIdTokenClaims(settings, at.below('id_token_claims')),
    claimSources: readClaimSources(settings, at.below('claim_sources')),
    claimsFrom: readClaimsFrom(settings, shortNames, at.below('claims_from')),
  }
}

/**
 * The claims that the upstreams of a provider use and that come from UserInfo, not from the ID
 * Token. As the provider spells them.
 */
export function userinfoClaims(
  upstreams: readonly (Parameters<typeof claimsNeeded>[0] & Pick<UpstreamConfig, 'providers'>)[],
  { name: provider, idTokenClaims, renamedClaims, claimsFrom }: ProviderConfig,
): string[] {
  const own = upstreams.filter(({ providers }) => providers.includes(provider))
  const long = new Map(Object.entries(renamedClaims).map(([name, short]) => [short, name]))
  const paths = own.flatMap(claimsNeeded)
  const isFromApi = (name: unknown) => claimsFrom.some((claim) => claim.name === name && !claim.isMerged)
  const names = new Set(
    paths.filter(([name]) => !isFromApi(name)).map(([name]) => long.get(String(name)) ?? String(name)),
  )
  return [...names].filter(
    (name) => !protocolClaims.has(name) && !authenticationClaims.includes(name) && !idTokenClaims.includes(name),
  )
}

/**
 * The issuer keeps its exact spelling, because it is compared character by character (OpenID
 * Connect Discovery 1.0 §4.3).
 */
function readIssuer({ issuer: text, kind }: ProviderSettings, at: Setting, kindAt: Setting): string {
  if (text === undefined) return ''
  const fault = kind === 'openid' && !kindAt.isReported ? issuerFault(text) : undefined
  if (fault !== undefined) {
    at[fault.isWarning ? 'warning' : 'error'](fault.what, fault.todo)
    return text
  }
  const url = at.parse(text, () => parseHttpUrl(text, 'https://id.example.com'))
  if (url?.protocol === 'http:' && !isLoopback(url.hostname))
    at.error('must be https; plain http is possible with a provider on this machine only (localhost, 127.0.0.1)')
  return text
}

/**
 * Claims about the ID Token itself. The gateway always reads some of them, and never passes on the
 * others.
 */
const protocolClaims: ReadonlySet<string> = new Set(['iss', 'sub', 'sid', 'aud', 'azp', 'exp', 'iat', 'nonce'])

/** The names of claims as the provider spells them. */
function readIdTokenClaims(settings: ProviderSettings, at: Setting): string[] {
  readEach(settings.idTokenClaims, at, (name, nameAt) => {
    requireName(name, nameAt)
    const [whole, ...members] = pathIn(name)
    if (members.length > 0)
      nameAt.warning(
        'is the name of a claim, not a path into it: there is probably no claim of this name',
        `write ${whole}, which takes the whole claim from the ID Token`,
      )
    if (protocolClaims.has(name))
      nameAt.error('has no effect: the gateway always takes it from the ID Token, or never passes it on')
  })
  return settings.idTokenClaims.map((name) => ownMember(settings.claims, name) ?? name)
}

/** Reports the name of a claim in quotes, as paths have them. No claim would match. */
function requireName(name: string, at: Setting): void {
  if (/^".*"$/.test(name))
    at.error('is the name of a claim, which needs no quotes of its own', `write ${name.slice(1, -1)}`)
}

/** The name of a claim, read as a path; empty when it has no valid path, such as a URL. */
function pathIn(name: string): ClaimPath {
  try {
    return parseClaimPath(name)
  } catch {
    return []
  }
}

/**
 * Parameters of the authorization request that the gateway sets. Another value would break the
 * sign-in or its protection.
 */
const gatewayParams: ReadonlySet<string> = new Set([
  'client_id',
  'redirect_uri',
  'response_type',
  'response_mode',
  'scope',
  'state',
  'nonce',
  'code_challenge',
  'code_challenge_method',
  'request',
  'request_uri',
  'resource',
  'dpop_jkt',
])

/**
 * Parameters that a link must not set: the gateway gives them a meaning at `sign-in`, or they
 * decide how a person authenticates.
 */
const signInParams: ReadonlySet<string> = new Set([
  ...['return_to', 'kept', 'again', 'prompt', 'acr_values', 'max_age'],
  ...['claims', 'id_token_hint', 'client_secret', 'client_assertion', 'client_assertion_type'],
])

function checkLinkParams({ linkParams }: ProviderSettings, at: Setting): void {
  readEach(linkParams, at, (name, nameAt) => {
    if (gatewayParams.has(name)) nameAt.error('is a parameter that only the gateway sets')
    else if (signInParams.has(name))
      nameAt.error(
        'must not be set by a link, which anybody can write',
        'write it in authorization_params, or as step_up of a rule',
      )
  })
}

function checkAuthorizationParams({ authorizationParams }: ProviderSettings, at: Setting): void {
  for (const name of Object.keys(authorizationParams))
    if (gatewayParams.has(name))
      at.below(name).errorAtKey('is a parameter that only the gateway sets', ownMember(insteadOf, name))
  const { max_age } = authorizationParams
  if (typeof max_age === 'string' && !/^\d{1,9}$/.test(max_age))
    at.below('max_age').error('must be a number of seconds', 'as in max_age: "3600"')
}

const insteadOf: Readonly<Record<string, string>> = {
  client_id: 'write it as provider.client_id',
  scope: 'write them as provider.scopes',
  response_mode: 'write it as provider.response_mode',
  redirect_uri: 'it follows from external_url and reserved_prefix',
  resource: 'write it as provider.resource',
}

/**
 * The metadata of a provider without a discovery document. Its URLs get the same checks as those of
 * a discovery document: https, or http when the issuer is on loopback.
 */
function readMetadata(
  settings: ProviderMetadataSettings | undefined,
  issuer: string | undefined,
  at: Setting,
): ProviderMetadata | undefined {
  if (settings === undefined) return undefined
  const onLoopback = issuer?.startsWith('http:') === true
  const { mtls_endpoint_aliases: aliases, ...others } = settings
  checkUrls(others, at, onLoopback)
  if (aliases !== undefined) checkUrls(aliases, at.below('mtls_endpoint_aliases'), onLoopback)
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined)) as ProviderMetadata
}

function checkUrls(settings: object, at: Setting, onLoopback: boolean): void {
  for (const [name, text] of Object.entries(settings)) {
    if (typeof text !== 'string') continue
    const url = at.below(name).parse(withoutQuery(text), (url) => parseHttpUrl(url, 'https://id.example.com'))
    if (url?.protocol === 'http:' && !(onLoopback && isLoopback(url.hostname)))
      at.below(name).error('must be https; plain http is possible when issuer is http on this machine')
  }
}

/** Endpoints may have a query (RFC 6749 §3.1). */
function withoutQuery(text: string): string {
  return text.replace(/\?[^#]*/, '')
}

/** How the gateway signs out at the provider of these settings, which stand at `at`. */
function readEndSession(settings: ProviderSettings, at: Setting): EndSessionConfig {
  const { endSessionParams, endSessionForm } = settings
  const paramsAt = at.below('end_session_params')
  for (const [name, value] of Object.entries(endSessionParams ?? {}))
    for (const placeholder of placeholdersIn(value ?? ''))
      if (!endSessionPlaceholders.some((known) => known === placeholder))
        paramsAt
          .below(name)
          .error(
            `has the unknown placeholder {${placeholder}}`,
            `the placeholders are ${endSessionPlaceholders.map((known) => `{${known}}`).join(', ')}`,
          )
  const usual = usualOf(providerKind(settings.issuer ?? ''))
  return {
    ...usual,
    endSessionParams: endSessionParams ?? usual.endSessionParams,
    endSessionForm: endSessionForm ?? usual.endSessionForm,
  }
}

/** What suits a provider. */
function usualOf(kind: ProviderKind): EndSessionConfig {
  switch (kind) {
    case 'cognito':
      // docs.aws.amazon.com/cognito/latest/developerguide/logout-endpoint.html
      return {
        endSessionParams: {
          ...{ client_id: '{client_id}', logout_uri: '{post_logout_redirect_uri}' },
          ...{ id_token_hint: null, post_logout_redirect_uri: null, state: null },
        },
        endSessionForm: 'never',
        longestEndSessionUrlBytes: 4096,
      }
    case 'entra':
      // Entra ID rejects a longer query with AADSTS90015. It needs no hint: it ends the session of
      // its cookie.
      return { endSessionParams: {}, endSessionForm: 'never', longestEndSessionUrlBytes: 2048 }
    case 'keycloak':
    case 'google':
    case 'other':
      return { endSessionParams: {}, endSessionForm: 'when_long', longestEndSessionUrlBytes: 4096 }
  }
}
