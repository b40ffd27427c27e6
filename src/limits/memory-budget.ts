import type { Duplex } from 'node:stream'
import { getHeapStatistics } from 'node:v8'
import { clientOf, ipAddress, networkOf } from '../core/addresses.ts'
import type { Metrics } from '../observe/metrics.ts'
import type { RejectedClients } from './rejected-clients.ts'

/** The shares of the free memory and of V8's heap for clients. V8's garbage needs the rest. */
const shareOfMemory = 1 / 3
const shareOfHeap = 1 / 2
/** How much of the budget is left when the process is too large. */
const shareUnderPressure = 0.5
/** The process collects garbage again after it has grown by this part of its allowed growth. */
const nextGarbage = 1 / 6
/**
 * How often what is held may be added up, in ms. It is also added up when much has arrived.
 */
const everyMs = 100
const muchArrived = 1 / 8
/**
 * Adding up takes some 0.6 µs for each connection, also for an idle one. It takes at most this
 * share of the time, unless the process grows or the budget is exceeded.
 */
const shareOfTime = 1 / 50
/** Beyond the budget, connections are closed down to this part of it. */
const recovered = 0.75
/** A session that holds at most this part of the budget counts as a signed-in person. */
const shareOfSession = 1 / 16
/**
 * A client counts as stalled when it reads less than this, in bytes, in `stalledMs`. The number
 * doubles with each `stalledMs` in which the budget is exceeded, and halves again afterwards. So
 * clients that read slowly cannot keep the budget exceeded.
 */
const readingBytes = 1024
const stalledMs = 1000
/** How often the number is doubled at most: to 1 GiB. */
const maxDoublings = 20

/**
 * The memory of a connection, and of one over TLS, in bytes, with that of the kernel (measured).
 * Over TLS it is half of that when handshakes do not come and go.
 */
export const connectionBytes = 12 * 1024
export const tlsConnectionBytes = 96 * 1024

/** A client's socket, of TCP or TLS. */
export type ClientSocket = Duplex & { readonly bytesWritten: number; readonly remoteAddress?: string | undefined }

/** What the gateway holds for a connection, beside its unread response. */
export interface HeldForConnection {
  /** An estimate of the memory of requests that have not ended, in bytes. */
  heldBytes(): number
  /** What waits for the client to read it, in bytes. Absent: what waits in the socket. */
  unreadBytes?(): number
  /** Closes the connection: with 408 if its client has not sent a whole head. */
  close(): void
  /** The connection is destroyed as soon as its last bytes are written. Absent: at once. */
  isClosing?(): boolean
}

interface Account {
  readonly socket: ClientSocket
  readonly baseBytes: number
  /** How often a response that waits is in memory: TLS keeps the encrypted bytes too. */
  readonly copies: 1 | 2
  readonly held: HeldForConnection
  /** The address of the client of the latest request. */
  address: string
  /** The session of the latest request that had one. */
  party: string | undefined
  /** How many bytes the client had read when it was last seen reading. */
  readBytes: number
  /** When it was last seen reading, in ms, monotonic. */
  readAt: number
  /** What it held when it was last added up, in bytes. */
  bytes: number
  /** It was destroyed, and its memory is not free yet. */
  isClosing: boolean
}

export interface MemoryBudgetParts {
  readonly rejectedClients: Pick<RejectedClients, 'note'>
  /** In ms, monotonic. */
  readonly now?: () => number
  /** How much the process may grow from now on, in bytes. Absent: without limit. */
  readonly growthBytes?: number | undefined
  /** The resident memory of the process, in bytes. */
  readonly processBytes?: () => number
}

/**
 * What this process may hold for clients, in bytes. It depends on the limit of the container
 * (cgroup) or the memory of the machine, and on the limit of V8's heap.
 * @param free see `freeMemory`
 */
export function budgetBytes(free: number, heapLimit: number = getHeapStatistics().heap_size_limit): number {
  return Math.min(free * shareOfMemory, heapLimit * shareOfHeap)
}

