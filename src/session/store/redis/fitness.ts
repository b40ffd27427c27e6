import type { Redis } from 'ioredis'
import { reason } from '../../../core/errors.ts'
import type { Log } from '../../../observe/log.ts'
import type { RedisConnection } from './connection.ts'
import { proofPlace, type ProofPlace, proveConnections, proveScripts } from './proof.ts'

/** When a proof is repeated that failed or did not come to an end, in ms. */
const againMs = 2_000

/**
 * Whether the primaries do what the gateway relies on. A server that only speaks the protocol of
 * Redis could lose logouts without a sign, so each new connection begins with a proof. No reply
 * counts before it is over, and none counts from a store that has failed.
 */
export class StoreFitness {
  readonly #commands: RedisConnection
  readonly #keyPrefix: string
  readonly #log: Log
  /** The current connection of each server. */
  readonly #connections = new WeakMap<Redis, object>()
  readonly #pending = new Set<Promise<unknown>>()
  readonly #faults = new Map<Redis, string>()

  constructor(commands: RedisConnection, keyPrefix: string, log: Log) {
    this.#commands = commands
    this.#keyPrefix = keyPrefix
    this.#log = log
    const proveAll = () => {
      for (const server of commands.servers) this.#begin(server)
    }
    commands.redis.on('ready', proveAll)
    // A Cluster emits these. Its nodes reconnect by themselves.
    commands.redis.on('refresh', proveAll)
    commands.redis.on('+node', (node: Redis) => void node.on('ready', proveAll))
    commands.redis.on('-node', (node: Redis) => void this.#faults.delete(node))
  }

  /** Resolves when the proofs that are under way are over; `undefined` when there are none. */
  get pending(): Promise<unknown> | undefined {
    return this.#pending.size === 0 ? undefined : Promise.all(this.#pending)
  }

  /** What a primary does not do. */
  get fault(): string | undefined {
    return this.#faults.size === 0 ? undefined : [...this.#faults.values()][0]
  }

  #begin(server: Redis): void {
    if (this.#connections.has(server) || this.#commands.redis.status !== 'ready') return
    const connection = {}
    this.#connections.set(server, connection)
    server.once('close', () => void this.#connections.delete(server))
    void this.#prove(server, connection)
  }

  async #prove(server: Redis, connection: object, isRetry = false): Promise<void> {
    const place = this.#place(server)
    if (place === undefined || this.#connections.get(server) !== connection) return
    const first = this.#judge(place, proveScripts, isRetry)
    this.#pending.add(first)
    const hasPassed = await first
    this.#pending.delete(first)
    if (hasPassed && (await this.#judge(place, proveConnections, isRetry))) this.#note(server, undefined)
    else setTimeout(() => void this.#prove(server, connection, true), againMs).unref()
  }

  #place(server: Redis): ProofPlace | undefined {
    try {
      return proofPlace(this.#commands, server, this.#keyPrefix)
    } catch {
      return undefined
    }
  }

  /** @returns whether the server has passed; `false` also when that is unknown */
  async #judge(
    place: ProofPlace,
    prove: (place: ProofPlace) => Promise<string | undefined>,
    isRetry: boolean,
  ): Promise<boolean> {
    try {
      const fault = await prove(place)
      if (fault !== undefined) this.#note(place.server, fault)
      return fault === undefined
    } catch (error) {
      // The first time, the connection was mostly lost meanwhile.
      if (isRetry) this.#log.debug('store.not_proven', { store: this.#commands.address, reason: reason(error) })
      return false
    }
  }

  #note(server: Redis, fault: string | undefined): void {
    const before = this.fault
    if (fault === undefined) this.#faults.delete(server)
    else this.#faults.set(server, fault)
    const { fault: now } = this
    if (now === before) return
    const store = this.#commands.address
    if (now === undefined) this.#log.info('store.fit', { store })
    else
      this.#log.error('store.unfit', {
        store,
        reason: now,
        hint: 'The gateway refuses this store, because it could lose logouts. Use a server that docs/redis.md names.',
      })
  }
}
