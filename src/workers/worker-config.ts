import type { Worker } from 'node:cluster'
import type { GatewayConfig } from '../config/model/gateway.ts'
import { AddressSet } from '../core/addresses.ts'
import { reason } from '../core/errors.ts'
import { LinearPattern } from '../core/linear-pattern.ts'
import { TimeWindow } from '../core/time-window.ts'

/** How long a worker may take to apply a configuration, in ms. */
const applyTimeoutMs = 10_000

/** The messages between the primary and a worker about the configuration. */
type Message =
  | { readonly kind: 'config.request' }
  | { readonly kind: 'config'; readonly number: number; readonly config: unknown }
  | { readonly kind: 'config.applied'; readonly number: number; readonly fault: string | undefined }

/** How a worker responded to a configuration. */
type Outcome =
  | { readonly kind: 'applied' }
  | { readonly kind: 'rejected' | 'late'; readonly why: string }
  /** The worker has ended. Its replacement starts with the new configuration. */
  | { readonly kind: 'ended' }

/**
 * In the primary: the configuration of the workers. Workers do not read the file, which may have
 * changed since it was checked. So all workers and their replacements use the checked
 * configuration.
 */
export class WorkerConfig {
  #config: GatewayConfig
  #number = 0
  readonly #pending = new Map<string, (fault: string | undefined) => void>()

  constructor(config: GatewayConfig) {
    this.#config = config
  }

  /** The configuration that a worker gets when it starts. */
  get config(): GatewayConfig {
    return this.#config
  }

  attach(worker: Worker): void {
    worker.on('message', (message: Message) => {
      if (message.kind === 'config.request') this.#send(worker)
      if (message.kind === 'config.applied') this.#pending.get(`${worker.id} ${message.number}`)?.(message.fault)
    })
  }

  /**
   * Sends a configuration to one worker first, then to all others. A worker that rejects what
   * another one has applied, or that does not respond, is passed to `replace`.
   * @throws {Error} when the first worker that responds rejects it; nothing has changed then
   */
  async change(
    config: GatewayConfig,
    workers: readonly Worker[],
    replace: (worker: Worker, why: string) => void,
  ): Promise<void> {
    const previous = this.#config
    this.#config = config
    this.#number += 1
    const others = [...workers]
    for (let worker = others.shift(); worker !== undefined; worker = others.shift()) {
      const outcome = await this.#apply(worker)
      if (outcome.kind === 'applied') break
      if (outcome.kind === 'rejected') {
        this.#config = previous
        throw new Error(outcome.why)
      }
      if (outcome.kind === 'late') replace(worker, outcome.why)
    }
    await Promise.all(
      others.map(async (worker) => {
        const outcome = await this.#apply(worker)
        if ('why' in outcome) replace(worker, outcome.why)
      }),
    )
  }

  #send(worker: Worker): void {
    send(worker, { kind: 'config', number: this.#number, config: portable(this.#config) })
  }

  #apply(worker: Worker): Promise<Outcome> {
    const id = `${worker.id} ${this.#number}`
    return new Promise((resolve) => {
      const complete = (outcome: Outcome) => {
        clearTimeout(limit)
        worker.off('exit', ended)
        this.#pending.delete(id)
        resolve(outcome)
      }
      const ended = () => complete({ kind: 'ended' })
      const limit = setTimeout(
        () => complete({ kind: 'late', why: `no response within ${applyTimeoutMs} ms` }),
        applyTimeoutMs,
      )
      worker.once('exit', ended)
      this.#pending.set(id, (fault) =>
        complete(fault === undefined ? { kind: 'applied' } : { kind: 'rejected', why: fault }),
      )
      if (worker.isConnected()) this.#send(worker)
      else ended()
    })
  }
}

function send(worker: Worker, message: Message): void {
  // A worker that is ending is disconnected before its `exit` event.
  if (worker.isConnected()) worker.send(message, () => {})
}

/** In a worker: the configurations that the primary sends. */
export interface ConfigsFromPrimary {
  readonly first: Promise<GatewayConfig>
  /** Applies each further configuration in turn, including those that have arrived already. */
  follow(apply: (config: GatewayConfig) => Promise<unknown>): void
}

