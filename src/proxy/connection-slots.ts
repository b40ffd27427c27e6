import { FairQueue, Shares } from '../limits/fair-queue.ts'

/** How often the slots of requests are looked through for old ones, in ms. */
const sweepMs = 1_000
/** After so many sweeps an exchange counts as a stream: after 4 to 5 seconds. */
const sweepsUntilStream = 5

/** How many exchanges with one upstream may be under way in this process. */
export interface SlotLimits {
  /** Exchanges that are expected to end soon. */
  readonly maxConnections: number
  /** Exchanges that last: event streams, tunnels, and whatever takes longer than some seconds. */
  readonly maxStreams: number
  /** Streams of one client. */
  readonly maxStreamsPerClient: number
}

/**
 * The right of one exchange to use a connection to the upstream.
 *
 *     new ──► waiting ──► request ──► stream
 *      └─────────┴───────────┴──────────┴──► released
 */
export class ConnectionSlot {
  /** A session, or the address of a client without one. */
  readonly client: string
  state: 'new' | 'waiting' | 'request' | 'stream' | 'released' = 'new'
  /** How long it waited for a connection, in ms. */
  waitedMs = 0
  /** @internal of {@link ConnectionSlots}: sends the request. */
  start: () => void = nothing
  /** @internal When it began to wait, in ms of the monotonic clock. */
  waitingSince = 0
  /** @internal The number of the sweep before it got its connection. */
  sweep = 0
  /** @internal The slots of requests are a list, from the oldest to the newest. */
  older: ConnectionSlot | undefined
  newer: ConnectionSlot | undefined

  constructor(client: string) {
    this.client = client
  }
}

/**
 * Decides who may use a connection to the upstream. Requests share `maxConnections`. Whatever lasts
 * moves to bounds of its own, so that event streams, tunnels, long polls and slow transfers do not
 * keep short requests waiting. An exchange that lasts and may not move, because its client has too
 * many streams, keeps its slot among the requests.
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

  /** Whether a request of the client could neither start nor wait. */
  isFullFor(client: string): boolean {
    return this.#queue.isFullFor(client)
  }

  /** Calls `start` at once, or as soon as the client may use a connection. */
  enter(slot: ConnectionSlot, start: () => void): void {
    slot.start = start
    if (this.#queue.enter(slot.client, slot)) {
      this.#begin(slot)
      return
    }
    slot.state = 'waiting'
    slot.waitingSince = performance.now()
  }

  /**
   * Makes a stream of a request. `false`: the client, or all clients together, have too many
   * streams.
   */
  keepAsStream(slot: ConnectionSlot): boolean {
    if (slot.state !== 'request') return slot.state === 'stream'
    if (!this.#streams.hasFor(slot.client)) return false
    this.#streams.take(slot.client)
    slot.state = 'stream'
    this.#leaveRequests(slot)
    return true
  }

  /**
   * The exchange needs its connection no more, or does not wait for one any more. May be called
   * again.
   */
  release(slot: ConnectionSlot): void {
    const { state } = slot
    if (state === 'new' || state === 'released') return
    slot.state = 'released'
    if (state === 'request') this.#leaveRequests(slot)
    else if (state === 'stream') this.#streams.leave(slot.client)
    else {
      slot.waitedMs = performance.now() - slot.waitingSince
      this.#queue.withdraw(slot.client, slot)
    }
  }

  /** Starts all requests that wait, whatever the limits are. */
  startAll(): void {
    this.#call(this.#queue.letAllIn())
  }

  #leaveRequests(slot: ConnectionSlot): void {
    const { older, newer } = slot
    if (older === undefined) this.#oldest = newer
    else older.newer = newer
    if (newer === undefined) this.#newest = older
    else newer.older = older
    slot.older = slot.newer = undefined
    this.#call(this.#queue.leave(slot.client))
  }

  #call(slots: readonly ConnectionSlot[]): void {
    for (const slot of slots) {
      slot.waitedMs = performance.now() - slot.waitingSince
      this.#begin(slot)
    }
  }

  #begin(slot: ConnectionSlot): void {
    slot.state = 'request'
    slot.sweep = this.#sweeps
    slot.older = this.#newest
    if (this.#newest === undefined) this.#oldest = slot
    else this.#newest.newer = slot
    this.#newest = slot
    this.#sweeper ??= setTimeout(this.#sweep, sweepMs).unref()
    slot.start()
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
    this.#sweeper = this.#oldest === undefined ? undefined : setTimeout(this.#sweep, sweepMs).unref()
  }
}

function nothing(): void {}
