import type { Worker } from 'node:cluster'
import { merged } from '../observe/exposition.ts'
import type { Family } from '../observe/metrics.ts'

/** How long a worker may take to say what it has counted, in ms; then what it said last is taken. */
const reportLimitMs = 1_000
/** How long a worker waits for all the others, in ms. */
const allLimitMs = 3_000

/** What workers and the process above them say to one another about metrics. `number` is of the question that is answered. */
type Message =
  | { readonly kind: 'metrics.all_wanted'; readonly number: number }
  | { readonly kind: 'metrics.all'; readonly number: number; readonly families: readonly Family[] }
  | { readonly kind: 'metrics.own_wanted'; readonly number: number }
  | { readonly kind: 'metrics.own'; readonly number: number; readonly families: readonly Family[] }

/** In the process above the workers: adds up what they have counted, for whichever of them is asked. */
export class WorkerMetrics {
  readonly #latest = new Map<Worker, readonly Family[]>()
  /** What workers that are gone had counted: a sum that falls would be taken for a restart. */
  #departed: readonly Family[] = []
  readonly #waiting = new Map<string, () => void>()
  #number = 0

  attach(worker: Worker): void {
    this.#latest.set(worker, [])
    worker.on('message', (message: Message) => {
      if (message.kind === 'metrics.all_wanted') void this.#answer(worker, message.number)
      if (message.kind !== 'metrics.own' || !this.#latest.has(worker)) return
      this.#latest.set(worker, message.families)
      this.#waiting.get(`${worker.id} ${message.number}`)?.()
    })
    worker.once('exit', () => {
      const counted = (this.#latest.get(worker) ?? []).filter(({ kind }) => kind !== 'gauge')
      this.#departed = merged([this.#departed, counted])
      this.#latest.delete(worker)
    })
  }

  async #answer(asking: Worker, number: number): Promise<void> {
    await Promise.all([...this.#latest.keys()].map((worker) => this.#report(worker)))
    const families = merged([...this.#latest.values(), this.#departed])
    tell(asking, { kind: 'metrics.all', number, families })
  }

  #report(worker: Worker): Promise<void> {
    this.#number += 1
    const question = `${worker.id} ${this.#number}`
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(limit)
        worker.off('exit', done)
        this.#waiting.delete(question)
        resolve()
      }
      const limit = setTimeout(done, reportLimitMs)
      worker.once('exit', done)
      this.#waiting.set(question, done)
      tell(worker, { kind: 'metrics.own_wanted', number: this.#number })
    })
  }
}

function tell(worker: Worker, message: Message): void {
  // It may be gone just now.
  if (worker.isConnected()) worker.send(message, () => {})
}

/**
 * In a worker: answers what asks all workers for what they have counted.
 * @returns rejects when the process above does not answer
 */
export function metricsOfAllWorkers(own: () => Promise<readonly Family[]>): () => Promise<readonly Family[]> {
  const waiting = new Map<number, (families: readonly Family[]) => void>()
  let number = 0
  process.on('message', (message: Message) => {
    if (message.kind === 'metrics.all') waiting.get(message.number)?.(message.families)
    if (message.kind !== 'metrics.own_wanted') return
    void own().then((families) =>
      process.send?.({ kind: 'metrics.own', number: message.number, families } satisfies Message),
    )
  })
  return () =>
    new Promise((resolve, reject) => {
      number += 1
      const asked = number
      const limit = setTimeout(() => {
        waiting.delete(asked)
        reject(new Error(`no answer of all workers within ${allLimitMs} ms`))
      }, allLimitMs)
      waiting.set(asked, (families) => {
        clearTimeout(limit)
        waiting.delete(asked)
        resolve(families)
      })
      process.send?.({ kind: 'metrics.all_wanted', number: asked } satisfies Message)
    })
}
