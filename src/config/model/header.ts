import type { ClaimPath, ClaimTemplate } from '../../core/claims.ts'
import type { HeaderSettings } from '../settings.ts'

export type HeaderEncoding = HeaderSettings['encode']

/** Where the value of an upstream header comes from. */
export type HeaderSource =
  /** The value of a claim. */
  | { readonly kind: 'claim'; readonly path: ClaimPath }
  /** The first of several claims that has a value. */
  | { readonly kind: 'first_of'; readonly firstOf: readonly ClaimPath[] }
  /** Text with claims in it. */
  | { readonly kind: 'template'; readonly template: ClaimTemplate }
  /** A text that is the same for everybody. A secret one is never shown. */
  | { readonly kind: 'constant'; readonly value: string; readonly isSecret: boolean }
  /** A fact about the request, as the gateway and its trusted proxies see it. */
  | { readonly kind: 'request'; readonly request: RequestFact }
  /** Basic credentials (RFC 7617): a user name made of claims, and one password for everybody. */
  | { readonly kind: 'basic'; readonly user: ClaimTemplate; readonly password: string }
  /** A token of the session (RFC 6750 §2.1). */
  | { readonly kind: 'bearer'; readonly bearer: 'access_token' | 'id_token' }
  /** The token that the provider issues for the upstream in exchange (RFC 8693). */
  | { readonly kind: 'exchanged' }

/**
 * - `client_address`: the IP address of the client.
 * - `scheme`: `http` or `https`, as the client used it.
 * - `host`: the `Host` that the client sent, with its port.
 * - `port`: the port of that host, or the default port of the scheme.
 * - `prefix`: the `path` of the upstream without the slash at its end; none for `/`.
 */
export type RequestFact = NonNullable<HeaderSettings['request']>

/** How the text of a claim is changed, in this order: `after`, `before`, `case`, `map`. */
export interface ClaimChanges extends Pick<HeaderSettings, 'after' | 'before' | 'case'> {
  /** Value → replacement; `*`: any other value. Values without a replacement are left out. */
  readonly map?: ReadonlyMap<string, string>
}

/** A header that an upstream receives. */
export interface HeaderConfig extends Pick<
  HeaderSettings,
  'json' | 'join' | 'encode' | 'maxBytes' | 'tooLong' | 'required'
> {
  /** As in the configuration; `[A-Za-z0-9-]` only. */
  readonly name: string
  readonly source: HeaderSource
  /** Absent: the claims are sent as they are. */
  readonly changes?: ClaimChanges
}
