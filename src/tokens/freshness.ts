import type { SessionConfig } from '../config/model.ts'
import type { StoredSession } from '../session/record.ts'

/** What a session's tokens and claims need before, or beside, the request at hand. */
export type Due =
  | 'nothing'
  /**
   * The store may have forgotten that the session ended: the request waits until the provider has
   * been asked.
   */
  | 'confirm'
  /** The access token is still good, but not for long: refresh, and let nobody wait. */
  | 'refresh_soon'
  /** The access token has expired: the request waits for the refresh. */
  | 'refresh_now'
  /** Userinfo was last read so long ago that it is to be read again; nobody waits. */
  | 'userinfo'

export type FreshnessConfig = Pick<SessionConfig, 'refreshBeforeMs' | 'pollUserinfoMs'>

/**
 * At the earliest when this share of the access token's life is left, however long `refresh_before`
 * is.
 */
const latestShare = 0.25

/** @param now in ms since the epoch */
export function whatIsDue({ key, record, isDoubtful }: StoredSession, config: FreshnessConfig, now: number): Due {
  if (isDoubtful === true) return 'confirm'
  const { tokens } = record
  if (tokens.refresh_token !== undefined && tokens.access_token_expires_at !== undefined) {
    if (now >= tokens.access_token_expires_at) return 'refresh_now'
    const lifetime = tokens.access_token_expires_at - tokens.obtained_at
    if (now >= tokens.access_token_expires_at - Math.min(config.refreshBeforeMs, lifetime * latestShare))
      return 'refresh_soon'
  }
  // Without a refresh token an expired access token says nothing about the person's session at the
  // provider.
  if (tokens.access_token_expires_at !== undefined && now >= tokens.access_token_expires_at) return 'nothing'
  if (config.pollUserinfoMs !== undefined && now >= record.userinfo_read_at + withJitter(config.pollUserinfoMs, key))
    return 'userinfo'
  return 'nothing'
}

/**
 * Up to a tenth shorter, by chance that the session's own key brings along: sessions that began
 * together are not polled together.
 */
function withJitter(interval: number, key: string): number {
  return interval * (1 - (key.charCodeAt(key.length - 2) % 16) / 160)
}
