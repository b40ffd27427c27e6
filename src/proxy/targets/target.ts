import type { TargetConfig } from '../../config/model/upstream.ts'
import { BoundedMap } from '../../core/bounded-map.ts'
import type { Transport } from '../../transport/transport.ts'
import { TargetHealth } from './target-health.ts'

/** One address of an upstream: its connections, its health, and how much it has to do. */
export class Target {
  /** Its address, as logs and metrics name it. */
  readonly name: string
  readonly transport: Transport
  /** Opens a connection of its own, for a health check. */
  readonly connect: () => Transport
  readonly health: TargetHealth
  /** Open requests, event streams and tunnels of this process. */
  open = 0

  constructor(name: string, connect: (connections?: number) => Transport, now: () => number) {
    this.name = name
    this.transport = connect()
    this.connect = () => connect(1)
    this.health = new TargetHealth(now)
  }
}

/** For how many names the answers of DNS are remembered. */
const maxAnswers = 1_000

interface Entry {
  readonly target: Target
  /** The upstreams that use the target: of the current generation, and of earlier ones. */
  readonly users: Set<object>
}

/**
 * The targets of all generations. A target that a reload leaves as it is keeps its connections and
 * its health.
 */
export class TargetPool {
  readonly #entries = new Map<string, Entry>()
  /** The last answer of DNS for each name. */
  readonly answers = new BoundedMap<string, readonly TargetConfig[]>('target_addresses', maxAnswers)

  /**
   * @param key what distinguishes the target, with all settings of its connections
   * @param create makes a target that is not there yet
   */
  take(key: string, user: object, create: () => Target): Target {
    let entry = this.#entries.get(key)
    if (entry === undefined) {
      entry = { target: create(), users: new Set() }
      this.#entries.set(key, entry)
    }
    entry.users.add(user)
    return entry.target
  }

  /** @returns whether the target has no other user, so that the caller has to close it */
  release(target: Target, user: object): boolean {
    for (const [key, { target: known, users }] of this.#entries) {
      if (known !== target) continue
      users.delete(user)
      if (users.size > 0) return false
      this.#entries.delete(key)
    }
    return true
  }
}
