// OAuth 2.0 Protected Resource Metadata (RFC 9728).
import { upstreamsOfHost } from '../config/hosts.ts'
import type { GatewayConfig } from '../config/model/gateway.ts'
import type { UpstreamConfig } from '../config/model/upstream.ts'

const wellKnown = '/.well-known/oauth-protected-resource'

/** The members of RFC 9728 §2. */
export interface ResourceMetadata {
  readonly resource: string
  readonly authorization_servers: readonly string[]
  readonly bearer_methods_supported: readonly ['header']
  readonly scopes_supported?: readonly string[]
}

/** The URL of the metadata of an upstream; `undefined` when the gateway publishes none. */
export function metadataUrl({ accessTokens, externalUrl, path }: UpstreamConfig): string | undefined {
  return accessTokens?.metadata === true ? externalUrl.origin + wellKnown + withoutSlash(path) : undefined
}

/**
 * The metadata that the gateway publishes at a path. `undefined`: an upstream serves the path. Only
 * this one spelling of the path belongs to the gateway.
 */
export function resourceMetadata(
  request: { readonly method: string; readonly host: string; readonly path: string },
  { upstreams, providers }: Pick<GatewayConfig, 'upstreams' | 'providers'>,
): ResourceMetadata | undefined {
  const { method, host, path } = request
  if (!path.startsWith(wellKnown) || (method !== 'GET' && method !== 'HEAD')) return undefined
  const upstream = upstreamsOfHost(host, upstreams).find(
    (each) => each.accessTokens?.metadata === true && path === wellKnown + withoutSlash(each.path),
  )
  if (upstream === undefined) return undefined
  const ofRules = upstream.rules.flatMap(({ accessTokens }) => accessTokens?.scopes ?? [])
  const scopes = [...new Set([...(upstream.accessTokens?.scopes ?? []), ...ofRules])]
  return {
    resource: upstream.externalUrl.origin + withoutSlash(upstream.path),
    authorization_servers: providers
      .filter(({ name }) => upstream.providers.includes(name))
      .map(({ issuer }) => issuer),
    bearer_methods_supported: ['header'],
    ...(scopes.length > 0 && { scopes_supported: scopes }),
  }
}

/** RFC 9728 §3.1 removes the slash at the end of the host. */
function withoutSlash(path: string): string {
  return path.replace(/\/$/, '')
}
