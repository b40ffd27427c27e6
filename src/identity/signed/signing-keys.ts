import type { IdentityAlgorithm, UpstreamConfig } from '../../config/model/upstream.ts'
import type { SigningKeysSettings } from '../../config/settings.ts'
import { type Clock, isWithin } from '../../core/clock.ts'
import { GatewayError, reason } from '../../core/errors.ts'
import { Repeating } from '../../core/repeating.ts'
import type { Keyring } from '../../core/seal.ts'
import { SingleFlight } from '../../core/single-flight.ts'
import type { EndpointRequest } from '../../http/endpoint-request.ts'
import { json, type Response } from '../../http/response.ts'
import type { Log } from '../../observe/log.ts'
import { changeDocument, type DocumentStore } from '../../session/store/documents.ts'
import {
  createSigningKey,
  dueFrom,
  fromStored,
  keyInUse,
  mergedKeys,
  publishedAheadMs,
  type SigningKey,
  type StoredKey,
  toStored,
} from './signing-key.ts'

/** How often the keys are compared with those in the store, in ms. */
const synchronizeEveryMs = 30_000
/** How often the keys are read while one is missing, in ms. */
const retryMs = 1_000
/** A request for the key set reads the store first when the last attempt is older, in ms. */
const freshMs = 5_000

export interface SigningKeysParts {
  readonly store: DocumentStore
  readonly keyring: Keyring
  /** See `audienceOf`. */
  readonly audience: string
  readonly config: SigningKeysSettings
  /** The algorithms that upstreams use. Without any, there are no keys. */
  readonly algorithms: ReadonlySet<IdentityAlgorithm>
  readonly clock: Clock
  readonly log: Log
}

/** The algorithms of the signed identities of these upstreams. */
export function algorithmsOf(
  upstreams: readonly Pick<UpstreamConfig, 'signedIdentity'>[],
): ReadonlySet<IdentityAlgorithm> {
  return new Set(upstreams.flatMap(({ signedIdentity }) => signedIdentity?.algorithm ?? []))
}

/**
 * The keys that sign identities. All processes share them through the store, sealed: the first one
 * that finds that a key is due creates it. Each adds the keys that it knows to those in the store,
 * so no key is lost when the store is emptied, or restored from an older copy.
 */
export class SigningKeys {
  readonly #parts: SigningKeysParts
  readonly #running = new SingleFlight<'synchronize', void>()
  #keys: readonly SigningKey[] = []
  /** When the keys were last read, or could not be read. */
  #triedAt = -Infinity
  readonly #repeating = new Repeating('signing_keys', () => this.#keepUpToDate())
  #isUnreadable = false

