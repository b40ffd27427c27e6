import type { Keyring } from '../core/seal.ts'
import type { SessionStore } from '../session/store/store.ts'

/** What all replicas know about the stream that the gateway has made. Times are in ms. */
export interface StreamNote {
  readonly stream_id: string
  /** A hash of what the gateway wanted when it last changed the stream. */
  readonly wanted: string
  /** A hash of what the transmitter made of it. */
  readonly given: string
  /** The `state` of the last verification that was requested, and when. */
  readonly state?: string | undefined
  readonly requested_at?: number | undefined
  /** When an event with this `state` arrived. */
  readonly verified_at?: number | undefined
}

/** Longer than the pause between two checks of the stream, in ms. */
const ttlMs = 90 * 24 * 60 * 60 * 1000
/** How often a write is tried when other processes write at the same time. */
const attempts = 5

export interface StreamRecordParts {
  readonly store: Pick<SessionStore, 'readDocument' | 'writeDocument'>
  readonly keyring: Keyring
  /** See `audienceOf`. */
  readonly audience: string
}

/** The note about the stream of one provider, in the store. */
export class StreamRecord {
  readonly #parts: StreamRecordParts

  constructor(parts: StreamRecordParts) {
    this.#parts = parts
  }

  /**
   * `undefined` when there is none, or no key of `session.keys` opens it.
   * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`, here and below
   */
  async read(): Promise<StreamNote | undefined> {
    return (await this.#read()).note
  }

  /** Replaces the note by what `change` makes of it; `undefined` leaves it as it is. */
  async change(change: (note: StreamNote | undefined) => StreamNote | undefined): Promise<void> {
    const { store, keyring } = this.#parts
    for (let attempt = 0; attempt < attempts; attempt += 1) {
      const { note, version } = await this.#read()
      const next = change(note)
      if (next === undefined) return
      const sealed = keyring.seal(JSON.stringify(next), this.#name)
      if (await store.writeDocument(this.#name, { sealed, version }, ttlMs)) return
    }
  }

  /** A verification event has arrived. Returns whether its `state` is that of the last request. */
  async noteVerified(state: string, now: number): Promise<boolean> {
    let isOurs = false
    await this.change((note) => {
      isOurs = note?.state === state
      return note !== undefined && isOurs ? { ...note, verified_at: now } : undefined
    })
    return isOurs
  }

  async #read(): Promise<{ readonly note: StreamNote | undefined; readonly version: number }> {
    const document = await this.#parts.store.readDocument(this.#name)
    if (document === undefined) return { note: undefined, version: 0 }
    const plain = this.#parts.keyring.open(document.sealed, this.#name)
    const note = plain && (JSON.parse(plain.toString('utf8')) as StreamNote)
    return { note, version: document.version }
  }

  get #name(): string {
    return `gatehouse event stream for ${this.#parts.audience}`
  }
}
