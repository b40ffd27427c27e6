import type { JWTPayload } from 'jose'
import { GatewayError } from '../core/errors.ts'
import { isObject, type JsonObject } from '../core/json.ts'
import { stringClaim, verifySignedToken, type TokenExpectations } from './signed-token.ts'

export interface SecurityEventToken {
  readonly iss: string
  readonly jti: string
  /** In seconds since the epoch. */
  readonly iat: number
  /** Event type → what is known about the event. At least one. */
  readonly events: ReadonlyMap<string, JsonObject>
  /** `sub_id`: who the events are about (RFC 9493). Absent: each event says it itself. */
  readonly sub_id: JsonObject | undefined
}

const code = 'ERR_SECURITY_EVENT_INVALID'
/**
 * How long after `iat` a token is accepted, in seconds: a transmitter may keep it while the gateway
 * is away (RFC 8935 §4). Replays are noticed by `jti`.
 */
export const maxAgeSeconds = 7 * 24 * 60 * 60
/** The events of a token are about one change (RFC 8417 §2), so they are few. Each is audited. */
const maxEvents = 16

/**
 * Verifies a Security Event Token (RFC 8417 §2, Shared Signals Framework 1.0 §4).
 * @throws {GatewayError} `ERR_SECURITY_EVENT_INVALID`, or `ERR_PROVIDER_UNAVAILABLE` without keys
 */
export async function verifySecurityEvent(token: string, expected: TokenExpectations): Promise<SecurityEventToken> {
  const { typ, payload } = await verifySignedToken(token, expected, { code, lifetimeWithoutExp: maxAgeSeconds })
  // So no other kind of token of the same issuer is accepted (§4.1.1).
  if (typ !== 'secevent+jwt') reject(`"typ" is ${typ ?? 'missing'}, and not secevent+jwt`)
  if (payload.iat < expected.now / 1000 - maxAgeSeconds) reject('it was issued more than seven days ago')
  // §4.1.2: the subject is in `sub_id`.
  if ('sub' in payload) reject('"sub" is present')
  const jti = stringClaim(payload, 'jti', code) ?? reject('"jti" is missing')
  const { sub_id } = payload
  if (sub_id !== undefined && !isObject(sub_id)) reject('"sub_id" is not an object')
  return {
    iss: expected.issuer,
    jti,
    iat: payload.iat,
    events: eventsOf(payload),
    sub_id: sub_id as JsonObject | undefined,
  }
}

function eventsOf({ events }: JWTPayload): ReadonlyMap<string, JsonObject> {
  if (!isObject(events)) return reject('"events" is not an object')
  const entries = Object.entries(events)
  if (entries.length === 0) reject('"events" has no event')
  if (entries.length > maxEvents) reject(`"events" has more than ${maxEvents} events`)
  return new Map(
    entries.map(([type, event]) => [
      type,
      isObject(event) ? event : reject(`the event ${type.slice(0, 200)} is not an object`),
    ]),
  )
}

function reject(why: string): never {
  throw new GatewayError(code, `security event refused: ${why}`)
}
