import type { SessionKey, SidTag, SubTag } from '../../core/names.ts'
import { sha256 } from '../../core/random.ts'
import { tagOf } from '../record.ts'

export interface SessionPlaces {
  readonly session: string
  readonly lease: string
  /** The tombstone of this one session. */
  readonly ended: string
  /** Those of its sid. */
  readonly index: string
  readonly tombstone: string
}

/**
 * Where things lie. What stands in braces decides the slot in a Cluster: one for each sid, and one
 * for each sub.
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
      session: `${slot}:s:${hash}`,
      lease: `${slot}:l:${hash}`,
      ended: `${slot}:t:${hash}`,
      index: this.sidIndex(tag),
      tombstone: this.tombstone(tag),
    }
  }

  /** A glob-style pattern for the places of all sessions. */
  anySession(): string {
    return `${this.#prefix.replace(/[\\*?[\]^-]/g, '\\$&')}{*}:s:*`
  }

  /**
   * The session that lies at a place; `undefined` when the place is not for a session, or not one
   * of ours.
   */
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

  /** Hashed: a name may be long, or say more than Redis has to know. */
  once(name: string): string {
    return `${this.#prefix}o:${sha256(name)}`
  }

  /** A random value that is there for as long as nothing is lost in its slot. */
  epoch(tag: string): string {
    return `${this.#prefix}{${tag}}:epoch`
  }

  /** A channel. */
  channel(name: string): string {
    return `${this.#prefix}${name}`
  }
}

/** The name of a session within its sid. */
export function hashOf(key: SessionKey): string {
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
