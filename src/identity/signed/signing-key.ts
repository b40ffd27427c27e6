import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import type { IdentityAlgorithm } from '../../config/model/upstream.ts'
import { sha256 } from '../../core/random.ts'

/**
 * The `typ` of a signed identity: verifiers of other tokens that check it reject it (RFC 8725
 * §3.11).
 */
export const identityType = 'gatehouse-identity+jwt'

/** A public key as a JWK (RFC 7517 §4). */
export type PublicJwk = Readonly<Record<'kty' | 'crv' | 'x', string>> & { readonly y?: string }

/** A private key in the form in which it is stored. `signs_from` is in ms since the epoch. */
export interface StoredKey {
  readonly alg: IdentityAlgorithm
  readonly signs_from: number
  readonly jwk: PublicJwk & { readonly d: string }
}

export interface SigningKey {
  /** The thumbprint of the public key (RFC 7638). */
  readonly kid: string
  readonly alg: IdentityAlgorithm
  /** When it takes the place of its predecessor, in ms since the epoch. */
  readonly signsFrom: number
  readonly privateKey: KeyObject
  readonly publicJwk: PublicJwk
  /** The encoded JOSE header of its tokens. */
  readonly header: string
}

/** Creates a key pair. `signsFrom` is in ms since the epoch. */
export function createSigningKey(alg: IdentityAlgorithm, signsFrom: number): SigningKey {
  const { privateKey } =
    alg === 'ES256' ? generateKeyPairSync('ec', { namedCurve: 'P-256' }) : generateKeyPairSync('ed25519')
  return keyOf(alg, signsFrom, privateKey)
}

export function toStored({ alg, signsFrom, privateKey }: SigningKey): StoredKey {
  return { alg, signs_from: signsFrom, jwk: privateKey.export({ format: 'jwk' }) as StoredKey['jwk'] }
}

/** @throws {Error} when the JWK is not a private key */
export function fromStored({ alg, signs_from, jwk }: StoredKey): SigningKey {
  return keyOf(alg, signs_from, createPrivateKey({ key: { ...jwk }, format: 'jwk' }))
}

function keyOf(alg: IdentityAlgorithm, signsFrom: number, privateKey: KeyObject): SigningKey {
  const { kty, crv, x, y } = createPublicKey(privateKey).export({ format: 'jwk' }) as unknown as PublicJwk
  const publicJwk = { kty, crv, x, ...(y !== undefined && { y }) }
  // RFC 7638 §3.2 and RFC 8037 §2: these members in this order.
  const kid = sha256(JSON.stringify({ crv, kty, x, ...(y !== undefined && { y }) }))
  return { kid, alg, signsFrom, privateKey, publicJwk, header: encoded({ alg, typ: identityType, kid }) }
}

/**
 * Signs a payload as a JWT. This takes some 50 µs. With Web Crypto, the work would move to another
 * thread, but each request would have to wait for a promise.
 */
export function signJwt({ alg, privateKey, header }: SigningKey, payload: object): string {
  const input = `${header}.${encoded(payload)}`
  // RFC 7518 §3.4: R and S, one after the other. Ed25519 has no separate hash.
  const signature = sign(alg === 'ES256' ? 'sha256' : null, Buffer.from(input), {
    key: privateKey,
    dsaEncoding: 'ieee-p1363',
  })
  return `${input}.${signature.toString('base64url')}`
}

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

/** The part of a key that its schedule depends on. */
export interface ScheduledKey {
  readonly kid: string
  readonly alg: IdentityAlgorithm
  /** In ms since the epoch. */
  readonly signsFrom: number
}

/**
 * How long a key is published before it signs, in ms: until then, all processes have read it, and
 * the copies of the key set at verifiers and caches have expired.
 */
export const publishedAheadMs = 3_600_000

/**
 * How long a key stays published after its successor signs, in ms: longer than the longest
 * `lifetime` (1h), because clocks differ.
 */
export const retainedMs = 2 * 3_600_000

/** The key that signs at the time `now`. `undefined` when there is no key for this algorithm. */
export function keyInUse<K extends ScheduledKey>(
  keys: readonly K[],
  alg: IdentityAlgorithm,
  now: number,
): K | undefined {
  const ordered = inOrder(keys, alg)
  // If the clock was set back, possibly no key has begun to sign.
  return ordered.findLast(({ signsFrom }) => signsFrom <= now) ?? ordered[0]
}

/**
 * When a new key has to begin to sign, in ms since the epoch, if one is due: the first one at once,
 * every other one after it was published.
 */
export function dueFrom(
  keys: readonly ScheduledKey[],
  alg: IdentityAlgorithm,
  { rotateEveryMs, now }: { readonly rotateEveryMs: number; readonly now: number },
): number | undefined {
  const newest = inOrder(keys, alg).at(-1)
  if (newest === undefined) return now
  const publishFrom = newest.signsFrom + rotateEveryMs - publishedAheadMs
  return now < publishFrom ? undefined : now + publishedAheadMs
}

/**
 * Merges keys, without duplicates, retired ones and those for the far future, which come from a
 * wrong clock. All tokens of a retired key have expired, because its successor has signed for long
 * enough. So a source may be an older copy.
 */
export function mergedKeys<K extends ScheduledKey>(sources: readonly (readonly K[])[], now: number): readonly K[] {
  const keys = [...new Map(sources.flat().map((key) => [key.kid, key])).values()].filter(
    ({ signsFrom }) => signsFrom <= now + 2 * publishedAheadMs,
  )
  return keys
    .filter(
      ({ alg, signsFrom }) =>
        !keys.some((other) => other.alg === alg && other.signsFrom > signsFrom && other.signsFrom + retainedMs <= now),
    )
    .toSorted(byStart)
}

function inOrder<K extends ScheduledKey>(keys: readonly K[], alg: IdentityAlgorithm): readonly K[] {
  return keys.filter((key) => key.alg === alg).toSorted(byStart)
}

/** Processes that know the same keys agree on their order. */
function byStart(one: ScheduledKey, other: ScheduledKey): number {
  return one.signsFrom - other.signsFrom || (one.kid < other.kid ? -1 : 1)
}
