import type { ApiReading, Claims } from '../core/claims.ts'
import { GatewayError, reason } from '../core/errors.ts'
import type { TokenSet } from '../core/token-set.ts'
import type { Instruments } from '../observe/instruments.ts'
import { claimsOfIdToken } from '../provider/id-token.ts'
import type { Provider } from '../provider/provider.ts'
import type { SessionEndings } from '../session/live/endings.ts'
import { type LeaseStore, retryUntil, underLease } from '../session/live/lease.ts'
import type { Sessions } from '../session/live/live-sessions.ts'
import { readableNow, withApiClaims } from '../session/record/api-claims.ts'
import { claimsOfSession, type SessionRecord, type StoredSession } from '../session/record/record.ts'

/** How long storing a rotated refresh token is retried, in ms. Without it, the session is lost. */
const storeRetryMs = 15_000

export interface UpkeepParts extends Instruments {
  readonly sessions: Pick<Sessions, 'read' | 'replace'>
  readonly endings: Pick<SessionEndings, 'endOne'>
  readonly store: LeaseStore
  readonly provider: Pick<Provider, 'refresh' | 'userinfo' | 'apis' | 'config'>
}

type Refreshable = StoredSession & { readonly record: { readonly tokens: { readonly refresh_token: string } } }

/**
 * Refreshes the tokens of a session, once across all replicas. Concurrent callers share the result.
 * @returns `undefined` when the session has ended, before or by this refresh: `invalid_grant` shows
 * that it has expired at the provider
 * @throws {GatewayError} `ERR_PROVIDER_UNAVAILABLE`, `ERR_SIGN_IN_RESPONSE` or
 * `ERR_STORE_UNAVAILABLE`; the session is unchanged
 */
export function refresh(seen: StoredSession, parts: UpkeepParts): Promise<StoredSession | undefined> {
  return onceOfAll(seen, 'refresh', parts, refreshUnderLease, async () => {
    const current = await parts.sessions.read(seen.key)
    return current === undefined || hasOtherTokens(current, seen) ? { result: current } : undefined
  })
}

/**
 * Runs `work` under the lease of a session, unless another replica does.
 * @param resultOfOther the result when another replica has the lease; `undefined`: not yet
 */
async function onceOfAll<T>(
  seen: StoredSession,
  what: 'refresh' | 'confirm',
  parts: UpkeepParts,
  work: (seen: StoredSession, parts: UpkeepParts) => Promise<T>,
  resultOfOther: () => Promise<{ readonly result: T } | undefined>,
): Promise<T> {
  const outcome = await retryUntil(
    async () => (await underLease(seen.key, parts.store, () => work(seen, parts))) ?? resultOfOther(),
    parts.provider.config.timeoutMs * 2,
  )
  if (outcome !== undefined) return outcome.result
  const why = `another replica is still waiting for the provider to ${what} this session`
  throw new GatewayError('ERR_PROVIDER_UNAVAILABLE', why)
}

async function refreshUnderLease(seen: StoredSession, parts: UpkeepParts): Promise<StoredSession | undefined> {
  // Read again under the lease, because another replica may have used the refresh token.
  const current = await parts.sessions.read(seen.key)
  if (current === undefined || !isRefreshable(current) || hasOtherTokens(current, seen)) return current

  const refreshed = await parts.provider.refresh(current.record.tokens, current.record.sub)
  if (refreshed.kind === 'invalid_grant') {
    // A suspended process loses its lease. Another replica may have used the refresh token in the
    // meantime and stored a new one.
    const latest = await parts.sessions.read(current.key)
    if (latest === undefined || hasOtherTokens(latest, current)) return latest
    await parts.endings.endOne(current.key, 'invalid_grant')
    return undefined
  }
  // `session_expires_at` is the end of the session at the provider, which a key outlives.
  const { session_expires_at = current.record.session_expires_at } = current.record.key ? {} : refreshed
  if (session_expires_at !== undefined && session_expires_at <= parts.clock.now()) {
    await parts.endings.endOne(current.key, 'session_expiry')
    return undefined
  }
  const stored = await storeTokens(current, { ...refreshed, session_expires_at }, parts)
  const { iss, sub, sid } = current.record
  parts.audit.record('session.refreshed', { session: current.key, iss, sub, sid, still_there: stored !== undefined })
  // Tokens of another replica may be some minutes old. Their UserInfo is read when it is due.
  if (stored === undefined || !hasSameTokens(stored.record.tokens, refreshed.tokens)) return stored
  return withFreshClaims(stored, parts)
}

