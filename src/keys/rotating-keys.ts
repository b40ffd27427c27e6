import type { SigningKeysSettings } from '../config/settings.ts'
import { type Clock, isWithin } from '../core/clock.ts'
import { GatewayError, reason } from '../core/errors.ts'
import { pauses } from '../core/pauses.ts'
import { Repeating } from '../core/repeating.ts'
import type { Keyring } from '../core/seal.ts'
import { SingleFlight } from '../core/single-flight.ts'
import type { Log } from '../observe/log.ts'
import { changeDocument, type DocumentStore } from '../session/store/documents.ts'
import {
  dueFrom,
  fromStored,
  type KeyAlgorithm,
  keyInUse,
  mergedKeys,
  publishedAheadMs,
  type RotatingKey,
  type StoredKey,
  toStored,
} from './rotating-key.ts'

/** How often the keys are compared with those in the store, in ms. */
const synchronizeEveryMs = 30_000
/** A request for the key set reads the store first when the last attempt is older, in ms. */
const freshMs = 5_000

/** What keys are for, and what differs by it. */
export interface KeyPurpose<A extends KeyAlgorithm> {
  /** In the names of the documents in the store. */
  readonly name: 'signing keys' | 'decryption keys'
  /**
   * `sig`: a key is published before it is used and until it is retired. `enc`: only the key in use
   * is published, because senders choose one of those that they find (OpenID Connect Core §10.2.1).
   */
  readonly use: 'sig' | 'enc'
  /** How long a key is kept after its successor took its place, in ms. */
  readonly retainedMs: number
  readonly create: (alg: A, usedFrom: number) => RotatingKey | Promise<RotatingKey>
  /** The messages in the log. */
  readonly events: Readonly<Record<'created' | 'rotated' | 'notRead' | 'unreadable', string>>
}

export interface RotatingKeysParts<A extends KeyAlgorithm> {
  readonly purpose: KeyPurpose<A>
  readonly store: DocumentStore
  readonly keyring: Keyring
  /** See `audienceOf`. */
  readonly audience: string
  /** Where the keys are published: a URL below which their key set is. */
  readonly address: string
  readonly config: SigningKeysSettings
  /** The algorithms that are used. Without any, there are no keys. */
  readonly algorithms: ReadonlySet<A>
  readonly clock: Clock
  readonly log: Log
}

/**
 * Keys that replace themselves. All processes share them through the store, sealed: the first one
 * that finds that a key is due creates it. Each adds the keys that it knows to those in the store,
 * so no key is lost when the store is emptied, or restored from an older copy.
 *
 * There are two documents: one for the audience, and one for the address of the key set. The keys
 * therefore stay when the `client_id` changes, for example after a registration, and when
 * `external_url` changes.
 */
export class RotatingKeys<A extends KeyAlgorithm> {
  readonly #parts: RotatingKeysParts<A>
  readonly #running = new SingleFlight<'synchronize', void>()
  #keys: readonly RotatingKey[] = []
  /** When the keys were last read, or could not be read. */
  #triedAt = -Infinity
  readonly #repeating = new Repeating('keys', () => this.#keepUpToDate())
  /** The names of the documents that could not be opened. */
  readonly #unreadable = new Set<string>()

  constructor(parts: RotatingKeysParts<A>) {
    this.#parts = parts
  }

  start(): void {
    if (this.#parts.algorithms.size > 0) this.#repeating.wake()
  }

  stop(): void {
    void this.#repeating.stop()
  }

  async #keepUpToDate(): Promise<number> {
    await this.synchronize().catch((error: unknown) =>
      this.#parts.log.debug(this.#parts.purpose.events.notRead, { reason: reason(error) }),
    )
    return this.isReady ? synchronizeEveryMs : pauses.retryKeysMs
  }

  /** Adds the keys of the previous generation: a reload needs no store. */
  takeOver(other: RotatingKeys<A>): void {
    this.#keys = this.#merged([this.#keys, other.#keys], this.#parts.clock.now())
  }

