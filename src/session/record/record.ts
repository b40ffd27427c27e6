import type { ProviderConfig } from '../../config/model/provider.ts'
import { authenticationClaims, type Claims, type JsonValue, withheldNames } from '../../core/claims.ts'
import { accessKeyPrefix } from '../../core/credentials.ts'
import type { SessionId, SessionKey, SidTag, SubTag } from '../../core/names.ts'
import { randomToken, sha256 } from '../../core/random.ts'
import type { Authentication } from '../../core/step-up.ts'
import type { TokenSet } from '../../core/token-set.ts'
import type { KeptCookie } from '../../http/cookie-jar.ts'
import { ownText } from '../../wire/fields.ts'

/** Who is signed in. It is sealed before it leaves the process. Times are in ms since the epoch. */
export interface SessionRecord {
  readonly iss: string
  readonly sub: string
  /** The session ID at the provider; absent when the provider sends none. */
  readonly sid?: string
  /** The origin of the gateway at the sign-in; absent in records of earlier versions. */
  readonly origin?: string
  readonly created_at: number
  /** After `session.absolute_timeout`, or at `session_expires_at` if that is earlier. */
  readonly absolute_expires_at: number
  /** When the session must end, as the provider says. */
  readonly session_expires_at?: number
  readonly tokens: TokenSet
  /** The UserInfo claims, and `sub`, `iss` and `sid` of the ID Token. */
  readonly claims: Claims
  readonly userinfo_read_at: number
  /** The claims of `claims_from`, by the ID of their settings. Absent: there are none. */
  readonly api_claims?: Readonly<Record<string, ApiClaim>>
  /** How the person authenticated at this sign-in. Absent in records of earlier versions. */
  readonly authentication?: Authentication
  /** The cookies that are kept for upstreams, by the name of the upstream. */
  readonly cookies?: Readonly<Record<string, readonly KeptCookie[]>>
  /**
   * The cookies in `logout.cookies` of any upstream that applications have set in this session,
   * without their values. Absent in records of earlier versions.
   */
  readonly browser_cookies?: readonly KeptCookie[]
  /** The sign-ins of the gateway at applications, by the name of the upstream. */
  readonly application_sessions?: Readonly<Record<string, ApplicationSession>>
  /** The client that signed in. Absent in records of earlier versions. */
  readonly signed_in_with?: SignInClient
  /** The key that the session is bound to. It never changes. Absent: the session is not bound. */
  readonly device?: BoundDevice
  /** The record is that of an access key of the person, and of no browser. */
  readonly key?: AccessKey
}

/** What a session begins with. Its times follow from the configuration and its provider. */
export type NewRecord = Omit<SessionRecord, 'created_at' | 'absolute_expires_at'>

/** What a person has made for a program: the program sends the id of its record as a secret. */
export interface AccessKey {
  /** What the person calls it. */
  readonly name: string
  /** The name of the only upstream that accepts it. */
  readonly upstream: string
  /** How long it is valid, and how long without a request, in ms. */
  readonly lifetime: number
  readonly idle_timeout: number
  /** When and from which address a program has used it. Absent: none has. */
  readonly used?: { readonly at: number; readonly address: string }
}

/** When a claim of an API was read, and when it is due. In ms since the epoch. */
export interface ApiClaim {
  /** Absent: it could not be read, and is withheld. */
  readonly read_at?: number
  /** Absent: when UserInfo is read. */
  readonly due_at?: number
  /** What the API has said, for values that are added to those of UserInfo (`merge`). */
  readonly added?: readonly JsonValue[]
}

/** A sign-in of the gateway at an application, on behalf of the person. */
export interface ApplicationSession {
  /** When it succeeded last, in ms since the epoch. Absent: it has not. */
  readonly signed_in_at?: number
  /** The value of `Authorization` that the application has given. */
  readonly authorization?: string
  /** The gateway does not try again: the person uses the form of the application. */
  readonly stopped?: true
}

/** What a person may recognize the client of a sign-in by. */
export interface SignInClient {
  /** The IP address of the client, as far as the trusted proxies say it. */
  readonly address: string
  /** `User-Agent` on one line, truncated. Absent: the client sent none. */
  readonly user_agent?: string
}

/** A key that the browser cannot export (W3C Device Bound Session Credentials §6.3). */
export interface BoundDevice {
  readonly alg: 'ES256' | 'RS256'
  /** The public key (RFC 7517). */
  readonly jwk: Readonly<Record<string, string>>
  /** In ms since the epoch. */
  readonly bound_at: number
}

