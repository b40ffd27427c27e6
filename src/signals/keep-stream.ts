import type { SignalsConfig } from '../config/model/provider.ts'
import type { Clock } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import { randomToken, sha256 } from '../core/random.ts'
import type { Keyring } from '../core/seal.ts'
import type { Log } from '../observe/log.ts'
import {
  deliveryMethods,
  descriptionFor,
  findStream,
  permitsNoChange,
  type Stream,
  type StreamClient,
  TransmitterRefusal,
  type WantedStream,
} from '../provider/stream-client.ts'
import { changeDocument, type DocumentStore } from '../session/store/documents.ts'
import { requestedTypes } from './events.ts'

/** What all replicas know about the stream that the gateway has made. Times are in ms. */
export interface StreamNote {
  readonly stream_id: string
  /** A hash of the settings that the gateway sent when it last changed the stream. */
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

export interface StreamRecordParts {
  readonly store: DocumentStore
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
    return this.#open((await this.#parts.store.readDocument(this.#name))?.sealed)
  }

  /** Replaces the note by what `change` makes of it; `undefined` leaves it as it is. */
  async change(change: (note: StreamNote | undefined) => StreamNote | undefined): Promise<void> {
    const { store, keyring } = this.#parts
    await changeDocument(store, this.#name, ttlMs, (sealed) => {
      const next = change(this.#open(sealed))
      return next && keyring.seal(JSON.stringify(next), this.#name)
    })
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

  #open(sealed: Uint8Array | undefined): StreamNote | undefined {
    const note = sealed && this.#parts.keyring.openJson<StreamNote>('event_stream', sealed, this.#name)
    if (note === 'newer')
      throw new GatewayError('ERR_STORE_UNAVAILABLE', 'a newer version has stored the event stream in another format')
    return note
  }

  get #name(): string {
    return `gatehouse event stream for ${this.#parts.audience}`
  }
}

/** How often the stream is compared with the configuration, in ms. */
const checkEveryMs = 60 * 60 * 1000
/** How long a verification event may take, in ms. */
const verifiedWithinMs = 60_000
/** The least and the usual pause between requests for a verification event, in ms. */
const leastVerificationMs = 60_000
const verifyEveryMs = 24 * 60 * 60 * 1000

export interface KeepStreamParts {
  readonly config: Pick<SignalsConfig, 'delivery' | 'events' | 'audience' | 'pushSecret'>
  readonly streams: StreamClient
  readonly record: Pick<StreamRecord, 'read' | 'change'>
  /** The endpoint for push delivery. It also names the stream. */
  readonly receiverUrl: string
  readonly clock: Clock
  readonly log: Log
}

/** The stream as it is now, and when to look again. */
export interface KeptStream {
  readonly endpoint_url: string | undefined
  readonly nextCheckMs: number
}

/**
 * Makes the stream of the gateway at the transmitter what the configuration says (Shared Signals
 * Framework 1.0 §8.1), and requests verification events: in the process with the lease.
 */
export class StreamKeeper {
  readonly #parts: KeepStreamParts
  readonly #wanted: WantedStream
  #isFirst = true
  #found: Stream | undefined
  /** What was logged last, so that it is logged once. */
  #lastWarning: string | undefined

  constructor(parts: KeepStreamParts) {
    this.#parts = parts
    this.#wanted = wantedStream(parts)
  }

  /**
   * @param signal aborted when the lease is lost
   * @throws {GatewayError} `ERR_PROVIDER_UNAVAILABLE` or `ERR_STORE_UNAVAILABLE`
   */
  async keep(signal: AbortSignal): Promise<KeptStream> {
    const { stream, isChanged } = await this.#ensureStream(await this.#parts.record.read(), signal)
    const isEnabled = await this.#enable(stream)
    const isVerified = isEnabled ? await this.#verify(stream, isChanged || this.#isFirst) : true
    this.#isFirst = false
    this.#warnOfMismatch(stream)
    return { endpoint_url: stream.endpoint_url, nextCheckMs: isVerified ? checkEveryMs : verifiedWithinMs }
  }

