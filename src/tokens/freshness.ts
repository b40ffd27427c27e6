import type { SessionConfig } from '../config/model/session.ts'
import type { StoredSession } from '../session/record/record.ts'

/** What the tokens or claims of a session need, before or beside the current request. */
export type Due =
  | 'nothing'
  /** The store may have lost the end of the session. The request waits for the provider. */
  | 'confirm'
  /** The access token expires soon. The refresh runs beside the request. */
  | 'refresh_soon'
  /** The access token has expired. The request waits for the refresh. */
  | 'refresh_now'
  /** UserInfo is due. It is read beside the request. */
  | 'userinfo'

export type FreshnessConfig = Pick<SessionConfig, 'refreshBeforeMs' | 'pollUserinfoMs'>

/**
 * The largest share of the token's lifetime that is left when a refresh is due. A longer
 * `refresh_before` is reduced to it.
 */
const maxShareLeft = 0.25

/** Returns what is due for a session. `now` is in ms since the epoch. */
export function whatIsDue({ key, record, isDoubtful }: StoredSession, config: FreshnessConfig, now: number): Due {
  if (isDoubtful === true) return 'confirm'
  const { tokens } = record
  const { access_token_expires_at: expiresAt = Infinity } = tokens
  const refreshBeforeMs = Math.min(config.refreshBeforeMs, (expiresAt - tokens.obtained_at) * maxShareLeft)
  // The refresh token comes last, because it may have to be unpacked.
  if (now >= expiresAt - refreshBeforeMs && tokens.refresh_token !== undefined)
    return now >= expiresAt ? 'refresh_now' : 'refresh_soon'
  // Without a refresh token, an expired access token says nothing about the session at the
  // provider.
  if (now >= expiresAt) return 'nothing'
  if (config.pollUserinfoMs !== undefined && now >= record.userinfo_read_at + withJitter(config.pollUserinfoMs, key))
    return 'userinfo'
  return 'nothing'
}

/**
 * Makes an interval up to 10 % shorter, depending on the session key, so that sessions that began
 * together are not polled together.
 */
function withJitter(interval: number, key: string): number {
  return interval * (1 - (key.charCodeAt(key.length - 2) % 16) / 160)
}