  constructor(parts: SigningKeysParts) {
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
      this.#parts.log.debug('signing_keys.not_read', { reason: reason(error) }),
    )
    return this.isReady ? synchronizeEveryMs : retryMs
  }

  /** Adds the keys of the previous generation, with the same audience: a reload needs no store. */
  takeOver(other: SigningKeys): void {
    this.#keys = mergedKeys([this.#keys, other.#keys], this.#parts.clock.now())
  }

  /** Whether there is a key for each algorithm that upstreams use. */
  get isReady(): boolean {
    return [...this.#parts.algorithms].every((alg) => this.has(alg))
  }

  has(alg: IdentityAlgorithm): boolean {
    return this.#keys.some((key) => key.alg === alg)
  }

  /** The key that signs now. `undefined` before the first one was read or created. */
  inUse(alg: IdentityAlgorithm): SigningKey | undefined {
    return keyInUse(this.#keys, alg, this.#parts.clock.now())
  }

  /** How long the keys that sign now have done so, in seconds, by algorithm. */
  ages(): readonly (readonly [labels: readonly string[], seconds: number])[] {
    const now = this.#parts.clock.now()
    return [...this.#parts.algorithms].flatMap((alg) => {
      const key = this.inUse(alg)
      return key === undefined ? [] : [[[alg], Math.max(0, now - key.signsFrom) / 1000] as const]
    })
  }

  /**
   * The public keys of all tokens that are valid or will be soon, as a JWK Set (RFC 7517 §5).
   * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`, but only before the keys are known
   */
  async published(): Promise<{ readonly keys: readonly object[] }> {
    if (!this.isReady || !isWithin(freshMs, this.#triedAt, this.#parts.clock.now()))
      await this.synchronize().catch((error: unknown) => {
        if (!this.isReady) throw error
      })
    return { keys: this.#keys.map(({ kid, alg, publicJwk }) => ({ ...publicJwk, kid, alg, use: 'sig' })) }
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
    const { store, keyring, clock, config, log, algorithms } = this.#parts
    let now = 0
    let known: readonly SigningKey[] = []
    let created: readonly SigningKey[] = []
    let next: readonly SigningKey[] = []
    const isStored = await changeDocument(store, this.#name, this.#ttlMs, (sealed) => {
      const stored = sealed === undefined ? [] : this.#open(sealed)
      now = clock.now()
      known = mergedKeys([stored, this.#keys], now)
      created = [...algorithms].flatMap((alg) => {
        const signsFrom = dueFrom(known, alg, { ...config, now })
        return signsFrom === undefined ? [] : [createSigningKey(alg, signsFrom)]
      })
      next = mergedKeys([known, created], now)
      const isCurrent = sealed !== undefined && keyring.isCurrent(sealed) && haveSameIds(next, stored)
      return isCurrent ? undefined : this.#seal(next)
    })
    // A key that is not in the store must not sign, because other processes cannot publish it.
    if (!isStored)
      throw new GatewayError('ERR_STORE_UNAVAILABLE', 'other processes write the signing keys at the same time')
    // Keys of the previous generation may have arrived in the meantime.
    this.#keys = mergedKeys([next, this.#keys], now)
    for (const { alg, kid, signsFrom } of created)
      log.info(known.some((key) => key.alg === alg) ? 'signing_key.rotated' : 'signing_key.created', {
        ...{ kid, alg },
        signs_from: new Date(signsFrom).toISOString(),
      })
  }

  /** Each rotation writes the keys again. */
  get #ttlMs(): number {
    return 2 * this.#parts.config.rotateEveryMs + publishedAheadMs
  }

  get #name(): string {
    return `gatehouse signing keys for ${this.#parts.audience}`
  }

  #seal(keys: readonly SigningKey[]): Buffer {
    return this.#parts.keyring.seal(JSON.stringify(keys.map(toStored)), this.#name)
  }

  /**
   * Keys that cannot be opened are replaced, because nobody could use them.
   * @throws {GatewayError} `ERR_STORE_UNAVAILABLE` when a newer version wrote them
   */
  #open(sealed: Uint8Array): readonly SigningKey[] {
    const stored = this.#parts.keyring.openJson<readonly StoredKey[]>('signing_keys', sealed, this.#name)
    if (stored === 'newer')
      throw new GatewayError('ERR_STORE_UNAVAILABLE', 'a newer version has stored the signing keys in another format')
    if (stored === undefined) {
      if (!this.#isUnreadable)
        this.#parts.log.warn('signing_keys.unreadable', {
          hint: 'The keys in the store are sealed with a key that is not in session.keys, so the gateway creates new ones. Check session.keys of all gateways.',
        })
      this.#isUnreadable = true
      return []
    }
    this.#isUnreadable = false
    return stored.map(fromStored)
  }
}

function haveSameIds(some: readonly SigningKey[], others: readonly SigningKey[]): boolean {
  const ids = new Set(others.map(({ kid }) => kid))
  return some.length === ids.size && some.every(({ kid }) => ids.has(kid))
}

export interface JwksParts {
  readonly signingKeys: Pick<SigningKeys, 'published'>
}

/** How long verifiers may keep the keys, in seconds: shorter than {@link publishedAheadMs}. */
const maxAge = 300

/** `GET jwks.json`: the public keys (RFC 7517 §5). Throws `ERR_STORE_UNAVAILABLE`. */
export async function jwks(_request: EndpointRequest, { signingKeys }: JwksParts): Promise<Response> {
  return json(200, await signingKeys.published(), { 'Cache-Control': `public, max-age=${maxAge}` })
}
