import type { SessionKey } from '../../core/names.ts'
import type { Keyring } from '../../core/seal.ts'
import { packRecord, unpackRecord } from './packed-record.ts'
import type { SessionRecord } from './record.ts'

/** The session and the audience that a record is sealed for. */
export interface Place {
  readonly key: SessionKey
  readonly audience: string
}

export interface SealedRecord {
  readonly sealed: Buffer
  /** The approximate size of the record in memory. */
  readonly unpackedBytes: number
}

/**
 * Seals a record for the store. It opens only for its own session and audience. So nobody can put
 * the record of one session in the place of another.
 */
export function sealRecord(keyring: Keyring, place: Place, record: SessionRecord): SealedRecord {
  const { bytes, unpackedBytes } = packRecord(record)
  return { sealed: keyring.seal(bytes, context(place)), unpackedBytes }
}

export interface OpenedRecord {
  readonly record: SessionRecord
  /** The one of the audiences that the record was sealed for. */
  readonly audience: string
  readonly unpackedBytes: number
}

/**
 * Opens a sealed record of one of these audiences.
 * @param onTokens see `unpackRecord`
 * @returns `undefined` when it is for another audience, the key is not configured, the bytes were
 * changed, or the format is unknown
 */
export function openRecord(
  keyring: Keyring,
  { key, audiences }: { readonly key: SessionKey; readonly audiences: readonly string[] },
  sealed: Uint8Array,
  onTokens?: (bytes: number) => void,
): OpenedRecord | undefined {
  for (const audience of audiences) {
    const packed = keyring.open(sealed, context({ key, audience }))
    const opened = packed && unpackRecord(packed, onTokens)
    if (opened !== undefined) return { ...opened, audience }
  }
  return undefined
}

function context({ key, audience }: Place): string {
  return `gatehouse session ${key} for ${audience}`
}
