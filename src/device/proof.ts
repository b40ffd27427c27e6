import { decodeJwt, EmbeddedJWK, importJWK, jwtVerify } from 'jose'
import { GatewayError, reason } from '../core/errors.ts'
import type { BoundDevice } from '../session/record/record.ts'

/** The algorithms of keys that sessions can be bound to. */
export const proofAlgorithms = ['ES256', 'RS256'] as const

/** The longest proof, in characters. One with an RSA key of 4,096 bits has about 2,200. */
const maxLengthBytes = 8 * 1024

/** A proof that is not verified yet. */
export interface Proof {
  readonly jwt: string
  /** What the browser signed. */
  readonly challenge: string
}

/**
 * Reads `Secure-Session-Response`, a string of RFC 9651 §3.3.3 that contains a JWT (§8.3).
 * @throws {GatewayError} `ERR_DEVICE_PROOF`, here and below
 */
export function readProof(field: string): Proof {
  const jwt = stringOf(field)
  if (jwt === undefined || jwt.length > maxLengthBytes) refuse('Secure-Session-Response is not a string with a JWT')
  try {
    const { jti } = decodeJwt(jwt)
    if (typeof jti === 'string') return { jwt, challenge: jti }
  } catch (error) {
    refuse(reason(error))
  }
  return refuse('it has no "jti"')
}

/** Verifies the proof of a new key, which it contains, and returns the key. */
export async function verifyNewKey({ jwt }: Proof): Promise<Pick<BoundDevice, 'alg' | 'jwk'>> {
  const { protectedHeader } = await verified(() => jwtVerify(jwt, EmbeddedJWK, options))
  const { alg, jwk } = protectedHeader
  // The values of a public key, and nothing that the client has added (RFC 7638 §3.2).
  const names = alg === 'ES256' ? ['kty', 'crv', 'x', 'y'] : ['kty', 'n', 'e']
  const values: Readonly<Record<string, unknown>> = jwk ?? {}
  const entries = names.map((name) => [name, String(values[name])])
  return { alg: alg as BoundDevice['alg'], jwk: Object.fromEntries(entries) as BoundDevice['jwk'] }
}

/** Verifies a proof with the key of a session. */
export async function verifyProof({ jwt }: Proof, { alg, jwk }: Pick<BoundDevice, 'alg' | 'jwk'>): Promise<void> {
  await verified(async () => jwtVerify(jwt, await importJWK(jwk, alg), { ...options, algorithms: [alg] }))
}

const options = { typ: 'dbsc+jwt', algorithms: [...proofAlgorithms], clockTolerance: 60 }

/**
 * The string of a field, without its parameters; `undefined` for another value. It is quoted (RFC
 * 9651 §3.3.3), but Chromium sends it without quotes.
 */
export function stringOf(field: string): string | undefined {
  return /^ *(?:"([\w.-]*)"|([\w.-]*)) *(?:;.*)?$/
    .exec(field)
    ?.slice(1)
    .find((text) => text !== undefined)
}

async function verified<T>(verify: () => Promise<T>): Promise<T> {
  try {
    return await verify()
  } catch (error) {
    return refuse(reason(error))
  }
}

function refuse(why: string): never {
  throw new GatewayError('ERR_DEVICE_PROOF', `the proof of the device is refused: ${why}`)
}