/** In a worker: requests the configuration from the primary. The primary handles SIGHUP. */
export function configsFromPrimary(): ConfigsFromPrimary {
  let isFirst = true
  const first = Promise.withResolvers<GatewayConfig>()
  const following = Promise.withResolvers<(config: GatewayConfig) => Promise<unknown>>()
  let queue: Promise<void> = Promise.resolve()

  const applyNext = async (number: number, config: GatewayConfig): Promise<void> => {
    const apply = await following.promise
    const fault = await apply(config).then(
      () => undefined,
      (error: unknown) => reason(error),
    )
    process.send?.({ kind: 'config.applied', number, fault } satisfies Message)
  }
  process.on('SIGHUP', () => {})
  process.on('message', (message: Message) => {
    if (message.kind !== 'config') return
    const config = restored(message.config) as GatewayConfig
    if (isFirst) first.resolve(config)
    else queue = queue.then(() => applyNext(message.number, config))
    isFirst = false
  })
  process.send?.({ kind: 'config.request' } satisfies Message)
  return { first: first.promise, follow: following.resolve }
}

/**
 * A copy of a configuration that can be sent to another process. Each object of a class is replaced
 * by its kind and a plain value, because only plain objects and arrays arrive as they are.
 * @throws {TypeError} for an object of another class
 */
export function portable(value: unknown): unknown {
  return replaced(value, (found) => {
    const kind = kinds.find((one) => one.has(found))
    if (kind !== undefined) return new Map([[kind.name, kind.plain(found)]])
    if (isPlain(found)) return undefined
    throw new TypeError(`a configuration with a ${found.constructor.name} cannot be sent to a worker`)
  })
}

/** Reverses {@link portable}. */
export function restored(value: unknown): unknown {
  return replaced(value, (found) => {
    if (!(found instanceof Map)) return undefined
    const [[name, plain] = []] = [...(found as Map<string, unknown>)]
    return kinds.find((kind) => kind.name === name)?.restore(plain)
  })
}

interface Kind {
  readonly name: string
  has(value: object): boolean
  plain(value: object): unknown
  restore(plain: unknown): object
}

/** The classes whose objects a configuration may have. */
const kinds: readonly Kind[] = [
  kindOf(
    URL,
    ({ href }) => href,
    (href) => new URL(href),
  ),
  kindOf(
    AddressSet,
    ({ subnets }) => subnets,
    (subnets) => new AddressSet(subnets),
  ),
  kindOf(
    TimeWindow,
    ({ options }) => options,
    (options) => new TimeWindow(options),
  ),
  kindOf(
    LinearPattern,
    ({ text }) => text,
    (text) => new LinearPattern(text),
  ),
  kindOf(
    Map<unknown, unknown>,
    (map) => [...map],
    (entries) => new Map(entries),
  ),
]

/** `plain` and `restore` convert between an object of a class and a value without classes. */
function kindOf<T extends object, P>(
  type: abstract new (...parts: never[]) => T,
  plain: (value: T) => P,
  restore: (plain: P) => T,
): Kind {
  return {
    name: type.name,
    has: (value) => value instanceof type,
    plain: (value) => plain(value as T),
    restore: (value) => restore(value as P),
  }
}

function isPlain(value: object): boolean {
  return Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype
}

/** A copy with some objects replaced. An object that occurs twice is one object in the copy too. */
function replaced(
  value: unknown,
  replacement: (found: object) => object | undefined,
  copies = new Map<object, object>(),
): unknown {
  if (typeof value !== 'object' || value === null || Buffer.isBuffer(value)) return value
  const known = copies.get(value)
  if (known !== undefined) return known
  const other = replacement(value)
  const copy = other ?? (Array.isArray(value) ? [] : {})
  copies.set(value, copy)
  if (other === undefined)
    for (const [name, member] of Object.entries(value))
      (copy as Record<string, unknown>)[name] = replaced(member, replacement, copies)
  return copy
}
