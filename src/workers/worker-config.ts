import type { Worker } from 'node:cluster'
import type { GatewayConfig } from '../config/model.ts'
import { reason } from '../core/errors.ts'

/** How long a worker may take to serve by another configuration, in ms. */
const takeLimitMs = 10_000

/** What workers and the process above them say to one another about the configuration. */
type Message =
  | { readonly kind: 'config.wanted' }
  | { readonly kind: 'config'; readonly number: number; readonly config: unknown }
  | { readonly kind: 'config.taken'; readonly number: number; readonly fault: string | undefined }

/** What became of a configuration at a worker. */
type Outcome =
  | { readonly kind: 'taken' }
  | { readonly kind: 'refused' | 'late'; readonly why: string }
  /** It has ended. Who takes its place begins with the new one. */
  | { readonly kind: 'gone' }

/**
 * In the process above the workers: what they serve by. They read no file themselves, so that all
 * of them, and those that take the place of one that died, serve by what was checked, whatever
 * stands in the file by then.
 */
export class WorkerConfig {
  #config: GatewayConfig
  #number = 0
  readonly #waiting = new Map<string, (fault: string | undefined) => void>()

  constructor(config: GatewayConfig) {
    this.#config = config
  }

  /** What a worker that starts now gets. */
  get config(): GatewayConfig {
    return this.#config
  }

  attach(worker: Worker): void {
    worker.on('message', (message: Message) => {
      if (message.kind === 'config.wanted') this.#give(worker)
      if (message.kind === 'config.taken') this.#waiting.get(`${worker.id} ${message.number}`)?.(message.fault)
    })
  }

  /**
   * Has the workers serve by another configuration: one of them first, then all others. Whoever
   * does not take what another one took, or does not answer, is handed to `replace`.
   * @throws {Error} when the first one that answers cannot take it; nothing has changed then
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
      const outcome = await this.#ask(worker)
      if (outcome.kind === 'taken') break
      if (outcome.kind === 'refused') {
        this.#config = previous
        throw new Error(outcome.why)
      }
      if (outcome.kind === 'late') replace(worker, outcome.why)
    }
    await Promise.all(
      others.map(async (worker) => {
        const outcome = await this.#ask(worker)
        if ('why' in outcome) replace(worker, outcome.why)
      }),
    )
  }

  #give(worker: Worker): void {
    tell(worker, { kind: 'config', number: this.#number, config: portable(this.#config) })
  }

  #ask(worker: Worker): Promise<Outcome> {
    const question = `${worker.id} ${this.#number}`
    return new Promise((resolve) => {
      const done = (outcome: Outcome) => {
        clearTimeout(limit)
        worker.off('exit', gone)
        this.#waiting.delete(question)
        resolve(outcome)
      }
      const gone = () => done({ kind: 'gone' })
      const limit = setTimeout(() => done({ kind: 'late', why: `no answer within ${takeLimitMs} ms` }), takeLimitMs)
      worker.once('exit', gone)
      this.#waiting.set(question, (fault) =>
        done(fault === undefined ? { kind: 'taken' } : { kind: 'refused', why: fault }),
      )
      if (worker.isConnected()) this.#give(worker)
      else gone()
    })
  }
}

function tell(worker: Worker, message: Message): void {
  // It may be gone just now.
  if (worker.isConnected()) worker.send(message, () => {})
}

/** In a worker: the configurations that the process above has it serve by. */
export interface ConfigsFromAbove {
  readonly first: Promise<GatewayConfig>
  /**
   * From now on each further one is taken, as soon as the one before has been; also one that has
   * come before.
   */
  follow(take: (config: GatewayConfig) => Promise<unknown>): void
}

/**
 * In a worker: asks the process above for its configuration. SIGHUP is the business of that
 * process.
 */
export function configsFromAbove(): ConfigsFromAbove {
  let isFirst = true
  let resolveFirst = (_config: GatewayConfig) => {}
  const first = new Promise<GatewayConfig>((resolve) => (resolveFirst = resolve))
  let startFollowing = (_take: (config: GatewayConfig) => Promise<unknown>) => {}
  const following = new Promise<(config: GatewayConfig) => Promise<unknown>>((resolve) => (startFollowing = resolve))
  let queue: Promise<void> = Promise.resolve()

  const takeNext = async (number: number, config: GatewayConfig): Promise<void> => {
    const take = await following
    const fault = await take(config).then(
      () => undefined,
      (error: unknown) => reason(error),
    )
    process.send?.({ kind: 'config.taken', number, fault } satisfies Message)
  }
  process.on('SIGHUP', () => {})
  process.on('message', (message: Message) => {
    if (message.kind !== 'config') return
    const config = restored(message.config) as GatewayConfig
    if (isFirst) resolveFirst(config)
    else queue = queue.then(() => takeNext(message.number, config))
    isFirst = false
  })
  process.send?.({ kind: 'config.wanted' } satisfies Message)
  return { first, follow: startFollowing }
}

/**
 * The same value as it can be sent to another process: a URL does not survive that, and becomes a
 * map, of which a configuration has none.
 */
export function portable(value: unknown): unknown {
  return replaced(value, (found) => (found instanceof URL ? new Map([['href', found.href]]) : undefined))
}

/** What was made portable, as it was. */
export function restored(value: unknown): unknown {
  return replaced(value, (found) => (found instanceof Map ? new URL(String(found.get('href'))) : undefined))
}

/** A copy in which objects are replaced; what is in it twice is the same twice in the copy, too. */
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
