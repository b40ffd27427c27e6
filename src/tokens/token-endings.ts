import { BoundedMap } from '../core/bounded-map.ts'
import type { Clock } from '../core/clock.ts'
import type { SessionKey, SidTag, SubTag } from '../core/names.ts'
import { tagOf } from '../session/record/record.ts'
import type { Tombstone } from '../session/store/store.ts'

const maxEndings = 100_000
const rememberMs = 24 * 60 * 60 * 1000
/** More sessions than these end at once when an administrator or a provider ends them. */
const mostRenewals = 16

export interface IssuedToken {
  /** The tags of its `sid` and `sub`. */
  readonly tags: readonly (SidTag | SubTag)[]
  /** Endings before this time do not count, in ms since the epoch. */
  readonly since: number
  /** Whether `since` is a time of the provider, whose clock may differ from that of the gateway. */
  readonly isByProvider: boolean
}

export interface TokenEnding {
  /** In ms since the epoch. */
  readonly at: number
  /** When the provider ended it, by its own clock, to compare with its other times. */
  readonly issued_at?: number | undefined
  /** The session that has ended. Absent: all of the tag. */
  readonly key?: SessionKey
  /** The ending of the same tag before this one, which counts if this one is a renewal. */
  before?: TokenEnding | undefined
  /** Whether the person has only signed in again is not known yet. */
  asking?: Promise<void> | undefined
  /** The person has signed in again, so the ending does not count. */
  isRenewal?: boolean
}

/** Remembers for a day which access tokens have ended. It outlives a reload, because they do. */
export class TokenEndings {
  readonly #clock: Clock
  readonly #isRenewed: (key: SessionKey) => Promise<boolean>
  readonly #byTag = new BoundedMap<SidTag | SubTag, TokenEnding>('token_endings', maxEndings)

  /** @param isRenewed whether a session has ended by a renewal: see `hasEndedBy` of `session` */
  constructor(parts: { readonly clock: Clock; readonly isRenewed: (key: SessionKey) => Promise<boolean> }) {
    this.#clock = parts.clock
    this.#isRenewed = parts.isRenewed
  }

  /**
   * Ends the tokens of the `sid` of these sessions, except when the person has signed in again in
   * the same browser: the session at the provider goes on then. Until that is known, requests with
   * these tokens wait. If it cannot be known, the tokens end.
   */
  noteEnded(keys: readonly SessionKey[]): void {
    for (const key of keys) {
      const tag = tagOf(key)
      const before = this.#effective(tag)
      // Two generations learn about it, for a while after a reload.
      if (before?.key === key) continue
      const ending: TokenEnding = { at: this.#clock.now(), key }
      this.#byTag.set(tag, ending)
      if (keys.length <= mostRenewals) this.#ask(key, ending, before)
    }
  }

  #ask(key: SessionKey, ending: TokenEnding, before: TokenEnding | undefined): void {
    ending.before = before
    ending.asking = this.#isRenewed(key)
      .catch(() => false)
      .then((isRenewal) => {
        ending.isRenewal = isRenewal
        ending.asking = undefined
        // Otherwise the endings of a busy person would be a list without an end.
        if (!isRenewal) ending.before = undefined
      })
  }

  /**
   * Ends the tokens of one `sid` or `sub` that were issued before a Logout Token. An order may be
   * repeated after an outage of the store, and the clock of the store may be ahead.
   */
  noteOrder({ tag, at, issued_at }: Pick<Tombstone, 'tag' | 'at' | 'issued_at'>): void {
    const before = this.#effective(tag)
    const known = Math.min(at, this.#clock.now())
    // An ending that may still turn out to be a renewal does not count any more.
    if (before === undefined || before.asking !== undefined || known > before.at || issued_at !== before.issued_at)
      this.#byTag.set(tag, {
        at: Math.max(known, before?.at ?? -Infinity),
        issued_at: laterOf(issued_at, before?.issued_at),
      })
  }

  /** The ending that a token is affected by. */
  find({ tags, since, isByProvider }: IssuedToken): TokenEnding | undefined {
    const now = this.#clock.now()
    return tags
      .map((tag) => this.#effective(tag))
      .find((ending) => {
        if (ending === undefined || now - ending.at >= rememberMs) return false
        return since <= (isByProvider ? (ending.issued_at ?? ending.at) : ending.at)
      })
  }

  /** The last ending of a tag that is not a renewal. */
  #effective(tag: SidTag | SubTag): TokenEnding | undefined {
    let ending = this.#byTag.get(tag)
    while (ending?.isRenewal === true) ending = ending.before
    return ending
  }
}

function laterOf(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.max(one, other)
}
