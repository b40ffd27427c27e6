import { namesHost, upstreamsOfHost, withHost } from '../config/hosts.ts'
import type { GatewayConfig } from '../config/model/gateway.ts'
import type { RuleConfig } from '../config/model/rule.ts'
import type { UpstreamConfig } from '../config/model/upstream.ts'
import type { Claims, JsonValue } from '../core/claims.ts'
import type { BearerChallenge } from '../core/credentials.ts'
import { matchesPath } from '../core/patterns.ts'
import type { RequestFacts } from '../http/request-facts.ts'

/** The scopes that a request of a rule needs and the token does not have. */
export function missingScopes(
  claims: Claims,
  { accessTokens: ofUpstream }: Pick<UpstreamConfig, 'accessTokens'>,
  { accessTokens: ofRule }: Pick<RuleConfig, 'accessTokens'>,
): readonly string[] {
  const needed = [...(ofUpstream?.scopes ?? []), ...(ofRule?.scopes ?? [])]
  if (needed.length === 0) return needed
  // Some providers send a list, or call it "scp".
  const granted = new Set([...scopesIn(claims['scope']), ...scopesIn(claims['scp'])])
  return needed.filter((scope) => !granted.has(scope))
}

function scopesIn(claim: JsonValue | undefined): readonly string[] {
  if (typeof claim === 'string') return claim.split(' ')
  return Array.isArray(claim) ? claim.filter((each) => typeof each === 'string') : []
}

/** The challenge of a rule to a request. */
export function challengeOf(
  { host, target }: Pick<RequestFacts, 'host' | 'target'>,
  upstream: UpstreamConfig,
  rule: RuleConfig,
  error?: BearerChallenge['error'],
): BearerChallenge {
  const scopes = [...new Set([...(upstream.accessTokens?.scopes ?? []), ...(rule.accessTokens?.scopes ?? [])])]
  const isPublished = upstream.accessTokens?.metadata === true
  const metadata = isPublished ? originAt(host, upstream) + wellKnown + resourcePath(target.path, upstream) : undefined
  return { error, scopes, metadata, stepUp: error === 'insufficient_user_authentication' ? rule.stepUp : undefined }
}

// OAuth 2.0 Protected Resource Metadata (RFC 9728).

const methodsOfMetadata: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])
const wellKnown = '/.well-known/oauth-protected-resource'

/** The members of RFC 9728 §2. */
export interface ResourceMetadata {
  readonly resource: string
  readonly authorization_servers: readonly string[]
  readonly bearer_methods_supported: readonly ['header']
  readonly scopes_supported?: readonly string[]
}

/**
 * The metadata that the gateway publishes at a path, also for a preflight request (Fetch §3.2.2).
 * `undefined`: an upstream serves the path. Only this one spelling of the path belongs to the
 * gateway.
 */
export function resourceMetadata(
  request: { readonly method: string; readonly host: string; readonly path: string },
  { upstreams, providers }: Pick<GatewayConfig, 'upstreams' | 'providers'>,
): ResourceMetadata | undefined {
  const { method, host, path } = request
  if (!path.startsWith(wellKnown) || !methodsOfMetadata.has(method)) return undefined
  const upstream = upstreamsOfHost(host, upstreams).find(
    (each) =>
      each.accessTokens?.metadata === true && path === wellKnown + resourcePath(path.slice(wellKnown.length), each),
  )
  if (upstream === undefined) return undefined
  const scopes = [...new Set([...(upstream.accessTokens?.scopes ?? []), ...scopesOfResource(upstream)])]
  return {
    // The URL that the client uses (§3.3).
    resource: originAt(host, upstream) + path.slice(wellKnown.length),
    authorization_servers: providers
      .filter(({ name }) => upstream.providers.includes(name))
      .map(({ issuer }) => issuer),
    bearer_methods_supported: ['header'],
    ...(scopes.length > 0 && { scopes_supported: scopes }),
  }
}

/**
 * The scopes of the rules at the address of the upstream. The scopes of other rules, and of rules
 * for certain tools, are left out, because clients request what is published. The challenge of a
 * rule has its scopes.
 */
function scopesOfResource({ path, rules }: UpstreamConfig): readonly string[] {
  const segments = path
    .replace(/(?<=.)\/$/, '')
    .slice(1)
    .split('/')
  return ['GET', 'POST'].flatMap((method) => {
    const rule = rules.find(
      ({ path, methods, mcp }) =>
        mcp === undefined && matchesPath(path, segments) && methods?.includes(method) !== false,
    )
    return rule?.accessTokens?.scopes ?? []
  })
}

/** The origin of an upstream that has several hosts, as the client uses it. */
function originAt(host: string, upstream: UpstreamConfig): string {
  return namesHost(upstream, host) ? withHost(upstream.externalUrl, host).origin : upstream.externalUrl.origin
}

/**
 * The path of an upstream as the client writes it: with a slash at the end or without one. RFC 9728
 * §3.1 removes the slash that follows the host.
 */
function resourcePath(path: string, upstream: Pick<UpstreamConfig, 'path'>): string {
  const plain = upstream.path.replace(/\/$/, '')
  return plain !== '' && path === `${plain}/` ? path : plain
}