interface RefreshedTokens {
  readonly tokens: TokenSet
  /** When the session must end, as the provider says, in ms since the epoch. */
  readonly session_expires_at: number | undefined
}

/** Stores refreshed tokens, also after an outage: the old one cannot be used again. */
async function storeTokens(
  current: StoredSession,
  refreshed: RefreshedTokens,
  parts: UpkeepParts,
): Promise<StoredSession | undefined> {
  let failure: unknown
  const written = await retryUntil(async () => {
    try {
      return { session: await replaceTokens(current, refreshed, parts) }
    } catch (error) {
      failure = error
      return undefined
    }
  }, storeRetryMs)
  if (written !== undefined) return written.session
  parts.log.error('session.refresh_lost', {
    session: current.key,
    reason: reason(failure),
    hint: 'Check the session store. The new refresh token could not be stored, so the person must sign in again.',
  })
  throw new GatewayError('ERR_STORE_UNAVAILABLE', `refreshed tokens could not be stored: ${reason(failure)}`, {
    cause: failure,
  })
}

/**
 * Replaces the tokens that were refreshed, but no newer ones. A process that was suspended may have
 * lost the lease without knowing it, so the write is fenced by the version that was read before.
 * Tokens of another replica stay, unless the provider issued them earlier.
 */
async function replaceTokens(
  refreshed: StoredSession,
  { tokens, session_expires_at }: RefreshedTokens,
  { sessions }: UpkeepParts,
): Promise<StoredSession | undefined> {
  for (let target = refreshed; ;) {
    const outcome = await sessions.replace(target, {
      ...target.record,
      tokens,
      ...(session_expires_at !== undefined && { session_expires_at }),
    })
    if (outcome === 'gone') return undefined
    if (outcome !== 'conflict') return outcome
    const latest = await sessions.read(refreshed.key)
    if (latest === undefined) return undefined
    const isOvertaken = hasOtherTokens(latest, refreshed)
    if (isOvertaken && !wasIssuedLater(tokens, latest.record.tokens)) return latest
    target = latest
  }
}

/** Whether the provider issued the ID Token of `tokens` later: not if a refresh brought none. */
function wasIssuedLater(tokens: TokenSet, others: TokenSet): boolean {
  return issuedAt(tokens) > issuedAt(others)
}

/** In seconds since the epoch. */
function issuedAt({ id_token }: TokenSet): number {
  return Number(claimsOfIdToken(id_token)['iat'])
}

/**
 * Reads the claims after a refresh. After an error, the next poll or refresh reads them. If
 * UserInfo rejects the new access token, the session has ended at the provider.
 */
async function withFreshClaims(stored: StoredSession, parts: UpkeepParts): Promise<StoredSession | undefined> {
  try {
    const userinfo = await parts.provider.userinfo(stored.record.tokens, stored.record.sub)
    if (userinfo.kind === 'claims')
      return await storeClaims(stored, await readClaims(stored, userinfo.claims, parts), parts)
    await parts.endings.endOne(stored.key, 'userinfo_401')
    return undefined
  } catch (error) {
    parts.log.warn('session.userinfo_failed', { session: stored.key, reason: reason(error) })
    return stored
  }
}

/** The claims of UserInfo and the ID Token, and the readings of APIs. */
interface ReadClaims {
  readonly claims: Claims
  readonly readings: ReadonlyMap<string, ApiReading>
}

/** Reads the claims of APIs that are due: all of them with `isForced`. */
async function readClaims(
  { record }: StoredSession,
  userinfo: Claims,
  { provider, clock }: UpkeepParts,
  isForced = false,
): Promise<ReadClaims> {
  const { idTokenClaims: names, renamedClaims, claimsFrom } = provider.config
  const fromIdToken = { names, claims: claimsOfIdToken(record.tokens.id_token) }
  const claims = claimsOfSession(userinfo, record, fromIdToken, renamedClaims)
  const due = isForced ? claimsFrom : readableNow(claimsFrom, record, clock.now())
  const { access_token } = record.tokens
  return { claims, readings: await provider.apis.read(due, { sub: record.sub, access_token, claims }) }
}

