import type { SessionKey } from '../core/names.ts'
import type { Keyring } from '../core/seal.ts'
import type { SessionRecord } from './record.ts'

const formatVersion = 1

export interface Place {
  readonly key: SessionKey
  readonly audience: string
}

/** A record as a store may see it. It opens only at its own place and for its own audience: two records cannot be swapped in the store. */
export function sealRecord(keyring: Keyring, place: Place, record: SessionRecord): Buffer {
  return keyring.seal(JSON.stringify({ v: formatVersion, ...record }), context(place))
}

/** `undefined`: sealed with a key that is not configured (any more), tampered with, or of another format. */
export function openRecord(keyring: Keyring, place: Place, sealed: Uint8Array): SessionRecord | undefined {
  const plain = keyring.open(sealed, context(place))
  if (plain === undefined) return undefined
  const { v, ...record } = JSON.parse(plain.toString('utf8')) as SessionRecord & { readonly v: number }
  return v === formatVersion ? record : undefined
}

function context({ key, audience }: Place): string {
  return `gatehouse session ${key} for ${audience}`
}
