import type { Worker } from 'node:cluster'
import {
  callProcessApi,
  type ProcessApi,
  type ProcessApiMethod,
  type Processes,
  type ProcessState,
  type Reports,
} from '../admin/processes.ts'
import { reason } from '../core/errors.ts'
import { pauses } from '../core/pauses.ts'
import { merged } from '../observe/exposition.ts'
import type { Family } from '../observe/metrics.ts'

/**
 * How long a call may take at a worker that responds, in ms. To end a session, the worker sends
 * requests to Redis and to the provider.
 */
const callTimeoutMs = 60_000
/**
 * How many requests may be unread at one worker. Node buffers what it sends to a worker that hangs,
 * so the primary sends no more until that worker responds.
 */
const maxUnreadRequests = 1_000

interface WorkerRequest {
  readonly kind: 'request'
  readonly number: number
  readonly method: ProcessApiMethod
  readonly args: readonly unknown[]
}
type WorkerResponse = { readonly kind: 'response'; readonly number: number } & Outcome
type Outcome = { readonly result: unknown } | { readonly fault: string }

/**
 * In the primary: calls the workers. A worker that hangs does not delay the calls to the others.
 */
export class WorkerProcesses implements Processes {
  /** The last metrics that each worker has reported. */
  readonly #lastMetrics = new Map<Worker, readonly Family[]>()
  /**
   * The counters of workers that have ended. Without them, a sum would decrease, as at a restart.
   */
  #endedMetrics: readonly Family[] = []
  readonly #pending = new Map<number, { readonly worker: Worker; readonly complete: (outcome: Outcome) => void }>()
  /** How many requests have been sent to each worker since its last response. */
  readonly #unread = new Map<Worker, number>()
  #number = 0
  readonly #ownMetrics: () => readonly Family[]

  /** @param ownMetrics the metrics of the primary itself, which is not among the workers */
  constructor(ownMetrics: () => readonly Family[]) {
    this.#ownMetrics = ownMetrics
  }

  attach(worker: Worker): void {
    this.#lastMetrics.set(worker, [])
    this.#unread.set(worker, 0)
    worker.on('message', (message: WorkerResponse) => {
      if (this.#unread.has(worker)) this.#unread.set(worker, 0)
      if (message.kind === 'response') this.#pending.get(message.number)?.complete(message)
    })
    worker.once('exit', () => {
      const counters = (this.#lastMetrics.get(worker) ?? []).filter(({ kind }) => kind !== 'gauge')
      this.#endedMetrics = merged([this.#endedMetrics, counters])
      this.#lastMetrics.delete(worker)
      this.#unread.delete(worker)
      for (const request of [...this.#pending.values()])
        if (request.worker === worker) request.complete({ fault: 'the process has ended before it responded' })
    })
  }

  async metrics(): Promise<readonly Family[]> {
    await Promise.allSettled(
      this.#workers.map(async (worker) => {
        const families = await this.#send(worker, 'metrics', [], pauses.workerReportsMs)
        if (this.#lastMetrics.has(worker)) this.#lastMetrics.set(worker, families as readonly Family[])
      }),
    )
    return merged([...this.#lastMetrics.values(), this.#endedMetrics, this.#ownMetrics()])
  }

  async states(): Promise<Reports<ProcessState>> {
    const workers = this.#workers
    const states = await Promise.allSettled(
      workers.map((worker) => this.#send(worker, 'state', [], pauses.workerReportsMs)),
    )
    return {
      reports: states.flatMap((state) => (state.status === 'fulfilled' ? [state.value as ProcessState] : [])),
      silent: workers.flatMap(({ process }, index) => (states[index]?.status === 'rejected' ? [process.pid ?? 0] : [])),
    }
  }

  call<M extends ProcessApiMethod>(method: M, ...args: Parameters<ProcessApi[M]>): ReturnType<ProcessApi[M]> {
    const result = this.#firstLive().then((worker) => this.#send(worker, method, args, callTimeoutMs))
    return result as ReturnType<ProcessApi[M]>
  }

  get #workers(): readonly Worker[] {
    return [...this.#lastMetrics.keys()]
  }

  async #firstLive(): Promise<Worker> {
    const live = this.#workers.map((worker) =>
      this.#send(worker, 'live', [], pauses.workerReportsMs).then(() => worker),
    )
    return Promise.any(live).catch(({ errors: [cause] }: AggregateError) => {
      throw new Error('no worker process responds', { cause })
    })
  }

  #send(worker: Worker, method: ProcessApiMethod, args: readonly unknown[], timeoutMs: number): Promise<unknown> {
    const unread = this.#unread.get(worker) ?? 0
    if (unread >= maxUnreadRequests) return Promise.reject(new Error('the process has not responded for a long time'))
    const number = ++this.#number
    return new Promise((resolve, reject) => {
      const complete = (outcome: Outcome) => {
        clearTimeout(timer)
        this.#pending.delete(number)
        if ('fault' in outcome) reject(new Error(outcome.fault))
        else resolve(outcome.result)
      }
      const timer = setTimeout(() => complete({ fault: `no response within ${timeoutMs} ms` }), timeoutMs)
      this.#pending.set(number, { worker, complete })
      // A worker that is ending is disconnected before its `exit` event.
      if (!worker.isConnected()) return
      this.#unread.set(worker, unread + 1)
      worker.send({ kind: 'request', number, method, args } satisfies WorkerRequest, () => {})
    })
  }
}

/** In a worker: carries out the calls of the primary. */
export function serveProcessApi(api: ProcessApi): void {
  process.on('message', (message: WorkerRequest) => {
    if (message.kind !== 'request') return
    const { number, method, args } = message
    const respond = (outcome: Outcome) =>
      process.send?.({ kind: 'response', number, ...outcome } satisfies WorkerResponse)
    void callProcessApi(api, method, args as Parameters<ProcessApi[ProcessApiMethod]>).then(
      (result) => respond({ result }),
      (error: unknown) => respond({ fault: reason(error) }),
    )
  })
}
