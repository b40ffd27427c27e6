import type { KeptKey, SessionKey, SidTag, SubTag } from '../../../core/names.ts'
import { sha256 } from '../../../core/random.ts'
import { tagOf } from '../../record/record.ts'
import { personOf } from '../store.ts'

export interface SessionPlaces {
  readonly session: string
  readonly lease: string
  /** What is left to do when it has ended. */
  readonly job: string
  /** The tombstone of this one session. */
  readonly ended: string
  /** The index and the tombstone of its sid. */
  readonly index: string
  readonly tombstone: string
}

/**
 * The names of the keys in Redis. The hash tag in braces decides the slot in a Cluster: all keys of
 * one sid have one slot, and so do all keys of one sub.
 */
export class RedisKeys {
  readonly #prefix: string

  constructor(prefix: string) {
    this.#prefix = prefix
  }

  session(key: SessionKey): SessionPlaces {
    const tag = tagOf(key)
    const hash = hashOf(key)
    const slot = `${this.#prefix}{${tag}}`
    return {
      session: this.sessionAt(key),
      lease: `${slot}:l:${hash}`,
      job: `${slot}:c:${hash}`,
      ended: `${slot}:t:${hash}`,
      index: this.sidIndex(tag),
      tombstone: this.tombstone(tag),
    }
  }

  sessionAt(key: SessionKey): string {
    return `${this.#prefix}{${tagOf(key)}}:s:${hashOf(key)}`
  }

  /** A glob pattern for the keys of all sessions. */
  anySession(): string {
    return `${this.#prefix.replace(/[\\*?[\]^-]/g, '\\$&')}{*}:s:*`
  }

  /** The session of a key in Redis; `undefined` when the key is not that of a session. */
  keyAt(place: string): SessionKey | undefined {
    const [, tag, hash] = /^\{([\w-]{24})\}:s:([\w-]{32})$/.exec(place.slice(this.#prefix.length)) ?? []
    return tag === undefined ? undefined : (`${tag}:${hash}` as SessionKey)
  }

  sidIndex(tag: SidTag): string {
    return `${this.#prefix}{${tag}}:i`
  }

  subIndex(tag: SubTag): string {
    return `${this.#prefix}{${tag}}:u`
  }

  tombstone(tag: SidTag | SubTag): string {
    return `${this.#prefix}{${tag}}:t`
  }

  jti(tag: SidTag | SubTag, jti: string): string {
    return `${this.#prefix}{${tag}}:j:${jti}`
  }

  jobIndex(audience: string): string {
    return `${this.#prefix}{${audience}}:c`
  }

  kept(key: KeptKey): string {
    return `${this.keptIndex(key)}:${hashOf(key)}`
  }

  /** The kept requests of the person, except those that were sent. */
  keptIndex(key: KeptKey): string {
    return `${this.#prefix}{${personOf(key)}}:k`
  }

  /** The name is hashed, because it may be long, or confidential. */
  once(name: string): string {
    return `${this.#prefix}o:${sha256(name)}`
  }

  document(name: string): string {
    return `${this.#prefix}d:${sha256(name)}`
  }

  /** The key of a random value, the epoch. It changes when the keys of the server were lost. */
  epoch(tag: string): string {
    return `${this.#prefix}{${tag}}:epoch`
  }

  channel(name: string): string {
    return `${this.#prefix}${name}`
  }
}

/** The part of a key after its tag, for one session of a sid or one kept request of a person. */
export function hashOf(key: SessionKey | KeptKey): string {
  return key.slice(key.indexOf(':') + 1)
}

export function bySlot(keys: readonly SessionKey[]): Map<SidTag, SessionKey[]> {
  const slots = new Map<SidTag, SessionKey[]>()
  for (const key of keys) {
    const members = slots.get(tagOf(key))
    if (members) members.push(key)
    else slots.set(tagOf(key), [key])
  }
  return slots
}

/** The bytes as a `Buffer`, without a copy. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** A time to live for Redis, which takes whole milliseconds and no 0. */
export function atLeast1(ms: number): number {
  return Math.max(1, Math.ceil(ms))
}
