import { errors } from 'jose'
import { GatewayError } from '../core/errors.ts'

/** The transmitter did not send what `signals.push_secret` says. */
export class AuthenticationFailed extends GatewayError {
  constructor() {
    super('ERR_SECURITY_EVENT_INVALID', 'Authorization is not that of signals.push_secret')
  }
}

/**
 * The `state` of a verification event is not the one of the last request (Shared Signals Framework
 * 1.0 §8.1.4.1).
 */
export class InvalidState extends GatewayError {
  constructor() {
    super('ERR_SECURITY_EVENT_INVALID', 'the "state" of the verification event is not the one that was sent')
  }
}

/** The error code of RFC 8935 §2.4 and RFC 8936 §2.6 for a rejected event. */
export function errorCode(error: GatewayError): string {
  if (error instanceof AuthenticationFailed) return 'authentication_failed'
  if (error instanceof InvalidState) return 'invalid_state'
  const { cause } = error
  if (cause instanceof errors.JWTClaimValidationFailed && cause.claim === 'iss') return 'invalid_issuer'
  if (cause instanceof errors.JWTClaimValidationFailed && cause.claim === 'aud') return 'invalid_audience'
  const isAboutKey =
    cause instanceof errors.JWKSNoMatchingKey ||
    cause instanceof errors.JWSSignatureVerificationFailed ||
    cause instanceof errors.JOSEAlgNotAllowed
  return isAboutKey ? 'invalid_key' : 'invalid_request'
}
