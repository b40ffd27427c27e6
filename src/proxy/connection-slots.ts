import { pauses } from '../core/pauses.ts'
import { FairQueue, Shares } from '../limits/fair-queue.ts'

/** After this many sweeps an exchange counts as a stream: after 4 to 5 seconds. */
const sweepsUntilStream = 5

/** How many exchanges with one upstream may be open in this process. */
export interface SlotLimits {
  /** Exchanges that are expected to end soon. */
  readonly maxConnections: number
  /** Exchanges that last: event streams, tunnels, and exchanges longer than some seconds. */
  readonly maxStreams: number
  /** Streams of one client. */
  readonly maxStreamsPerClient: number
}

/** Gets a slot as soon as it may use a connection. */
export interface SlotHolder {
  onSlot(slot: ConnectionSlot): void
}

/**
 * The right of one exchange to use a connection to the upstream.
 *
 *     waiting ──► request ──► stream
 *        └───────────┴───────────┴──► released
 */
export class ConnectionSlot {
  readonly #slots: ConnectionSlots
  /** In ms, on the clock of `performance.now`. 0: it has not waited. */
  #waitingSince = 0
  #waitedMs: number | undefined
  /** @internal of {@link ConnectionSlots}, like all fields below */
  readonly client: string
  readonly holder: SlotHolder
  state: 'waiting' | 'request' | 'stream' | 'released' = 'waiting'
  /** The number of the sweep before the slot got its connection. */
  sweep = 0
  /** The slots of requests are a list, from the oldest to the newest. */
  older: ConnectionSlot | undefined
  newer: ConnectionSlot | undefined

  constructor(slots: ConnectionSlots, client: string, holder: SlotHolder) {
    this.#slots = slots
    this.client = client
    this.holder = holder
  }

  get isWaiting(): boolean {
    return this.state === 'waiting'
  }

  /** How long it has waited for a connection, in ms. */
  get waitedMs(): number {
    if (this.#waitingSince === 0) return 0
    return this.#waitedMs ?? performance.now() - this.#waitingSince
  }

  /** Counts the exchange as a stream. `false`: the client, or all clients, have too many. */
  keepAsStream(): boolean {
    return this.#slots.keepAsStream(this)
  }

  /** Gives the connection, or the place in the queue, back. Further calls have no effect. */
  release(): void {
    this.#slots.release(this)
  }

  /** @internal */
  beginWait(): void {
    this.#waitingSince = performance.now()
  }

  /** @internal */
  endWait(): void {
    this.#waitedMs = this.waitedMs
  }
}

/**
 * Decides which exchanges may use a connection to the upstream. Requests share `maxConnections`.
 * Exchanges that last count as streams, which have their own limits. So event streams, tunnels,
 * long polls and slow transfers do not delay short requests. When there are too many streams, an
 * exchange that lasts still counts as a request.
 */
export class ConnectionSlots {
  readonly #queue: FairQueue<ConnectionSlot>
  readonly #streams: Shares
  #oldest: ConnectionSlot | undefined
  #newest: ConnectionSlot | undefined
  #sweeps = 0
  #sweeper: NodeJS.Timeout | undefined

  /** @param seats how many requests may wait for a connection */
  constructor({ maxConnections, maxStreams, maxStreamsPerClient }: SlotLimits, seats: number) {
    this.#queue = new FairQueue(maxConnections, seats)
    this.#streams = new Shares(maxStreams, maxStreamsPerClient)
  }

  /** How many requests wait. */
  get waiting(): number {
    return this.#queue.waiting
  }

  /** How many requests use a connection, without streams. */
  get requests(): number {
    return this.#queue.taken
  }

  get streams(): number {
    return this.#streams.taken
  }

  /** Whether a request of the client can neither start nor wait. */
  isFullFor(client: string): boolean {
    return this.#queue.isFullFor(client)
  }

  /**
   * Calls `onSlot` of the holder at once, or as soon as the client may use a connection. The holder
   * must release the slot, even if it still waits.
   */
  acquire(client: string, holder: SlotHolder): ConnectionSlot {
    const slot = new ConnectionSlot(this, client, holder)
    if (this.#queue.enter(client, slot)) this.#begin(slot)
    else slot.beginWait()
    return slot
  }

  /** @internal of {@link ConnectionSlot} */
  keepAsStream(slot: ConnectionSlot): boolean {
    if (slot.state !== 'request') return slot.state === 'stream'
    if (!this.#streams.hasFor(slot.client)) return false
    this.#streams.take(slot.client)
    slot.state = 'stream'
    this.#leaveRequests(slot)
    return true
  }

  /** @internal of {@link ConnectionSlot} */
  release(slot: ConnectionSlot): void {
    const { state } = slot
    if (state === 'released') return
    slot.state = 'released'
    if (state === 'request') this.#leaveRequests(slot)
    else if (state === 'stream') this.#streams.leave(slot.client)
    else {
      slot.endWait()
      this.#queue.withdraw(slot.client, slot)
    }
  }

  /** Starts all requests that wait, whatever the limits are. */
  startAll(): void {
    for (const slot of this.#queue.admitAll()) this.#begin(slot)
  }

  #leaveRequests(slot: ConnectionSlot): void {
    const { older, newer } = slot
    if (older === undefined) this.#oldest = newer
    else older.newer = newer
    if (newer === undefined) this.#newest = older
    else newer.older = older
    slot.older = slot.newer = undefined
    for (const next of this.#queue.leave(slot.client)) this.#begin(next)
  }

  #begin(slot: ConnectionSlot): void {
    slot.endWait()
    slot.state = 'request'
    slot.sweep = this.#sweeps
    slot.older = this.#newest
    if (this.#newest === undefined) this.#oldest = slot
    else this.#newest.newer = slot
    this.#newest = slot
    this.#sweeper ??= setTimeout(this.#sweep, pauses.findLongExchangesMs).unref()
    slot.holder.onSlot(slot)
  }

  readonly #sweep = (): void => {
    this.#sweeps += 1
    const isOld = (slot: ConnectionSlot) => this.#sweeps - slot.sweep >= sweepsUntilStream
    let slot = this.#oldest
    while (slot !== undefined && isOld(slot)) {
      const { newer }: ConnectionSlot = slot
      this.keepAsStream(slot)
      slot = newer
    }
    this.#sweeper = this.#oldest === undefined ? undefined : setTimeout(this.#sweep, pauses.findLongExchangesMs).unref()
  }
}
