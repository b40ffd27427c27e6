import { LRUCache } from 'lru-cache'
import { type Clock, steadyClock } from './clock.ts'
import { Instances } from './instances.ts'

export interface BoundedMapOptions<Key, Value> {
  /** The size of an entry, in the unit of `max`. Absent: each entry counts as one. */
  readonly sizeOf?: (value: Value) => number
  /** How long an entry is kept. Absent: until others need its place. */
  readonly lifetimeMs?: number
  /** Measures the lifetime. Absent: `performance`. */
  readonly clock?: Clock
  /** An entry has left the map: `evict` when others needed its place. */
  readonly dispose?: (value: Value, key: Key, why: LRUCache.DisposeReason) => void
}

/** All maps of this process. It counts what they dropped because others needed the place. */
export const caches = new Instances<Pick<BoundedMap<string, string>, 'name' | 'size' | 'used'>>()

/** A map for what may be forgotten. Beyond `max`, it drops the least recently used entries. */
export class BoundedMap<Key extends {}, Value extends {}> extends LRUCache<Key, Value> {
  /** What it remembers. Metrics have it as a label. */
  readonly name: string

  constructor(name: string, max: number, options: BoundedMapOptions<Key, Value> = {}) {
    const { sizeOf, lifetimeMs = 0, clock, dispose } = options
    const steady = clock && steadyClock(clock)
    super({
      // The option `max` would allocate the memory of 100,000 entries at once: megabytes, and 20
      // ms.
      maxSize: max,
      sizeCalculation: sizeOf ?? (() => 1),
      ttl: lifetimeMs,
      // For `LRUCache`, an entry of the time 0 has no age.
      ...(steady && { perf: { now: () => steady.now() + 1 }, ttlResolution: 0 }),
      dispose: (value, key, why) => {
        if (why === 'evict') caches.count(name)
        dispose?.(value, key, why)
      },
    })
    this.name = name
    caches.add(this)
  }

  /** The used share of `max`, from 0 to 1. */
  get used(): number {
    return this.calculatedSize / this.maxSize
  }
}
