/**
 * A client may hold this many times the amount that is free. A single client can hold three
 * quarters of all, and each of many clients less.
 */
const shareOfFree = 3
/** The part for clients that hold nothing. Nothing is reserved of less than eight. */
const partForNewcomers = 1 / 8

/**
 * Shares something among clients (the dynamic thresholds of Choudhury and Hahne). Even if many
 * clients take as much as they may, a part stays free for clients that hold nothing.
 */
export class Shares {
  readonly #most: number
  readonly #mostPerClient: number
  readonly #reserved: number
  readonly #held = new Roster<string, { count: number }>(
    () => ({ count: 0 }),
    ({ count }) => count > 0,
  )
  #taken = 0

  constructor(most: number, mostPerClient = Infinity) {
    this.#most = most
    this.#mostPerClient = mostPerClient
    this.#reserved = Math.floor(most * partForNewcomers)
  }

  /** How much all clients hold together. */
  get taken(): number {
    return this.#taken
  }

  hasFor(client: string): boolean {
    const free = this.#most - this.#taken
    const held = this.#held.get(client)?.count ?? 0
    if (held === 0) return free > 0
    return free > this.#reserved && held < shareOfFree * free && held < this.#mostPerClient
  }

  take(client: string): void {
    this.#taken += 1
    this.#held.of(client).count += 1
  }

  leave(client: string): void {
    this.#taken -= 1
    this.#held.of(client).count -= 1
  }
}

/**
 * Places, and a queue for each client that waits for a place. The queues take turns, so that a
 * client with many requests does not delay the others.
 */
export class FairQueue<T> {
  readonly #places: Shares
  readonly #seats: Shares
  readonly #queues = new Map<string, T[]>()

  /**
   * @param places how many items may have a place
   * @param seats how many items may wait for one
   */
  constructor(places: number, seats: number) {
    this.#places = new Shares(places)
    this.#seats = new Shares(seats)
  }

  /** How many places are taken. */
  get taken(): number {
    return this.#places.taken
  }

  /** How many items wait. */
  get waiting(): number {
    return this.#seats.taken
  }

  /** Whether an item of the client could neither have a place nor wait. */
  isFullFor(client: string): boolean {
    return !this.#places.hasFor(client) && !this.#seats.hasFor(client)
  }

  /** Takes a place until `leave`. `false`: the item has to wait, and a later `leave` returns it. */
  enter(client: string, item: T): boolean {
    if (this.#places.hasFor(client)) {
      this.#places.take(client)
      return true
    }
    this.#seats.take(client)
    const queue = this.#queues.get(client)
    if (queue === undefined) this.#queues.set(client, [item])
    else queue.push(item)
    return false
  }

  /** Frees a place. Returns the items that have a place now. */
  leave(client: string): readonly T[] {
    this.#places.leave(client)
    return this.#queues.size === 0 ? nothing : this.#admitWaiting()
  }

  /** Removes an item that waits. */
  withdraw(client: string, item: T): void {
    const queue = this.#queues.get(client)
    const at = queue?.indexOf(item) ?? -1
    if (queue === undefined || at < 0) return
    queue.splice(at, 1)
    this.#seats.leave(client)
    if (queue.length === 0) this.#queues.delete(client)
  }

  /** Gives all waiting items a place, beyond the limit if necessary. */
  admitAll(): readonly T[] {
    const all = [...this.#queues].flatMap(([client, queue]) => queue.map((item) => ({ client, item })))
    this.#queues.clear()
    for (const { client } of all) {
      this.#seats.leave(client)
      this.#places.take(client)
    }
    return all.map(({ item }) => item)
  }

  #admitWaiting(): readonly T[] {
    const admitted: T[] = []
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      const [client, queue] = next
      admitted.push(queue.shift() as T)
      this.#seats.leave(client)
      this.#places.take(client)
      // The client goes to the end, so that the others come next.
      this.#queues.delete(client)
      if (queue.length > 0) this.#queues.set(client, queue)
    }
    return admitted
  }

  #next(): readonly [client: string, queue: T[]] | undefined {
    for (const entry of this.#queues) if (this.#places.hasFor(entry[0])) return entry
    return undefined
  }
}

const nothing: readonly never[] = []

/** Up to this number of entries, nothing is removed. */
const fewest = 64

/**
 * A map for entries that come and go with requests. It keeps unneeded entries and removes many at
 * once, because frequent insertions and deletions make V8 rebuild the table in the old generation,
 * which is expensive to collect.
 */
export class Roster<Key, Value> {
  readonly #entries = new Map<Key, Value>()
  readonly #make: () => Value
  readonly #isNeeded: (value: Value) => boolean
  #limit = fewest

  constructor(make: () => Value, isNeeded: (value: Value) => boolean) {
    this.#make = make
    this.#isNeeded = isNeeded
  }

  get(key: Key): Value | undefined {
    return this.#entries.get(key)
  }

  /** The value of a key, or a new one. */
  of(key: Key): Value {
    let value = this.#entries.get(key)
    if (value !== undefined) return value
    if (this.#entries.size >= this.#limit) this.#tidy()
    value = this.#make()
    this.#entries.set(key, value)
    return value
  }

  /** The entries that are needed. */
  *needed(): IterableIterator<readonly [Key, Value]> {
    for (const entry of this.#entries) if (this.#isNeeded(entry[1])) yield entry
  }

  #tidy(): void {
    for (const [key, value] of this.#entries) if (!this.#isNeeded(value)) this.#entries.delete(key)
    this.#limit = Math.max(fewest, 2 * this.#entries.size)
  }
}
