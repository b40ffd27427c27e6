import { decodeJwt, EmbeddedJWK, importJWK, jwtVerify } from 'jose'
import type { Clock } from '../core/clock.ts'
import { GatewayError, reason } from '../core/errors.ts'
import type { SessionKey } from '../core/names.ts'
import type { Keyring } from '../core/seal.ts'
import type { BoundDevice } from '../session/record/record.ts'

/** What a proof is for. A challenge for one purpose is useless for another. */
export type ProofPurpose = 'registration' | 'refresh'

/** How long a challenge is valid, in ms. Making a key may take a TPM some seconds. */
const lifetimeMs = { registration: 5 * 60_000, refresh: 60_000 } as const satisfies Record<ProofPurpose, number>
/** How far the clocks of replicas may differ, in ms. */
const toleranceMs = 30_000
/** The longest challenge or session identifier, in characters. */
const maxLength = 400

/**
 * The challenges that browsers sign, and the names of sessions for browsers. Both are sealed, not
 * stored: any replica can open them, and only a replica can make one.
 */
export class Challenges {
  readonly #keyring: Keyring
  readonly #clock: Clock

  constructor({ keyring, clock }: { readonly keyring: Keyring; readonly clock: Clock }) {
    this.#keyring = keyring
    this.#clock = clock
  }

  create(key: SessionKey, purpose: ProofPurpose): string {
    return this.#seal(JSON.stringify({ key, at: this.#clock.now() } satisfies Challenge), `challenge for ${purpose}`)
  }

  /** The session of a challenge; `undefined` when it is not from this gateway, or is too old. */
  sessionOf(challenge: string, purpose: ProofPurpose): SessionKey | undefined {
    if (!isSealed(challenge)) return undefined
    const sealed = Buffer.from(challenge, 'base64url')
    const opened = this.#keyring.openJson<Challenge>('device_challenge', sealed, contextOf(`challenge for ${purpose}`))
    if (opened === undefined || opened === 'newer') return undefined
    const { key, at } = opened
    const age = this.#clock.now() - at
    return age >= -toleranceMs && age <= lifetimeMs[purpose] ? key : undefined
  }

  /** The name of a session in the browser (§8.6). It gives access to nothing. */
  identifier(key: SessionKey): string {
    return this.#seal(key, 'session identifier')
  }

  /** The session with this identifier; `undefined` when it is not from this gateway. */
  sessionWith(identifier: string): SessionKey | undefined {
    if (!isSealed(identifier)) return undefined
    const plain = this.#keyring.open(Buffer.from(identifier, 'base64url'), contextOf('session identifier'))
    return plain?.toString('utf8') as SessionKey | undefined
  }

  #seal(plain: string, use: string): string {
    return this.#keyring.seal(plain, contextOf(use)).toString('base64url')
  }
}

function contextOf(use: string): string {
  return `gatehouse device ${use}`
}

function isSealed(text: string): boolean {
  return text.length <= maxLength && /^[\w-]+$/.test(text)
}

interface Challenge {
  readonly key: SessionKey
  /** When it was created, in ms since the epoch. */
  readonly at: number
}

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
