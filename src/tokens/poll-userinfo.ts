import type { StoredSession } from '../session/record.ts'
import { underLease } from './lease.ts'
import { refresh, storeClaims, type UpkeepParts } from './refresh.ts'

/**
 * Reads UserInfo again, once across all replicas, and only for sessions that are in use. This
 * detects a revocation without a Logout Token. After a 401 the tokens are refreshed once. If
 * UserInfo rejects the new access token too, the session ends.
 * @returns `undefined` when the session has ended
 */
export async function pollUserinfo(seen: StoredSession, parts: UpkeepParts): Promise<StoredSession | undefined> {
  const first = await underLease(seen.key, parts.store, () => readUnderLease(seen, parts))
  if (first === undefined) return seen // Another replica reads it, and its result will be announced.
  if (first.result !== 'unauthorized') return first.result

  const refreshed = seen.record.tokens.refresh_token === undefined ? seen : await refresh(seen, parts)
  if (refreshed === undefined) return undefined
  const second = await underLease(seen.key, parts.store, () => readUnderLease(refreshed, parts))
  if (second === undefined) return refreshed
  if (second.result !== 'unauthorized') return second.result
  await parts.endings.endOne(seen.key, 'userinfo_401')
  return undefined
}

async function readUnderLease(
  seen: StoredSession,
  parts: UpkeepParts,
): Promise<StoredSession | undefined | 'unauthorized'> {
  const current = await parts.sessions.read(seen.key)
  if (current === undefined || current.record.userinfo_read_at > seen.record.userinfo_read_at) return current
  const userinfo = await parts.provider.userinfo(current.record.tokens.access_token, current.record.sub)
  return userinfo.kind === 'unauthorized' ? 'unauthorized' : storeClaims(current, userinfo.claims, parts)
}
