import { reason } from '../core/errors.ts'
import type { Cause } from '../observe/audit.ts'
import type { SessionRecord } from '../session/record.ts'
import type { LogoutParts } from './parts.ts'

type Parts = Pick<LogoutParts, 'provider' | 'audit'>

/**
 * Ends the session at the provider without a browser, by `POST` with `id_token_hint`. An error is
 * only recorded, because the local session has already ended.
 * @returns `unknown` when the response does not show whether the session at the provider has ended
 */
export function endAtProvider(
  record: SessionRecord,
  parts: Parts,
  cause?: Cause,
): Promise<'ended' | 'unknown' | 'unsupported' | 'unreachable'> {
  const work = parts.provider.endSession(record.tokens.id_token)
  return recorded('provider.end_session', { record, parts, cause, work })
}

/** Revokes the refresh token, if the provider has a revocation endpoint (RFC 7009). */
export async function revokeTokens(record: SessionRecord, parts: Parts, cause?: Cause): Promise<void> {
  const { refresh_token } = record.tokens
  if (refresh_token === undefined) return
  await recorded('provider.revocation', { record, parts, cause, work: parts.provider.revoke(refresh_token) })
}

async function recorded<T extends string>(
  event: 'provider.end_session' | 'provider.revocation',
  about: {
    readonly record: SessionRecord
    readonly parts: Parts
    readonly cause: Cause | undefined
    readonly work: Promise<T>
  },
): Promise<T | 'unreachable'> {
  const { record, parts, cause, work } = about
  const { iss, sub, sid } = record
  try {
    const outcome = await work
    parts.audit.record(event, { iss, sub, sid, outcome }, cause)
    return outcome
  } catch (error) {
    parts.audit.record(event, { iss, sub, sid, outcome: 'unreachable', reason: reason(error) }, cause)
    return 'unreachable'
  }
}
