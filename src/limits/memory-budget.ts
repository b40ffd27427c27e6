import { totalmem } from 'node:os'
import type { Duplex } from 'node:stream'
import type { Metrics } from '../observe/metrics.ts'
import type { RejectedClients } from './rejected-clients.ts'

/**
 * The share of the memory of this process that unread responses may take.
 */
const shareOfMemory = 1 / 4
/**
 * How often the size of the buffers is added up, in ms. A connection buffers some 200 KB at most,
 * so little is added between two checks.
 */
const everyMs = 100
/** Requests are served again when the buffers take less than this part of the budget. */
const recovered = 0.75
/**
 * A client counts as stalled when it reads less than this, in bytes, in `stalledMs`. The number
 * doubles with each `stalledMs` in which the budget is exceeded, and halves again afterwards. So
 * clients that read slowly cannot keep the budget exceeded.
 */
const readingBytes = 1024
const stalledMs = 1000
/** How often the number is doubled at most: to 1 GiB. */
const maxDoublings = 20

interface Watched {
  /**
   * How many bytes the client had read when it was last seen reading.
   */
  readBytes: number
  /** When it was last seen reading, in ms, monotonic. */
  readAt: number
}

/** A client's socket, of TCP or TLS. */
export type ClientSocket = Duplex & { readonly bytesWritten: number; readonly remoteAddress?: string | undefined }

export interface MemoryBudgetParts {
  readonly rejectedClients: Pick<RejectedClients, 'note'>
  /** In ms, monotonic. */
  readonly now?: () => number
}

/**
 * The memory that this process may use, in bytes: its part of the limit of the container (cgroup),
 * or of the memory of the machine.
 * @param processes how many processes share the memory
 */
export function processMemory(processes: number): number {
  // Without a limit it is 0, or more than the memory of the machine.
  const limit = process.constrainedMemory()
  const all = limit > 0 ? Math.min(limit, totalmem()) : totalmem()
  return all / processes
}

/**
 * Limits what the gateway buffers for all clients together, so that clients that do not read their
 * responses cannot exhaust the memory. Beyond the budget, the gateway rejects requests for
 * applications (503). It closes connections whose clients do not read, the largest buffers first.
 */
export class MemoryBudget {
  readonly #bytes: number
  readonly #rejectedClients: Pick<RejectedClients, 'note'>
  readonly #now: () => number
  readonly #watched = new Map<ClientSocket, Watched>()
  #buffered = 0
  #isExceeded = false
  /** How long the budget has been exceeded, less the time since then, in ms. */
  #exceededMs = 0
  #checkedAt = 0
  #timer: NodeJS.Timeout | undefined

  /** @param memoryBytes the memory of the process, from {@link processMemory} */
  constructor(memoryBytes: number, { rejectedClients, now = () => performance.now() }: MemoryBudgetParts) {
    this.#bytes = memoryBytes * shareOfMemory
    this.#rejectedClients = rejectedClients
    this.#now = now
  }

  /** Whether requests for applications must be rejected now. */
  get isExceeded(): boolean {
    return this.#isExceeded
  }

  /** Counts the buffer of a connection until it is closed. */
  watch(socket: ClientSocket): void {
    this.#watched.set(socket, { readBytes: 0, readAt: this.#now() })
    socket.once('close', () => this.#watched.delete(socket))
    this.#timer ??= setInterval(() => this.check(), everyMs).unref()
  }

  /** Adds up the buffers, and closes connections if they exceed the budget. Runs regularly. */
  check(): void {
    const now = this.#now()
    const required = this.#requiredBytes(now)
    let buffered = 0
    for (const [socket, watched] of this.#watched) {
      buffered += socket.writableLength
      const readBytes = socket.bytesWritten - socket.writableLength
      if (socket.writableLength === 0 || readBytes - watched.readBytes >= required) {
        watched.readBytes = readBytes
        watched.readAt = now
      }
    }
    this.#buffered = buffered
    const isTooMuch = buffered > this.#bytes * (this.#isExceeded ? recovered : 1)
    if (isTooMuch) this.#makeRoom(now)
    this.#isExceeded = isTooMuch && this.#buffered > this.#bytes * recovered
    if (this.#watched.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** How many bytes a client has to read in `stalledMs`. */
  #requiredBytes(now: number): number {
    const passedMs = now - this.#checkedAt
    this.#checkedAt = now
    const exceededMs = this.#exceededMs + (this.#isExceeded ? passedMs : -passedMs)
    this.#exceededMs = Math.min(Math.max(exceededMs, 0), maxDoublings * stalledMs)
    return readingBytes * 2 ** Math.floor(this.#exceededMs / stalledMs)
  }

  #makeRoom(now: number): void {
    const stalled = [...this.#watched]
      .filter(([socket, { readAt }]) => socket.writableLength > 0 && now - readAt >= stalledMs)
      .map(([socket]) => socket)
      .sort((one, other) => other.writableLength - one.writableLength)
    for (const socket of stalled) {
      if (this.#buffered <= this.#bytes * recovered) return
      this.#buffered -= socket.writableLength
      this.#rejectedClients.note('memory for responses', socket.remoteAddress ?? 'unknown', unreadHint)
      socket.destroy()
    }
  }

  /** Adds the size of the buffers, and the budget, to the metrics. */
  describe(metrics: Metrics): void {
    metrics.gauge(
      { name: 'gatehouse_buffered_bytes', help: 'Bytes of responses that clients have not read yet.' },
      'sum',
      () => this.#buffered,
    )
    metrics.gauge(
      {
        name: 'gatehouse_buffered_bytes_limit',
        help: 'Limit of gatehouse_buffered_bytes: beyond it, requests get 503. A quarter of the memory.',
      },
      'sum',
      () => this.#bytes,
    )
  }
}

const unreadHint = 'These clients do not read their responses; their connections were closed.'