/** Stores new claims; `undefined` when the session has ended in the meantime. */
async function storeClaims(
  stored: StoredSession,
  { claims, readings }: ReadClaims,
  parts: UpkeepParts,
): Promise<StoredSession | undefined> {
  const now = parts.clock.now()
  const record: SessionRecord = {
    ...stored.record,
    ...withApiClaims(claims, parts.provider.config.claimsFrom, readings, stored.record, now),
    userinfo_read_at: now,
  }
  const outcome = await parts.sessions.replace(stored, record)
  if (outcome === 'gone') return undefined
  return outcome === 'conflict' ? parts.sessions.read(stored.key) : outcome
}

/** Whether an API has accepted the access token before: it may have expired. */
function hasExpired({ record }: StoredSession, { readings }: ReadClaims): boolean {
  const { api_claims, tokens } = record
  return [...readings].some(
    ([id, reading]) =>
      reading.kind === 'unusable' && reading.isRejected && (api_claims?.[id]?.read_at ?? -1) >= tokens.obtained_at,
  )
}

function isRefreshable(session: StoredSession): session is Refreshable {
  return session.record.tokens.refresh_token !== undefined
}

/** Whether the tokens of `current` come from another refresh than those of `seen`. */
function hasOtherTokens(current: StoredSession, seen: StoredSession): boolean {
  return !hasSameTokens(current.record.tokens, seen.record.tokens)
}

function hasSameTokens(one: TokenSet, other: TokenSet): boolean {
  return (
    one.refresh_token === other.refresh_token &&
    one.access_token === other.access_token &&
    one.obtained_at === other.obtained_at
  )
}

/**
 * Reads UserInfo and the APIs of `claims_from` again, once across all replicas, for sessions in
 * use: this detects a revocation without a Logout Token. After a 401 the tokens are refreshed once.
 * If UserInfo rejects the new access token too, the session ends; if an API does, its claim is
 * withheld.
 * @param onReading called before UserInfo is read. With it, a reading that has begun does not
 * count.
 * @returns `undefined` when the session has ended
 * @throws {GatewayError} like {@link refresh}
 */
export async function pollUserinfo(
  seen: StoredSession,
  parts: UpkeepParts,
  onReading?: () => void,
): Promise<StoredSession | undefined> {
  const first = await readOnce(seen, parts, onReading)
  if (first !== 'unauthorized') return first

  const refreshed = seen.record.tokens.refresh_token === undefined ? seen : await refresh(seen, parts)
  if (refreshed === undefined) return undefined
  const second = await readOnce(refreshed, parts)
  if (second !== 'unauthorized') return second
  await parts.endings.endOne(seen.key, 'userinfo_401')
  return undefined
}

/**
 * Reads UserInfo, unless another replica does: it announces what has changed. Only a doubtful
 * session must wait for it.
 */
function readOnce(
  seen: StoredSession,
  parts: UpkeepParts,
  onReading?: () => void,
): Promise<StoredSession | undefined | 'unauthorized'> {
  const work = () => readUnderLease(seen, parts, onReading)
  return onceOfAll(seen, 'confirm', parts, work, async () => (seen.isDoubtful === true ? undefined : { result: seen }))
}

async function readUnderLease(
  seen: StoredSession,
  parts: UpkeepParts,
  onReading?: () => void,
): Promise<StoredSession | undefined | 'unauthorized'> {
  const current = await parts.sessions.read(seen.key)
  if (current === undefined) return undefined
  const isRead = current.record.userinfo_read_at > seen.record.userinfo_read_at
  if (isRead && onReading === undefined) return current
  onReading?.()
  const userinfo = await parts.provider.userinfo(current.record.tokens, current.record.sub)
  if (userinfo.kind === 'unauthorized') return 'unauthorized'
  const read = await readClaims(current, userinfo.claims, parts, onReading !== undefined)
  return isRefreshable(current) && hasExpired(current, read) ? 'unauthorized' : storeClaims(current, read, parts)
}
