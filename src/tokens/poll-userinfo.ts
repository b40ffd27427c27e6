import { GatewayError } from '../core/errors.ts'
import { retryUntil, underLease } from '../session/live/lease.ts'
import type { StoredSession } from '../session/record/record.ts'
import { refresh, storeClaims, type UpkeepParts } from './refresh.ts'

/**
 * Reads UserInfo again, once across all replicas, and only for sessions that are in use. This
 * detects a revocation without a Logout Token. After a 401 the tokens are refreshed once. If
 * UserInfo rejects the new access token too, the session ends.
 * @param onReading called before UserInfo is read. With it, a reading that has begun does not
 * count.
 * @returns `undefined` when the session has ended
 * @throws {GatewayError} `ERR_PROVIDER_UNAVAILABLE`, `ERR_SIGN_IN_RESPONSE` or
 * `ERR_STORE_UNAVAILABLE`; the session is unchanged
 */
export async function pollUserinfo(
  seen: StoredSession,
  parts: UpkeepParts,
  onReading?: () => void,
): Promise<StoredSession | undefined> {
  const first = await readOnce(seen, parts, onReading)
  if (first.result !== 'unauthorized') return first.result

  const refreshed = seen.record.tokens.refresh_token === undefined ? seen : await refresh(seen, parts)
  if (refreshed === undefined) return undefined
  const second = await readOnce(refreshed, parts)
  if (second.result !== 'unauthorized') return second.result
  await parts.endings.endOne(seen.key, 'userinfo_401')
  return undefined
}

/**
 * Reads UserInfo, unless another replica is reading it. That replica announces its result, but a
 * doubtful session must wait for the result.
 */
async function readOnce(
  seen: StoredSession,
  parts: UpkeepParts,
  onReading?: () => void,
): Promise<{ readonly result: StoredSession | undefined | 'unauthorized' }> {
  const outcome = await retryUntil(async () => {
    const done = await underLease(seen.key, parts.store, () => readUnderLease(seen, parts, onReading))
    return done === undefined && seen.isDoubtful !== true ? { result: seen } : done
  }, parts.provider.config.timeoutMs * 2)
  if (outcome === undefined)
    throw new GatewayError(
      'ERR_PROVIDER_UNAVAILABLE',
      'another replica is still waiting for the provider to confirm this session',
    )
  return outcome
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
  return userinfo.kind === 'unauthorized' ? 'unauthorized' : storeClaims(current, userinfo.claims, parts)
}
