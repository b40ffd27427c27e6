import { LRUCache } from 'lru-cache'
import { type Clock, steadyClock } from './clock.ts'

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

/** A map for what may be forgotten. Beyond `max`, it drops the least recently used entries. */
export class BoundedMap<Key extends {}, Value extends {}> extends LRUCache<Key, Value> {
  constructor(max: number, { sizeOf, lifetimeMs = 0, clock, dispose }: BoundedMapOptions<Key, Value> = {}) {
    const steady = clock && steadyClock(clock)
    super({
      // The option `max` would allocate the memory of 100,000 entries at once: megabytes, and 20
      // ms.
      maxSize: max,
      sizeCalculation: sizeOf ?? (() => 1),
      ttl: lifetimeMs,
      // For `LRUCache`, an entry of the time 0 has no age.
      ...(steady && { perf: { now: () => steady.now() + 1 }, ttlResolution: 0 }),
      ...(dispose && { dispose }),
    })
  }
}
