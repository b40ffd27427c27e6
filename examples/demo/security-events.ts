// The demo provider as a transmitter of security events, with push delivery and one fixed stream.
import { createPrivateKey, sign, type JsonWebKey } from 'node:crypto'
import { systemClock } from '../../src/core/clock.ts'
import { randomToken } from '../../src/core/random.ts'
import { deliver, type Delivery } from './delivery.ts'

/** The application that receives the events. */
export interface EventReceiver {
  readonly url: string
  readonly aud: string
  /** The value of the header `Authorization`. */
  readonly authorization?: string | undefined
}

/** Transmitter Configuration Metadata (Shared Signals Framework 1.0 §7.1). */
export function ssfMetadata(issuer: string) {
  return {
    spec_version: '1_0',
    issuer,
    jwks_uri: `${issuer}/oauth/jwks`,
    delivery_methods_supported: ['urn:ietf:rfc:8935'],
  }
}

/** Tells the application that the account of a person was disabled (RISC 1.0 §2.3). */
export function pushAccountDisabled(
  { url, aud, authorization }: EventReceiver,
  { iss, sub, key }: { readonly iss: string; readonly sub: string; readonly key: JsonWebKey },
): Promise<Delivery> {
  const token = signed(key, {
    iss,
    aud,
    jti: randomToken(16),
    iat: Math.floor(systemClock.now() / 1000),
    sub_id: { format: 'iss_sub', iss, sub },
    events: { 'https://schemas.openid.net/secevent/risc/event-type/account-disabled': {} },
  })
  const headers = {
    'content-type': 'application/secevent+jwt',
    accept: 'application/json',
    ...(authorization !== undefined && { authorization }),
  }
  return deliver(url, headers, token)
}

function signed(key: JsonWebKey, payload: unknown): string {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const text = `${part({ alg: 'RS256', typ: 'secevent+jwt', kid: key['kid'] })}.${part(payload)}`
  const signature = sign('sha256', Buffer.from(text), createPrivateKey({ key, format: 'jwk' }))
  return `${text}.${signature.toString('base64url')}`
}