/**
 * Limits what the gateway holds for all clients together: their connections, the requests that have
 * not ended, and the responses that they have not read. So clients cannot exhaust the memory.
 *
 * Beyond the budget, strangers get 503, and the connections of those that hold most are closed:
 * first of a network, then of an address, then the newest. The connections of signed-in people are
 * closed last.
 */
export class MemoryBudget {
  readonly #bytes: number
  readonly #rejectedClients: Pick<RejectedClients, 'note'>
  readonly #now: () => number
  readonly #accounts = new Map<ClientSocket, Account>()
  #held = 0
  /** How many bytes are free when the connections that were destroyed are closed. */
  #closing = 0
  #arrived = 0
  #isExceeded = false
  /** The sessions that held more than their share when room was last made. */
  #large: ReadonlySet<string> = new Set()
  /** When to add up again, in ms, monotonic. */
  #addsUpAt = 0
  /** The memory of the process when that was last done, in bytes. */
  #processWhenAdded = 0
  /** How long the budget has been exceeded, less the time since then, in ms. */
  #exceededMs = 0
  #checkedAt = 0
  /** The budget, or the part of it that is left. */
  #allowed: number
  readonly #processBytes: () => number
  readonly #growthBytes: number
  /** The memory of the process at its start, and after garbage was collected, in bytes. */
  readonly #atStart: number
  #afterCollection = 0
  /** When garbage may be collected next, in ms, monotonic. */
  #collectsAt = 0
  #timer: NodeJS.Timeout | undefined

  /** @param bytes the budget: see {@link budgetBytes} */
  constructor(
    bytes: number,
    {
      rejectedClients,
      now = () => performance.now(),
      growthBytes = Infinity,
      processBytes = process.memoryUsage.rss,
    }: MemoryBudgetParts,
  ) {
    this.#growthBytes = growthBytes
    this.#bytes = bytes
    this.#allowed = bytes
    this.#processBytes = processBytes
    this.#atStart = processBytes()
    this.#rejectedClients = rejectedClients
    this.#now = now
  }