/** A record with its key and version. A write that names an older version is rejected (fencing). */
export interface StoredSession {
  readonly key: SessionKey
  /** The audience that the session was created for. See {@link audienceOf}. */
  readonly audience: string
  readonly version: number
  readonly record: SessionRecord
  /** Whether the provider must confirm that the session has not ended. See `SealedSession`. */
  readonly isDoubtful?: boolean
  /** See `NewSession`. Only in a session that was read from the store. */
  readonly begun_at?: number
  /** The approximate size of the record in memory, in bytes. */
  readonly bytes: number
  /** Whether this object serves one request only: keep nothing for it. */
  readonly isTransient?: boolean
}

/** A session with its record as the store has it. See `sealRecord`. */
export interface UnopenedSession extends Pick<StoredSession, 'key' | 'audience' | 'version' | 'isDoubtful'> {
  readonly sealed: Uint8Array
  /** Of the record. */
  readonly sub: string
}

export type SessionOwner = Pick<UnopenedSession, 'key' | 'audience' | 'sub'>

/** The length of a `SidTag` or `SubTag`, in characters. */
const tagLength = 24
/**
 * The length of the hash in a session key, in characters: 192 bits. With the tag, it is shorter
 * than 64 bytes: an index with longer members takes seven times the memory in Redis.
 */
const hashLength = 32

/**
 * The audience of the sessions of a gateway: the provider, and the gateway as its client. Different
 * clients that share a store share no sessions, records or Logout Tokens. The subjects of an API
 * differ from those of ID Tokens, and from those at another member of its responses.
 */
export function audienceOf({ issuer, client_id, oauth2 }: ProviderIdentity): string {
  return oauth2 === undefined
    ? sha256('audience', issuer, client_id)
    : sha256('audience', issuer, client_id, 'oauth2', JSON.stringify(oauth2.subject))
}

type ProviderIdentity = Pick<ProviderConfig, 'issuer' | 'client_id'> & Partial<Pick<ProviderConfig, 'oauth2'>>

export function sidTag(audience: string, sid: string): SidTag {
  return sha256('sid', audience, sid).slice(0, tagLength) as SidTag
}

/**
 * The tag of the access keys of one `sub` at an audience. No order for a `sid` leads to it, because
 * keys outlive the sessions of browsers.
 */
export function accessKeyTag(audience: string, sub: string): SidTag {
  return sha256('access key', audience, sub).slice(0, tagLength) as SidTag
}

/** The tag of the sessions of one `sub` at an audience whose ID Token had no `sid`. */
function tagWithoutSid(audience: string, sub: string): SidTag {
  return sha256('no sid', audience, sub).slice(0, tagLength) as SidTag
}

/**
 * The tags of the sessions that an order for one `sid` is about. A session of the same `sub`
 * without a `sid` may be meant too.
 */
export function tagsOfOrder(audience: string, sid: string, sub: string | undefined): readonly SidTag[] {
  return [sidTag(audience, sid), ...(sub === undefined ? [] : [tagWithoutSid(audience, sub)])]
}

export function subTag(audience: string, sub: string): SubTag {
  return sha256('sub', audience, sub).slice(0, tagLength) as SubTag
}

/** A value by which pages notice another person. It says nothing about the person or the store. */
export function personMark(audience: string, sub: string): string {
  return sha256('person', audience, sub).slice(0, 16)
}

/**
 * A new cookie value: 24 characters of tag and 240 random bits. The tag leads to the slot with all
 * sessions of its `sid`, or of its `sub` without a `sid`. That of an access key has a prefix, so no
 * cookie can have it.
 */
export function newSessionId(
  audience: string,
  { sid, sub, key }: Pick<SessionRecord, 'sid' | 'sub' | 'key'>,
): SessionId {
  if (key !== undefined) return `${accessKeyPrefix}${accessKeyTag(audience, sub)}${randomToken(30)}` as SessionId
  const tag = sid === undefined ? tagWithoutSid(audience, sub) : sidTag(audience, sid)
  return `${tag}${randomToken(30)}` as SessionId
}

/** The length of a session id without a prefix, in characters. */
const idLength = 64

/** `undefined` when the value is no session id. */
export function sessionIdFromCookie(value: string | undefined): SessionId | undefined {
  return value !== undefined && /^[\w-]{64}$/.test(value) ? (value as SessionId) : undefined
}

/** `undefined` when the text is no access key. */
export function sessionIdFromAccessKey(text: string): SessionId | undefined {
  return /^ghk_[\w-]{64}$/.test(text) ? (text as SessionId) : undefined
}

