import type { Claims } from '../core/claims.ts'
import type { SessionRecord } from './record.ts'

/** The claims of a session: userinfo, but who it is says the verified ID Token, never userinfo. */
export function claimsOfSession(userinfo: Claims, who: Pick<SessionRecord, 'iss' | 'sub' | 'sid'>): Claims {
  const { iss, sub, sid } = who
  const { sid: _, ...others } = userinfo
  return { ...others, iss, sub, ...(sid === undefined ? {} : { sid }) }
}
