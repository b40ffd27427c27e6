import { GatewayError } from '../core/errors.ts'
import type { SessionKey } from '../core/names.ts'
import type { EndpointRequest } from '../http/endpoint-request.ts'
import { cookies, json, type Response } from '../http/response.ts'
import type { Instruments } from '../observe/instruments.ts'
import type { BoundCookie } from '../session/cookies/gateway-cookies.ts'
import type { SessionsOfAudience } from '../session/live/live-sessions.ts'
import type { BoundDevice, StoredSession } from '../session/record/record.ts'
import type { DeviceMetrics } from './misuse.ts'
import { type Challenges, proofAlgorithms, readProof, stringOf, verifyNewKey, verifyProof } from './proof.ts'

export interface DeviceParts extends Instruments {
  readonly sessions: Pick<SessionsOfAudience, 'read' | 'peek' | 'replace'>
  readonly boundCookie: BoundCookie
  readonly challenges: Challenges
  /** The path of the endpoints of the provider. */
  readonly prefix: string
  readonly deviceMetrics: DeviceMetrics
}

/** The header field with which a new session asks the browser for a key (§8.1). */
export function registrationHeader(
  key: SessionKey,
  { challenges, prefix }: Pick<DeviceParts, 'challenges' | 'prefix'>,
): Response['headers'] {
  const challenge = challenges.create(key, 'registration')
  const algorithms = proofAlgorithms.join(' ')
  return {
    'Secure-Session-Registration': `(${algorithms});path="${prefix}device-registration";challenge="${challenge}"`,
  }
}

/** The response to a proof: a new cookie, and how the browser renews it (§8.6). */
function boundResponse(
  key: SessionKey,
  identifier: string,
  { externalUrl }: Pick<EndpointRequest, 'externalUrl'>,
  { boundCookie, prefix }: DeviceParts,
): Response {
  const { name, attributes } = boundCookie
  const instructions = {
    session_identifier: identifier,
    refresh_url: `${prefix}device-refresh`,
    scope: { origin: externalUrl.origin, include_site: false, scope_specification: [] },
    credentials: [{ type: 'cookie', name, attributes }],
    // Otherwise a link on another site would open a page without the cookie. Other requests of
    // other sites do not renew it, because they have no cookies with SameSite.
    allowed_refresh_initiators: ['*'],
  }
  return json(200, instructions, cookies([boundCookie.set(key)]))
}

/** The response when a session has ended: the browser deletes its key (§8.6). */
function endedResponse(identifier: string): Response {
  return json(200, { session_identifier: identifier, continue: false })
}

/** The response that asks for a proof (§8.2). */
function challengeResponse(key: SessionKey, identifier: string, { challenges }: DeviceParts): Response {
  const challenge = challenges.create(key, 'refresh')
  const headers = { 'Secure-Session-Challenge': `"${challenge}";id="${identifier}"` }
  return json(403, { code: 'ERR_DEVICE_PROOF', detail: 'Sign the challenge.' }, headers)
}

/**
 * `POST device-registration`: binds a new session to the key of a browser, once. The challenge
 * names the session, because a browser may send no cookies here, and only its browser has it.
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

/**
 * `POST device-refresh`: a browser proves that it has the key, and gets a new cookie. It is no
 * activity, because browsers do it by themselves. The request needs no session cookie, because the
 * new cookie gives access only together with one.
 * @throws {GatewayError} `ERR_DEVICE_PROOF` for an invalid signature, after which the browser
 * deletes its key (§7.9); `ERR_STORE_UNAVAILABLE`
 */
export async function deviceRefresh(request: EndpointRequest, parts: DeviceParts): Promise<Response> {
  const { challenges, sessions, deviceMetrics } = parts
  const identifier = stringOf(request.deviceSession ?? '') ?? ''
  const key = challenges.sessionWith(identifier)
  const session = key && (await sessions.peek(key))
  const device = session?.record.device
  if (key === undefined || device === undefined) return endedResponse(identifier)
  if (request.deviceProof === undefined) return challengeResponse(key, identifier, parts)
  const proof = readProof(request.deviceProof)
  if (challenges.sessionOf(proof.challenge, 'refresh') !== key) return challengeResponse(key, identifier, parts)
  await verifyProof(proof, device)
  deviceMetrics.refreshed()
  return boundResponse(key, identifier, request, parts)
}