  /** Finds the stream, and creates or updates it. */
  async #ensureStream(
    note: StreamNote | undefined,
    signal: AbortSignal,
  ): Promise<{ readonly stream: Stream; readonly isChanged: boolean }> {
    const { streams, record, log } = this.#parts
    const wanted = sha256(JSON.stringify(this.#wanted))
    const found = await this.#find(note?.stream_id)
    this.#found = found
    const known = note?.stream_id === found?.stream_id ? note : undefined
    const remember = (stream: Stream) =>
      record.change((before) => {
        const isSame = before?.stream_id === stream.stream_id
        return { ...(isSame ? before : {}), stream_id: stream.stream_id, wanted, given: hashOf(stream) }
      })
    if (found !== undefined && this.#isAsWanted(found, known?.wanted === wanted)) {
      if (known?.wanted !== wanted) await remember(found)
      return { stream: found, isChanged: false }
    }
    // A transmitter may leave out what it does not have, or permit no change.
    if (found !== undefined && known?.wanted === wanted && hashOf(found) === known.given)
      return { stream: found, isChanged: false }
    // Another process may have the lease, and create the stream.
    signal.throwIfAborted()
    const changed = found === undefined ? await this.#create() : await this.#change(found, known)
    // The response may differ from what the transmitter keeps.
    const stream = changed === found ? found : ((await streams.read(changed.stream_id)) ?? changed)
    this.#found = stream
    if (stream !== found)
      log.info(found === undefined ? 'signals.stream_created' : 'signals.stream_updated', { stream: stream.stream_id })
    await remember(stream)
    return { stream, isChanged: stream !== found }
  }

  /** Where the events of the stream that was found last are polled. */
  get pollUrl(): string | undefined {
    return this.#found?.endpoint_url
  }

  async #find(stream_id: string | undefined): Promise<Stream | undefined> {
    const { streams, receiverUrl } = this.#parts
    const own = stream_id === undefined ? undefined : await streams.read(stream_id)
    return own ?? findStream(await streams.streams(), { receiverUrl, stream_id })
  }

  /**
   * Updates a stream, or replaces one without a note, because it is unknown who has changed what.
   * @returns `found` itself when the transmitter permits no change
   */
  async #change(found: Stream, known: StreamNote | undefined): Promise<Stream> {
    try {
      return await this.#parts.streams.change(found.stream_id, this.#wanted, known === undefined ? 'PUT' : 'PATCH')
    } catch (error) {
      if (!permitsNoChange(error)) throw error
      this.#warn('signals.stream_not_updated', {
        stream: found.stream_id,
        hint: 'The transmitter permits no change of a stream, so this one stays as it is. Delete it at the transmitter, and the gateway creates one as configured. Or set signals.stream: existing.',
      })
      return found
    }
  }

  async #create(): Promise<Stream> {
    try {
      return await this.#parts.streams.create(this.#wanted)
    } catch (error) {
      if (!(error instanceof TransmitterRefusal) || error.statusOfResponse !== 409) throw error
      const why =
        'the transmitter permits no further stream: delete the other one there, or set signals.stream: existing'
      throw new GatewayError('ERR_PROVIDER_UNAVAILABLE', why, { cause: error })
    }
  }

  /** @param isKnown whether the gateway has sent `push_secret`, which cannot be read back */
  #isAsWanted({ method, endpoint_url, events_requested, description }: Stream, isKnown: boolean): boolean {
    const { config, receiverUrl } = this.#parts
    return (
      (isKnown || config.delivery === 'poll' || config.pushSecret === undefined) &&
      method === deliveryMethods[config.delivery] &&
      (config.delivery === 'poll' || endpoint_url === receiverUrl) &&
      this.#wanted.events_requested.toSorted().join(' ') === events_requested.toSorted().join(' ') &&
      // Some transmitters have no descriptions.
      (description === undefined || description === this.#wanted.description)
    )
  }

  /**
   * Resumes a paused stream, whose events wait, but no disabled one. Returns whether events can
   * arrive.
   */
  async #enable({ stream_id }: Stream): Promise<boolean> {
    const { streams, log } = this.#parts
    const status = await streams.status(stream_id)
    if (status === 'disabled') {
      this.#warn('signals.stream_disabled', {
        stream: stream_id,
        hint: 'No events arrive. Enable the stream at the transmitter.',
      })
      return false
    }
    if (status !== 'paused') return true
    await streams.enable(stream_id)
    log.info('signals.stream_enabled', { stream: stream_id })
    return true
  }

  /** @returns `false` while an event is expected */
  async #verify({ stream_id, min_verification_interval }: Stream, isNew: boolean): Promise<boolean> {
    const { streams, record, clock } = this.#parts
    const note = await record.read()
    const now = clock.now()
    const age = now - (note?.requested_at ?? -Infinity)
    const isVerified = note?.verified_at !== undefined
    if (note?.state !== undefined && !isVerified && age >= verifiedWithinMs)
      this.#warn('signals.not_verified', {
        stream: stream_id,
        hint: 'No verification event has arrived. Check that the transmitter reaches the gateway, and audience and push_secret.',
      })
    if (isVerified && this.#lastWarning?.startsWith('signals.not_verified') === true) this.#lastWarning = undefined
    const least = Math.max(min_verification_interval * 1000, leastVerificationMs)
    const pause = isNew || !isVerified ? least : Math.max(least, verifyEveryMs)
    if (age < pause) return isVerified
    const state = randomToken(16)
    // Before the request, because the event may arrive before the response.
    await record.change((before) => before && { ...before, state, requested_at: now, verified_at: undefined })
    if (await streams.requestVerification(stream_id, state)) return false
    await record.change((before) => before && { ...before, state: note?.state, verified_at: note?.verified_at })
    return true
  }

  /** Settings at the transmitter that the gateway cannot change. */
  #warnOfMismatch({ stream_id, aud, events_delivered }: Stream): void {
    const { config } = this.#parts
    if (aud.length > 0 && !aud.some((value) => config.audience.includes(value)))
      this.#warn('signals.other_audience', {
        stream: stream_id,
        aud: aud.join(' ').slice(0, 200),
        hint: 'Events of this stream will be refused. Write this value in signals.audience.',
      })
    else if (
      events_delivered !== undefined &&
      !this.#wanted.events_requested.some((type) => events_delivered.includes(type))
    )
      this.#warn('signals.no_events', {
        stream: stream_id,
        hint: 'The transmitter delivers none of the events that signals.events uses.',
      })
  }

  #warn(message: string, fields: Readonly<Record<string, string>>): void {
    const text = `${message} ${JSON.stringify(fields)}`
    if (text !== this.#lastWarning) this.#parts.log.warn(message, fields)
    this.#lastWarning = text
  }
}

function hashOf({ method, endpoint_url, events_requested, description }: Stream): string {
  return sha256(JSON.stringify([method, endpoint_url, events_requested.toSorted(), description]))
}

function wantedStream({ config, receiverUrl }: Pick<KeepStreamParts, 'config' | 'receiverUrl'>): WantedStream {
  const { delivery, pushSecret, events } = config
  const method = deliveryMethods[delivery]
  const ofPush = { endpoint_url: receiverUrl, ...(pushSecret !== undefined && { authorization_header: pushSecret }) }
  return {
    delivery: { method, ...(delivery === 'push' && ofPush) },
    events_requested: requestedTypes(events),
    description: descriptionFor(receiverUrl),
  }
}
