import type { Claims } from '../core/claims.ts'
import type { SessionId, SessionKey, SidTag, SubTag } from '../core/names.ts'
import { randomToken, sha256 } from '../core/random.ts'
import type { TokenSet } from '../core/token-set.ts'

/**
 * Who is signed in, and what we hold for them. Sealed before it leaves the process. Times in ms
 * since the epoch.
 */
export interface SessionRecord {
  readonly iss: string
  readonly sub: string
  /** The provider's session; absent when the provider sends none. */
  readonly sid?: string
  /** Our own origin that they signed in at; absent in records of earlier versions. */
  readonly origin?: string
  readonly created_at: number
  readonly absolute_expires_at: number
  readonly tokens: TokenSet
  /** The userinfo claims, and the ID Token's `sub`, `iss` and `sid`. */
  readonly claims: Claims
  readonly userinfo_read_at: number
}

/**
 * A record with its place and the version that fences writes: a write that names an older version
 * is refused.
 */
export interface StoredSession {
  readonly key: SessionKey
  readonly version: number
  readonly record: SessionRecord
  /** The provider has to say that it has not ended: see `SealedSession`. */
  readonly isDoubtful?: boolean
  /** About how much memory the record takes, in bytes. */
  readonly bytes: number
}

const tagLength = 24
/**
 * 192 bits. Tag and hash together stay below 64 bytes: Redis keeps an index with longer members in
 * seven times the memory.
 */
const hashLength = 32

/**
 * Whom the sessions of a gateway are made for: its provider, and itself as that provider's client.
 * Gateways that share a store but are other clients share no session: neither opens what was made
 * for the other, and no Logout Token ends it.
 */
export function audienceOf(provider: { readonly issuer: string; readonly client_id: string }): string {
  return sha256('audience', provider.issuer, provider.client_id)
}

/** The tag of one `sid` at an audience. */
export function sidTag(audience: string, sid: string): SidTag {
  return sha256('sid', audience, sid).slice(0, tagLength) as SidTag
}

/** The tag of one `sub` at an audience. */
export function subTag(audience: string, sub: string): SubTag {
  return sha256('sub', audience, sub).slice(0, tagLength) as SubTag
}

/**
 * A new cookie value: 24 characters of tag, so that the cookie alone leads to the slot where all of
 * its `sid` lies, and 240 bits of chance. Without a `sid` the tag is chance too.
 */
export function newSessionId(audience: string, sid: string | undefined): SessionId {
  const tag = sid === undefined ? randomToken(18) : sidTag(audience, sid)
  return `${tag}${randomToken(30)}` as SessionId
}

export function sessionIdFromCookie(value: string | undefined): SessionId | undefined {
  return value !== undefined && /^[\w-]{64}$/.test(value) ? (value as SessionId) : undefined
}

/** Where a session lies. The id cannot be found from it. */
export function sessionKey(id: SessionId): SessionKey {
  return `${id.slice(0, tagLength)}:${sha256(id).slice(0, hashLength)}` as SessionKey
}

export function tagOf(key: SessionKey): SidTag {
  return key.slice(0, tagLength) as SidTag
}