/** How many ids {@link recentKeys} has before it replaces {@link earlierKeys}. */
const maxRecentKeys = 2_048
/** The keys of recent ids, because each request of a session needs its key. */
let recentKeys = new Map<SessionId, SessionKey>()
let earlierKeys: ReadonlyMap<SessionId, SessionKey> = recentKeys

/** The key of a session in the store. The id cannot be derived from it. */
export function sessionKey(id: SessionId): SessionKey {
  const recent = recentKeys.get(id)
  if (recent !== undefined) return recent
  // The hash is that of the whole id: without its prefix, an access key is the id of no session.
  const tag = id.slice(-idLength, tagLength - idLength)
  const key = earlierKeys.get(id) ?? (`${tag}:${sha256(id).slice(0, hashLength)}` as SessionKey)
  // An LRU cache would have to remove an id for each id that it adds.
  if (recentKeys.size === maxRecentKeys) {
    earlierKeys = recentKeys
    recentKeys = new Map()
  }
  recentKeys.set(ownText(id) as SessionId, key)
  return key
}

export function tagOf(key: SessionKey): SidTag {
  return key.slice(0, tagLength) as SidTag
}

/** Who sends a request: by a session record, or by credentials of the request itself. */
export interface PrincipalRecord extends Pick<
  SessionRecord,
  'iss' | 'sub' | 'sid' | 'claims' | 'authentication' | 'absolute_expires_at'
> {
  readonly tokens: Partial<Pick<TokenSet, 'access_token' | 'id_token'>>
}

export interface Principal {
  readonly record: PrincipalRecord
  /** Absent: the request has credentials of its own. */
  readonly session?: StoredSession
}

/** The claims of the verified ID Token, and the names of those that come from there only. */
export interface IdTokenClaims {
  readonly names: readonly string[]
  readonly claims: Claims
}

/** Name of a claim → the name that it has in sessions. */
export type RenamedClaims = Readonly<Record<string, string>>

const identity = ['iss', 'sub', 'sid']

/**
 * The claims of a session: those of UserInfo, except `iss`, `sub`, `sid`, those about the
 * authentication and those of `fromIdToken`, which come from the verified ID Token. Each claim has
 * one source: one that the ID Token lacks is absent even if UserInfo has it. A renamed claim
 * replaces one of its new name. `_claim_names` tells what is withheld, without `_claim_sources`,
 * which may have access tokens (OpenID Connect Core §5.6.2).
 */
export function claimsOfSession(
  userinfo: Claims,
  who: Pick<SessionRecord, 'iss' | 'sub' | 'sid'>,
  fromIdToken: IdTokenClaims = { names: [], claims: {} },
  renamedClaims: RenamedClaims = {},
): Claims {
  const { iss, sub, sid } = who
  const { sid: _, _claim_names, _claim_sources, ...others } = userinfo
  const isOfIdToken = (name: string) =>
    fromIdToken.names.includes(name) || (authenticationClaims.includes(name) && Object.hasOwn(fromIdToken.claims, name))
  const claims = Object.fromEntries([
    ...Object.entries(others).filter(([name]) => !isOfIdToken(name)),
    ...Object.entries(fromIdToken.claims).filter(([name]) => isOfIdToken(name)),
  ])
  // What one source withholds is withheld, unless the claim comes from the other one.
  const withheld = [
    ...withheldNames(userinfo).filter((name) => !isOfIdToken(name) || !Object.hasOwn(claims, name)),
    ...withheldNames(fromIdToken.claims).filter((name) => isOfIdToken(name) || !Object.hasOwn(claims, name)),
  ].filter((name) => !identity.includes(name))
  return {
    ...(Object.keys(renamedClaims).length === 0 ? claims : renamed(claims, renamedClaims)),
    ...(withheld.length > 0 && { _claim_names: renamed(Object.fromEntries(withheld.map(withMark)), renamedClaims) }),
    iss,
    sub,
    ...(sid === undefined ? {} : { sid }),
  }
}

function withMark(name: string): [string, string] {
  return [name, 'withheld']
}

function renamed(claims: Claims, names: RenamedClaims): Claims {
  const isRenamed = (name: string) => Object.hasOwn(names, name)
  const unchanged = Object.entries(claims).filter(([name]) => !isRenamed(name))
  const changed = Object.entries(claims).filter(([name]) => isRenamed(name))
  return Object.fromEntries([...unchanged, ...changed.map(([name, value]) => [names[name] ?? name, value] as const)])
}
