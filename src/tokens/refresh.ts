import type { Claims } from '../core/claims.ts'
import { GatewayError, reason } from '../core/errors.ts'
import type { TokenSet } from '../core/token-set.ts'
import type { Audit } from '../observe/audit.ts'
import type { Log } from '../observe/log.ts'
import { claimsOfIdToken } from '../provider/id-token.ts'
import type { OpenidProvider } from '../provider/openid-provider.ts'
import type { SessionEndings } from '../session/endings.ts'
import type { SessionRecord, StoredSession } from '../session/record.ts'
import { claimsOfSession } from '../session/session-claims.ts'
import type { Sessions } from '../session/sessions.ts'
import { type LeaseStore, underLease, untilAnswered } from './lease.ts'

/**
 * How long a rotated refresh token is kept on offering to a store that does not answer, in ms: it
 * cannot be had again.
 */
const storeRetryMs = 15_000

export interface UpkeepParts {
  readonly sessions: Pick<Sessions, 'read' | 'replace'>
  readonly endings: Pick<SessionEndings, 'endOne'>
  readonly store: LeaseStore
  readonly provider: Pick<OpenidProvider, 'refresh' | 'userinfo' | 'config'>
  readonly clock: { now(): number }
  readonly log: Log
  readonly audit: Audit
}

type Refreshable = StoredSession & { readonly record: { readonly tokens: { readonly refresh_token: string } } }

/**
 * Refreshes a session's tokens: once across all replicas. Whoever comes second gets what the first
 * one brought. `undefined`: the session has ended, before or because of it (`invalid_grant`: that
 * is how an expiry at the provider shows).
 * @throws {GatewayError} `ERR_PROVIDER_UNAVAILABLE`, `ERR_SIGN_IN_ANSWER`, `ERR_STORE_UNAVAILABLE`;
 * the session is as it was
 */
export async function refresh(seen: StoredSession, parts: UpkeepParts): Promise<StoredSession | undefined> {
  const outcome = await untilAnswered(async () => {
    const done = await underLease(seen.key, parts.store, () => refreshUnderLease(seen, parts))
    if (done !== undefined) return { session: done.result }
    const current = await parts.sessions.read(seen.key)
    if (current === undefined || hasOtherTokens(current, seen)) return { session: current }
    return undefined
  }, parts.provider.config.timeoutMs * 2)
  if (outcome === undefined)
    throw new GatewayError(
      'ERR_PROVIDER_UNAVAILABLE',
      'another replica is still waiting for the provider to refresh this session',
    )
  return outcome.session
}

async function refreshUnderLease(seen: StoredSession, parts: UpkeepParts): Promise<StoredSession | undefined> {
  // Read again under the lease: another replica may have spent the refresh token that we saw.
  const current = await parts.sessions.read(seen.key)
  if (current === undefined || !isRefreshable(current) || hasOtherTokens(current, seen)) return current

  const refreshed = await parts.provider.refresh(current.record.tokens, current.record.sub)
  if (refreshed.kind === 'invalid_grant') {
    // A process that was suspended loses its lease; whoever had it meanwhile has spent the refresh
    // token, and stored a new one.
    const latest = await parts.sessions.read(current.key)
    if (latest === undefined || hasOtherTokens(latest, current)) return latest
    await parts.endings.endOne(current.key, 'invalid_grant')
    return undefined
  }
  const stored = await storeTokens(current, refreshed.tokens, parts)
  parts.audit.record('session.refreshed', {
    session: current.key,
    iss: current.record.iss,
    sub: current.record.sub,
    sid: current.record.sid,
    still_there: stored !== undefined,
  })
  // The tokens of another replica may be some minutes old: what the provider says of them is asked
  // when it is due.
  if (stored === undefined || !hasSameTokens(stored.record.tokens, refreshed.tokens)) return stored
  return withFreshClaims(stored, parts)
}

/**
 * Retries while the store does not answer, because the refresh token that the store holds is spent.
 */