  /** Whether there is a key for each algorithm that is used. */
  get isReady(): boolean {
    return [...this.#parts.algorithms].every((alg) => this.has(alg))
  }

  has(alg: A): boolean {
    return this.#keys.some((key) => key.alg === alg)
  }

  /** The key that is used now. `undefined` before the first one was read or created. */
  inUse(alg: A): RotatingKey | undefined {
    return keyInUse(this.#keys, alg, this.#parts.clock.now())
  }

  /** How long the keys in use have been used, in seconds, by algorithm. */
  ages(): readonly (readonly [labels: readonly string[], seconds: number])[] {
    const now = this.#parts.clock.now()
    return [...this.#parts.algorithms].flatMap((alg) => {
      const key = this.inUse(alg)
      return key === undefined ? [] : [[[alg], Math.max(0, now - key.usedFrom) / 1000] as const]
    })
  }

  /**
   * The key with this `kid`. An unknown one makes this process read the store, at most every 5 s.
   * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
   */
  async find(kid: string): Promise<RotatingKey | undefined> {
    const found = () => this.#keys.find((key) => key.kid === kid)
    if (found() === undefined) await this.#refresh()
    return found()
  }

  /**
   * The public keys that others have to know (RFC 7517 §5).
   * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`, but only before the keys are known
   */
  async published(): Promise<readonly object[]> {
    await this.#refresh().catch((error: unknown) => {
      if (!this.isReady) throw error
    })
    const { purpose, algorithms } = this.#parts
    const keys = purpose.use === 'sig' ? this.#keys : [...algorithms].flatMap((alg) => this.inUse(alg) ?? [])
    return keys.map(({ kid, alg, publicJwk }) => ({ ...publicJwk, kid, alg, use: purpose.use }))
  }

  /**
   * Resolves when there is a key for each algorithm.
   * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
   */
  async ready(): Promise<void> {
    if (!this.isReady) await this.synchronize()
  }

  /** Reads the store, unless that has happened just now. */
  async #refresh(): Promise<void> {
    if (!this.isReady || !isWithin(freshMs, this.#triedAt, this.#parts.clock.now())) await this.synchronize()
  }

  /**
   * Reads the keys in the store, and creates those that are due. Concurrent calls share the work.
   * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
   */
  synchronize(): Promise<void> {
    return this.#running.run('synchronize', async () => {
      try {
        await this.#synchronize()
      } finally {
        this.#triedAt = this.#parts.clock.now()
      }
    })
  }

  async #synchronize(): Promise<void> {
    const { purpose, store, clock, config, log, algorithms, audience, address } = this.#parts
    const [forAudience, atAddress] = [this.#nameFor(audience), this.#nameFor(address)]
    const ofAddress = this.#open(atAddress, (await store.readDocument(atAddress))?.sealed)
    let now = 0
    let known: readonly RotatingKey[] = []
    let created: readonly RotatingKey[] = []
    let next: readonly RotatingKey[] = []
    const hasAudience = await changeDocument(store, forAudience, this.#ttlMs, async (sealed) => {
      const stored = this.#open(forAudience, sealed)
      now = clock.now()
      known = this.#merged([stored, ofAddress, this.#keys], now)
      const due = [...algorithms].map(async (alg) => {
        const usedFrom = dueFrom(known, alg, { ...config, now })
        return usedFrom === undefined ? [] : [await purpose.create(alg, usedFrom)]
      })
      created = (await Promise.all(due)).flat()
      next = this.#merged([known, created], now)
      return this.#changed(forAudience, { sealed, stored, next })
    })
    const isStored =
      hasAudience &&
      (await changeDocument(store, atAddress, this.#ttlMs, (sealed) => {
        const stored = this.#open(atAddress, sealed)
        next = this.#merged([stored, next], now)
        return this.#changed(atAddress, { sealed, stored, next })
      }))
    // A key that is not in the store must not be used, because other processes do not know it.
    if (!isStored)
      throw new GatewayError('ERR_STORE_UNAVAILABLE', `other processes write the ${purpose.name} at the same time`)
    // Keys of the previous generation may have arrived in the meantime.
    this.#keys = this.#merged([next, this.#keys], now)
    for (const { alg, kid, usedFrom } of created)
      log.info(known.some((key) => key.alg === alg) ? purpose.events.rotated : purpose.events.created, {
        kid,
        alg,
        [purpose.use === 'sig' ? 'signs_from' : 'published_from']: new Date(usedFrom).toISOString(),
      })
  }

  #merged(sources: readonly (readonly RotatingKey[])[], now: number): readonly RotatingKey[] {
    return mergedKeys(sources, { now, retainedMs: this.#parts.purpose.retainedMs })
  }

  /** Each rotation writes the keys again. */
  get #ttlMs(): number {
    return 2 * this.#parts.config.rotateEveryMs + publishedAheadMs
  }

  #nameFor(scope: string): string {
    return `gatehouse ${this.#parts.purpose.name} for ${scope}`
  }

  /** The document with the next keys; `undefined` when it has them already. */
  #changed(name: string, { sealed, stored, next }: Document): Buffer | undefined {
    const { keyring } = this.#parts
    const isCurrent = sealed !== undefined && keyring.isCurrent(sealed) && haveSameIds(next, stored)
    return isCurrent ? undefined : keyring.seal(JSON.stringify(next.map(toStored)), name)
  }

  /**
   * Keys that cannot be opened are replaced, because no process can use them.
   * @throws {GatewayError} `ERR_STORE_UNAVAILABLE` when a newer version wrote them
   */
  #open(name: string, sealed: Uint8Array | undefined): readonly RotatingKey[] {
    if (sealed === undefined) return []
    const stored = this.#parts.keyring.openJson<readonly StoredKey[]>('signing_keys', sealed, name)
    if (stored === 'newer')
      throw new GatewayError(
        'ERR_STORE_UNAVAILABLE',
        `a newer version has stored the ${this.#parts.purpose.name} in another format`,
      )
    if (stored === undefined) {
      if (this.#unreadable.size === 0)
        this.#parts.log.warn(this.#parts.purpose.events.unreadable, {
          hint: 'The keys in the store are sealed with a key that is not in session.keys, so the gateway creates new ones. Check session.keys of all gateways.',
        })
      this.#unreadable.add(name)
      return []
    }
    this.#unreadable.delete(name)
    return stored.map(fromStored)
  }
}

/** A document as it is, and the keys that it should have. */
interface Document {
  readonly sealed: Uint8Array | undefined
  readonly stored: readonly RotatingKey[]
  readonly next: readonly RotatingKey[]
}

function haveSameIds(some: readonly RotatingKey[], others: readonly RotatingKey[]): boolean {
  const ids = new Set(others.map(({ kid }) => kid))
  return some.length === ids.size && some.every(({ kid }) => ids.has(kid))
}

/** How long others may keep the keys: shorter than {@link publishedAheadMs}. */
export const publicKeysMaxAge = { 'Cache-Control': 'public, max-age=300' } as const
