import type { EndpointRequest } from '../http/endpoint-request.ts'
import type { Response } from '../http/response.ts'
import { boundResponse, challengeResponse, endedResponse } from './instructions.ts'
import type { DeviceParts } from './parts.ts'
import { readProof, stringOf, verifyProof } from './proof.ts'

/**
 * `POST device-refresh`: a browser proves that it has the key of a session, and gets a new cookie.
 * It does not count as activity, because browsers do it by themselves. The request needs no session
 * cookie, because its response gives access only together with one.
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