async function storeTokens(
  current: StoredSession,
  tokens: TokenSet,
  parts: UpkeepParts,
): Promise<StoredSession | undefined> {
  let failure: unknown
  const written = await untilAnswered(async () => {
    try {
      return { session: await replaceTokens(current, tokens, parts) }
    } catch (error) {
      failure = error
      return undefined
    }
  }, storeRetryMs)
  if (written !== undefined) return written.session
  parts.log.error('session.refresh_lost', {
    session: current.key,
    reason: reason(failure),
    hint: 'the provider has rotated the refresh token, but the store did not take the new one; the person will have to sign in again',
  })
  throw new GatewayError('ERR_STORE_UNAVAILABLE', `refreshed tokens could not be stored: ${reason(failure)}`, {
    cause: failure,
  })
}

/**
 * Replaces the tokens that were refreshed, and never newer ones. The lease is no proof: a process
 * that is suspended for longer than the lease does not know that it lost the lease. So the write is
 * fenced by the version that was read before the refresh. Tokens that another replica stored in the
 * meantime stay, unless the provider issued them earlier than these.
 */
async function replaceTokens(
  refreshed: StoredSession,
  tokens: TokenSet,
  { sessions }: UpkeepParts,
): Promise<StoredSession | undefined> {
  for (let target = refreshed; ;) {
    const outcome = await sessions.replace(target, { ...target.record, tokens })
    if (outcome === 'gone') return undefined
    if (outcome !== 'conflict') return outcome
    const latest = await sessions.read(refreshed.key)
    if (latest === undefined) return undefined
    const isOvertaken = hasOtherTokens(latest, refreshed)
    if (isOvertaken && !wasIssuedLater(tokens, latest.record.tokens)) return latest
    target = latest
  }
}

/**
 * Whether the ID Token of `tokens` is newer by the provider's own clock. A refresh may bring no ID
 * Token; then it is not known.
 */
function wasIssuedLater(tokens: TokenSet, others: TokenSet): boolean {
  return issuedAt(tokens) > issuedAt(others)
}

/** In seconds since the epoch. */
function issuedAt({ id_token }: TokenSet): number {
  return Number(claimsOfIdToken(id_token, ['iat'])['iat'])
}

/**
 * New tokens, so new claims too if they can be had; if not, the next poll or refresh brings them.
 * An access token that is refused although it was just issued is that of a session which has ended
 * at the provider.
 */
async function withFreshClaims(stored: StoredSession, parts: UpkeepParts): Promise<StoredSession | undefined> {
  try {
    const userinfo = await parts.provider.userinfo(stored.record.tokens.access_token, stored.record.sub)
    if (userinfo.kind === 'claims') return await storeClaims(stored, userinfo.claims, parts)
    await parts.endings.endOne(stored.key, 'userinfo_401')
    return undefined
  } catch (error) {
    parts.log.warn('session.userinfo_failed', { session: stored.key, reason: reason(error) })
    return stored
  }
}

/** `undefined`: the session has ended meanwhile. */
export async function storeClaims(
  stored: StoredSession,
  userinfo: Claims,
  parts: UpkeepParts,
): Promise<StoredSession | undefined> {
  const names = parts.provider.config.idTokenClaims
  const fromIdToken = { names, claims: claimsOfIdToken(stored.record.tokens.id_token, names) }
  const record: SessionRecord = {
    ...stored.record,
    claims: claimsOfSession(userinfo, stored.record, fromIdToken),
    userinfo_read_at: parts.clock.now(),
  }
  const outcome = await parts.sessions.replace(stored, record)
  if (outcome === 'gone') return undefined
  return outcome === 'conflict' ? parts.sessions.read(stored.key) : outcome
}

function isRefreshable(session: StoredSession): session is Refreshable {
  return session.record.tokens.refresh_token !== undefined
}

/**
 * Whether another refresh than the one that `seen` comes from has brought the tokens of `current`.
 */
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
