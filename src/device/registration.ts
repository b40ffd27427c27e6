import { GatewayError } from '../core/errors.ts'
import type { SessionKey } from '../core/names.ts'
import type { EndpointRequest } from '../http/endpoint-request.ts'
import type { Response } from '../http/response.ts'
import type { BoundDevice, StoredSession } from '../session/record/record.ts'
import { boundResponse } from './instructions.ts'
import type { DeviceParts } from './parts.ts'
import { readProof, verifyNewKey } from './proof.ts'

/**
 * `POST device-registration`: binds a new session to the key of a browser. The challenge names the
 * session, because a browser may send no cookies here. Only the browser that got the session has
 * the challenge. A session that is bound is never bound to another key.
 * @throws {GatewayError} `ERR_DEVICE_PROOF`; `ERR_STORE_UNAVAILABLE`
 */
export async function deviceRegistration(request: EndpointRequest, parts: DeviceParts): Promise<Response> {
  const { challenges, clock, audit, deviceMetrics } = parts
  if (request.deviceProof === undefined) refuse('Secure-Session-Response is missing')
  const proof = readProof(request.deviceProof)
  // First, because it takes less time than the signature.
  const key = challenges.sessionOf(proof.challenge, 'registration')
  if (key === undefined) refuse('the challenge is too old, or not from this gateway')
  const { session, isNew } = await bind(key, { ...(await verifyNewKey(proof)), bound_at: clock.now() }, parts)
  if (isNew) {
    const { iss, sub, sid } = session.record
    audit.record('session.bound', { session: key, iss, sub, sid }, request.cause)
    deviceMetrics.bound()
  }
  return boundResponse(key, challenges.identifier(key), request, parts)
}

/** Stores the key, unless the session has one. */
async function bind(
  key: SessionKey,
  device: BoundDevice,
  { sessions }: DeviceParts,
): Promise<{ readonly session: StoredSession; readonly isNew: boolean }> {
  for (;;) {
    const session = await sessions.read(key)
    if (session === undefined) return refuse('the session has ended')
    const { device: present } = session.record
    if (present !== undefined) {
      // The browser repeats a registration whose response was lost.
      if (isSameKey(present, device)) return { session, isNew: false }
      return refuse('the session is bound to another key')
    }
    const replaced = await sessions.replace(session, { ...session.record, device })
    if (typeof replaced === 'object') return { session: replaced, isNew: true }
  }
}

function isSameKey(one: BoundDevice, other: BoundDevice): boolean {
  const names = Object.keys(one.jwk)
  return names.length === Object.keys(other.jwk).length && names.every((name) => one.jwk[name] === other.jwk[name])
}

function refuse(why: string): never {
  throw new GatewayError('ERR_DEVICE_PROOF', `the key of the device is refused: ${why}`)
}
