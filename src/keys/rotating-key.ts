import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import type { KeyManagementAlgorithm } from '../config/model/provider.ts'
import type { IdentityAlgorithm } from '../config/model/upstream.ts'
import { sha256 } from '../core/random.ts'

/** What a key is for: it signs identities, or decrypts what a provider sends. */
export type KeyAlgorithm = IdentityAlgorithm | KeyManagementAlgorithm

/** A public key as a JWK (RFC 7517 §4). */
export type PublicJwk = Readonly<Record<string, string>>

/**
 * A private key in the form in which it is stored. `signs_from` is when it takes the place of its
 * predecessor, in ms since the epoch.
 */
export interface StoredKey {
  readonly alg: KeyAlgorithm
  readonly signs_from: number
  readonly jwk: Readonly<Record<string, string>>
}

export interface RotatingKey extends ScheduledKey {
  readonly privateKey: KeyObject
  readonly publicJwk: PublicJwk
}

export function toStored({ alg, usedFrom, privateKey }: RotatingKey): StoredKey {
  return { alg, signs_from: usedFrom, jwk: privateKey.export({ format: 'jwk' }) as StoredKey['jwk'] }
}

/** @throws {Error} when the JWK is not a private key */
export function fromStored({ alg, signs_from, jwk }: StoredKey): RotatingKey {
  return rotatingKey(alg, signs_from, createPrivateKey({ key: { ...jwk }, format: 'jwk' }))
}

/** A key that is used from a time in ms since the epoch. */
export function rotatingKey(alg: KeyAlgorithm, usedFrom: number, privateKey: KeyObject): RotatingKey {
  const publicJwk = publicJwkOf(privateKey)
  return { kid: thumbprint(publicJwk), alg, usedFrom, privateKey, publicJwk }
}

export function publicJwkOf(privateKey: KeyObject): PublicJwk {
  return createPublicKey(privateKey).export({ format: 'jwk' }) as PublicJwk
}

/** RFC 7638 §3.2 and RFC 8037 §2: the members that are required, in the order of their names. */
export function thumbprint(publicJwk: PublicJwk): string {
  const names = Object.keys(publicJwk).toSorted()
  return sha256(JSON.stringify(Object.fromEntries(names.map((name) => [name, publicJwk[name]]))))
}

/** The part of a key that its schedule depends on. */
export interface ScheduledKey {
  /** The thumbprint of the public key (RFC 7638). */
  readonly kid: string
  readonly alg: KeyAlgorithm
  /** When it takes the place of its predecessor, in ms since the epoch. */
  readonly usedFrom: number
}

/**
 * How long a key is stored before it is used, in ms: until then, all processes have read it. Where
 * it is published too, the copies of the key set at verifiers and caches have expired.
 */
export const publishedAheadMs = 3_600_000

/** The key that is used at the time `now`. `undefined` when there is none for this algorithm. */
export function keyInUse<K extends ScheduledKey>(keys: readonly K[], alg: KeyAlgorithm, now: number): K | undefined {
  const ordered = inOrder(keys, alg)
  // After the clock was set back, all keys may be for later.
  return ordered.findLast(({ usedFrom }) => usedFrom <= now) ?? ordered[0]
}

/**
 * From when a new key has to be used, in ms since the epoch, if one is due: the first one at once,
 * every other one after all processes know it.
 */
export function dueFrom(
  keys: readonly ScheduledKey[],
  alg: KeyAlgorithm,
  { rotateEveryMs, now }: { readonly rotateEveryMs: number; readonly now: number },
): number | undefined {
  const newest = inOrder(keys, alg).at(-1)
  if (newest === undefined) return now
  const publishFrom = newest.usedFrom + rotateEveryMs - publishedAheadMs
  return now < publishFrom ? undefined : now + publishedAheadMs
}

/**
 * Merges keys, without duplicates, retired ones and those for the far future, which come from a
 * wrong clock. A key is retired `retainedMs` after its successor took its place. So a source may be
 * an older copy.
 */
export function mergedKeys<K extends ScheduledKey>(
  sources: readonly (readonly K[])[],
  { now, retainedMs }: { readonly now: number; readonly retainedMs: number },
): readonly K[] {
  const keys = [...new Map(sources.flat().map((key) => [key.kid, key])).values()].filter(
    ({ usedFrom }) => usedFrom <= now + 2 * publishedAheadMs,
  )
  return keys
    .filter(
      ({ alg, usedFrom }) =>
        !keys.some((other) => other.alg === alg && other.usedFrom > usedFrom && other.usedFrom + retainedMs <= now),
    )
    .toSorted(byStart)
}

function inOrder<K extends ScheduledKey>(keys: readonly K[], alg: KeyAlgorithm): readonly K[] {
  return keys.filter((key) => key.alg === alg).toSorted(byStart)
}

/** Processes that know the same keys agree on their order. */
function byStart(one: ScheduledKey, other: ScheduledKey): number {
  return one.usedFrom - other.usedFrom || (one.kid < other.kid ? -1 : 1)
}
