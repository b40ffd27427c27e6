import { totalmem } from 'node:os'
import type { Duplex } from 'node:stream'
import type { Metrics } from '../observe/metrics.ts'
import type { RejectedClients } from './rejected-clients.ts'

/**
 * The part of the memory of this process that responses may take which clients have not read yet.
 */
const shareOfMemory = 1 / 4
/**
 * How often the buffers are added up, in ms. A connection buffers some 200 KB at most, so that
 * little is added meanwhile.
 */
const everyMs = 100
/** Requests are served again when the buffers have come down to this part of the budget. */
const recovered = 0.75
/**
 * A client that reads less than this, in bytes, in `stalledMs` does not read. The number doubles
 * with each `stalledMs` in which the budget is exceeded, and halves again afterwards, so that
 * clients that read slowly cannot keep it exceeded.
 */
const readingBytes = 1024
const stalledMs = 1000
/** The number is doubled at most this many times: to 1 GiB. */
const mostDoublings = 20

interface Watched {
  /**
   * What the client had taken, in bytes, when it was last seen reading, and when that was (ms,
   * monotonic).
   */
  taken: number
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
 * The memory that this process has for itself, in bytes: its part of the container's limit
 * (cgroup), or of the machine's memory.
 *
 * @param processes how many processes share it
 */
export function processMemory(processes: number): number {
  // 0, or more than there is, where no limit is set.
  const limit = process.constrainedMemory()
  const all = limit > 0 ? Math.min(limit, totalmem()) : totalmem()
  return all / processes
}

/**
 * Bounds what the gateway buffers for all clients together, so that clients who do not read end
 * neither the process nor its container. Beyond the budget, requests for applications are refused
 * (503), and connections whose clients do not read are closed, those that hold most first.
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

  /** @param memoryBytes the memory of the process, as {@link processMemory} tells it */
  constructor(memoryBytes: number, { rejectedClients, now = () => performance.now() }: MemoryBudgetParts) {
    this.#bytes = memoryBytes * shareOfMemory
    this.#rejectedClients = rejectedClients
    this.#now = now
  }

  /** Whether requests for applications are to be refused at the moment. */
  get isExceeded(): boolean {
    return this.#isExceeded
  }

  /** Counts what is buffered for a client, until its connection is closed. */
  watch(socket: ClientSocket): void {
    this.#watched.set(socket, { taken: 0, readAt: this.#now() })
    socket.once('close', () => this.#watched.delete(socket))
    this.#timer ??= setInterval(() => this.check(), everyMs).unref()
  }

  /** Adds up what is buffered, and makes room when it is too much. Called regularly by itself. */
  check(): void {
    const now = this.#now()
    const required = this.#requiredBytes(now)
    let buffered = 0
    for (const [socket, watched] of this.#watched) {
      buffered += socket.writableLength
      const taken = socket.bytesWritten - socket.writableLength
      if (socket.writableLength === 0 || taken - watched.taken >= required) {
        watched.taken = taken
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

  /** How much a client has to read in `stalledMs`. */
  #requiredBytes(now: number): number {
    const passedMs = now - this.#checkedAt
    this.#checkedAt = now
    const exceededMs = this.#exceededMs + (this.#isExceeded ? passedMs : -passedMs)
    this.#exceededMs = Math.min(Math.max(exceededMs, 0), mostDoublings * stalledMs)
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

  /** Describes what is buffered, and the bound, for Prometheus. */
  describe(metrics: Metrics): void {
    metrics.gauge(
      { name: 'gatehouse_buffered_bytes', help: 'Bytes of responses that clients have not read yet.' },
      'sum',
      () => this.#buffered,
    )
    metrics.gauge(
      {
        name: 'gatehouse_buffered_bytes_limit',
        help: 'Bytes of unread responses beyond which requests are refused with 503: a quarter of the memory.',
      },
      'sum',
      () => this.#bytes,
    )
  }
}

const unreadHint = 'clients do not read their responses; their connections were closed'