  /** Counts what a connection holds until it is closed. */
  watch(socket: ClientSocket, baseBytes: number, held: HeldForConnection): void {
    this.#accounts.set(socket, {
      socket,
      baseBytes,
      held,
      bytes: baseBytes,
      isClosing: false,
      readBytes: 0,
      readAt: this.#now(),
      copies: 'encrypted' in socket ? 2 : 1,
      address: socket.remoteAddress ?? 'unknown',
      party: undefined,
    })
    socket.once('close', () => this.unwatch(socket))
    this.#timer ??= setInterval(() => this.#checkIfDue(), everyMs).unref()
    this.arrived(baseBytes)
  }

  unwatch(socket: ClientSocket): void {
    const account = this.#accounts.get(socket)
    if (account?.isClosing === true) this.#closing -= account.bytes
    this.#accounts.delete(socket)
  }

  /**
   * Whether a new connection has to be closed at once. Node.js accepts hundreds of connections
   * before it closes those that were destroyed meanwhile.
   */
  get isFull(): boolean {
    return this.#closing > this.#allowed * (1 - recovered)
  }

  /**
   * Whether a request for an application may be served now. Notes whose request is the latest of
   * the connection.
   * @param party the session, or what a request has instead; `undefined` for a stranger, and for a
   * signed-in person where no session is needed
   */
  admits(socket: ClientSocket, address: string, party: string | undefined): boolean {
    const account = this.#accounts.get(socket)
    if (account !== undefined && (party !== undefined || account.address !== address)) {
      account.address = address
      account.party = party
    }
    return !this.#isExceeded || this.#isPerson(account?.party ?? party)
  }

  /** Notes that bytes of clients have arrived, which may have to be held. */
  arrived(bytes: number): void {
    this.#arrived += bytes
    if (this.#arrived > this.#bytes * muchArrived) this.check()
  }

  /** Adds up what is held, and closes connections if that exceeds the budget. */
  check(): void {
    const now = this.#now()
    const required = this.#requiredBytes(now)
    this.#arrived = 0
    let held = 0
    for (const account of this.#accounts.values()) {
      const { socket, isClosing, copies } = account
      if (isClosing) continue
      const unread = unreadBytes(account)
      account.bytes = account.baseBytes + account.held.heldBytes() + socket.readableLength + unread * copies
      held += account.bytes
      const readBytes = socket.bytesWritten - socket.writableLength
      if (unread === 0 || readBytes - account.readBytes >= required) {
        account.readBytes = readBytes
        account.readAt = now
      }
    }
    this.#held = held
    this.#watchProcess(now)
    const isTooMuch = held > this.#allowed * (this.#isExceeded ? recovered : 1)
    if (isTooMuch) this.#makeRoom(now)
    this.#isExceeded = isTooMuch && this.#held > this.#allowed * recovered
    this.#processWhenAdded = this.#processBytes()
    const ended = this.#now()
    this.#addsUpAt = ended + (ended - now) * (1 / shareOfTime - 1)
    if (this.#accounts.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** While the memory of the process does not grow, what is held cannot exhaust it. */
  #checkIfDue(): void {
    const much = Math.min(this.#processWhenAdded + this.#bytes * muchArrived, this.#atStart + this.#growthBytes)
    if (this.#isExceeded || this.#now() >= this.#addsUpAt || this.#processBytes() > much) this.check()
  }

  /**
   * Collects garbage when the process has grown too large, in at most a fifth of the time. V8
   * collects it late, because its limit may be beyond that of the container. Works only with
   * `--expose-gc`, which the image sets. If the process stays too large, a part of the budget is
   * left: the estimates are too low, or something else takes the memory.
   */
  #watchProcess(now: number): void {
    const most = this.#atStart + this.#growthBytes
    const bytes = this.#processBytes()
    const next = Math.max(most, this.#afterCollection + this.#growthBytes * nextGarbage)
    if (bytes > next && now >= this.#collectsAt) {
      globalThis.gc?.()
      const ended = this.#now()
      this.#collectsAt = ended + 4 * (ended - now)
      this.#afterCollection = this.#processBytes()
    }
    this.#allowed = this.#bytes * (Math.min(bytes, this.#afterCollection) > most ? shareUnderPressure : 1)
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
    const accounts = [...this.#accounts.values()].filter(({ isClosing }) => !isClosing)
    const ofPeople = accounts.filter(({ party }) => party !== undefined)
    const isLarge = ({ bytes }: Group) => bytes > this.#bytes * shareOfSession
    this.#large = new Set(
      groups(ofPeople, partyOf)
        .filter(isLarge)
        .map(({ key }) => key),
    )
    // The newest come first, and so among those that hold the same.
    accounts.reverse()
    const excess = this.#held - this.#allowed * recovered
    const strangers = accounts.filter(({ party }) => !this.#isPerson(party))
    this.#close(strangers, excess, now)
    const people = accounts.filter(({ party }) => this.#isPerson(party))
    this.#close(people, excess - strangers.reduce((sum, { bytes }) => sum + bytes, 0), now)
  }

  /** A session that holds more than its share counts as a stranger. */
  #isPerson(party: string | undefined): boolean {
    return party !== undefined && !this.#large.has(party)
  }

  /**
   * Closes the connections of those that hold most, until `excess` is free. Those that read stay,
   * also when less is free then. The others must not be closed instead.
   */
  #close(accounts: readonly Account[], excess: number, now: number): void {
    let left = excess
    for (const account of largest(accounts, excess, [partyOf, addressOf])) {
      if (left <= 0) return
      const { socket, held, bytes, address } = account
      left -= bytes
      if (isReading(account, now)) continue
      this.#held -= bytes
      this.#rejectedClients.note('memory', address, closedHint)
      // It was closed before, and waits for its client.
      if (socket.writableEnded) socket.destroy()
      else held.close()
      account.isClosing = socket.destroyed || held.isClosing?.() === true
      if (account.isClosing) this.#closing += bytes
    }
  }

  /** Adds what is held, and the budget, to the metrics. */
  describe(metrics: Metrics): void {
    metrics.gauge({
      name: 'gatehouse_buffered_bytes',
      help: 'Estimated bytes held for clients: connections, requests, and responses that they have not read.',
      merge: 'sum',
      read: () => this.#held,
    })
    metrics.gauge({
      name: 'gatehouse_buffered_bytes_limit',
      help: 'Limit of gatehouse_buffered_bytes: beyond it, strangers get 503, and the largest are closed.',
      merge: 'sum',
      read: () => this.#bytes,
    })
  }
}

const closedHint =
  'These clients made the gateway hold too much: requests that did not end, or responses that they did not read. Their connections were closed.'

/** Whether a client that is sent a response reads it. */
function isReading(account: Account, now: number): boolean {
  return unreadBytes(account) * account.copies * 2 > account.bytes && now - account.readAt < stalledMs
}

function unreadBytes({ socket, held }: Account): number {
  return held.unreadBytes?.() ?? socket.writableLength
}

/** A session, or the network of a stranger. */
function partyOf({ party, address }: Account): string {
  return party ?? networkOf(addressOf({ address }))
}

function addressOf({ address }: Pick<Account, 'address'>): string {
  return clientOf(ipAddress(address) ?? address)
}

interface Group {
  readonly key: string
  readonly accounts: readonly Account[]
  readonly bytes: number
}

/** The groups of the same key, the largest first. */
function groups(accounts: readonly Account[], keyOf: (account: Account) => string): readonly Group[] {
  const found = new Map<string, { key: string; accounts: Account[]; bytes: number }>()
  for (const account of accounts) {
    const key = keyOf(account)
    let group = found.get(key)
    if (group === undefined) found.set(key, (group = { key, accounts: [], bytes: 0 }))
    group.accounts.push(account)
    group.bytes += account.bytes
  }
  return [...found.values()].sort(bySize)
}

function bySize(one: { readonly bytes: number }, other: { readonly bytes: number }): number {
  return other.bytes - one.bytes
}

/**
 * The accounts to close so that about `bytes` are free and those that stay hold as little more than
 * one another as possible: in the largest groups by the first key, there by the second, and so on.
 */
function* largest(
  accounts: readonly Account[],
  bytes: number,
  [keyOf, ...keys]: readonly ((account: Account) => string)[],
): Iterable<Account> {
  if (keyOf === undefined) {
    let left = bytes
    for (const account of accounts.toSorted(bySize)) {
      if (left <= 0) return
      left -= account.bytes
      yield account
    }
    return
  }
  const sorted = groups(accounts, keyOf)
  const level = levelOf(sorted, bytes)
  for (const group of sorted) {
    if (group.bytes <= level) return
    yield* largest(group.accounts, group.bytes - level, keys)
  }
}

/** What each of these may keep so that all together free `bytes`. */
function levelOf(sorted: readonly { readonly bytes: number }[], bytes: number): number {
  let sum = 0
  for (const [index, group] of sorted.entries()) {
    sum += group.bytes
    const level = (sum - bytes) / (index + 1)
    if (level >= (sorted[index + 1]?.bytes ?? 0)) return level
  }
  return 0
}

/** The memory of a request beside its head, in bytes (measured). */
const requestBytes = 6 * 1024

/**
 * An estimate of the memory of a request without its content, in bytes: its text, the values that
 * are made of it, and the objects that serve it.
 * @param headBytes the length of its head
 */
export function requestMemory(headBytes: number): number {
  return requestBytes + 2 * headBytes
}

/**
 * How much content of a request that has not arrived completely may be in use, in bytes: a form, or
 * what is on its way to the upstream.
 */
export const contentInUseBytes = 16 * 1024
