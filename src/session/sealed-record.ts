import type { SessionKey } from '../core/names.ts'
import type { Keyring } from '../core/seal.ts'
import { packRecord, unpackRecord } from './packed-record.ts'
import type { SessionRecord } from './record.ts'

export interface Place {
  readonly key: SessionKey
  readonly audience: string
}

/** A record as a store may see it; `unpackedBytes` is about what it takes in memory. */
export interface SealedRecord {
  readonly sealed: Buffer
  readonly unpackedBytes: number
}

/**
 * A record as a store may see it. It opens only at its own place and for its own audience: two
 * records cannot be swapped in the store.
 */
export function sealRecord(keyring: Keyring, place: Place, record: SessionRecord): SealedRecord {
  const { bytes, unpackedBytes } = packRecord(record)
  return { sealed: keyring.seal(bytes, context(place)), unpackedBytes }
}

/**
 * `undefined`: sealed with a key that is not configured (any more), tampered with, or of another
 * format.
 */
export function openRecord(
  keyring: Keyring,
  place: Place,
  sealed: Uint8Array,
): { readonly record: SessionRecord; readonly unpackedBytes: number } | undefined {
  const plain = keyring.open(sealed, context(place))
  return plain && unpackRecord(plain)
}

function context({ key, audience }: Place): string {
  return `gatehouse session ${key} for ${audience}`
}
