import cluster, { type Worker } from 'node:cluster'
import type { GatewayConfig } from '../config/model/gateway.ts'
import type { Log } from '../observe/log.ts'
import { passOnUnacknowledged } from './handed-connections.ts'
import type { WorkerProcesses } from './messages.ts'
import { WorkerConfig } from './worker-config.ts'

/** The first and the longest pause before a worker that died is replaced, in ms. */
const firstRestartMs = 200
const longestRestartMs = 10_000
/** The pause starts again at its first value after a worker that has run for this long, in ms. */
const stableMs = 10_000
/** How long after its drain timeout a worker that has not ended is killed, in ms. */
const killAfterMs = 5_000

/** Several processes that share one port. They share sessions through Redis, as replicas do. */
export interface Workers {
  /**
   * Applies another configuration in all workers. A worker that rejects it, although another one
   * has applied it, is replaced.
   * @throws {Error} when the first worker rejects it; nothing has changed then
   */
  reload(config: GatewayConfig): Promise<void>
  /** Drains and stops all workers. Resolves when the last one has ended. */
  stop(): Promise<void>
}

export interface WorkersParts {
  readonly log: Log
  readonly processes: WorkerProcesses
  readonly config: GatewayConfig
  /** The descriptor of a listening socket, which the workers get as descriptor 4. */
  readonly socket: number | undefined
  /** Resolves when the workers are to stop, even while they start. */
  readonly stopped: Promise<void>
}

export function isWorker(): boolean {
  return cluster.isWorker
}

/** In a worker: tells the primary that it serves. */
export function tellReady(): void {
  process.send?.('ready')
}

/**
 * Starts the workers and replaces those that die. Resolves when the first one serves and each other
 * one serves or has died, or when all are to stop.
 * @throws {Error} when the first worker cannot start; it has logged the reason
 */
export async function startWorkers(parts: WorkersParts): Promise<Workers> {
  // JSON, the default, cannot represent the bytes of the keys.
  cluster.setupPrimary({
    serialization: 'advanced',
    ...(parts.socket !== undefined && { stdio: ['inherit', 'inherit', 'inherit', 'ipc', parts.socket] }),
  })
  const workers = new RunningWorkers(parts)
  void parts.stopped.then(workers.stop)
  await workers.start()
  return workers
}

class RunningWorkers implements Workers {
  readonly #parts: WorkersParts
  readonly #config: WorkerConfig
  readonly #serving = new Set<Worker>()
  #stopping: Promise<void> | undefined
  #pauseMs = firstRestartMs

  constructor(parts: WorkersParts) {
    this.#parts = parts
    this.#config = new WorkerConfig(parts.config)
  }

  /** The first worker starts alone, so that an error of the configuration is reported once. */
  async start(): Promise<void> {
    try {
      await this.#fork(false)
      const others = this.#stopping === undefined ? this.#parts.config.workers - 1 : 0
      // The first one serves by now, so one of the others that dies in its start is replaced too.
      await Promise.all(Array.from({ length: others }, () => this.#fork(true).catch(() => {})))
    } catch (error) {
      const wasStopping = this.#stopping !== undefined
      await this.stop()
      if (!wasStopping) throw error
    }
  }

  readonly stop = (): Promise<void> =>
    (this.#stopping ??= Promise.all(allWorkers().map((worker) => this.#stopOne(worker))).then(() => {}))

  readonly reload = (next: GatewayConfig): ReturnType<Workers['reload']> =>
    this.#config.change(next, allWorkers(), (worker, why) => {
      const fields = { pid: worker.process.pid, reason: why, hint: 'The worker is replaced.' }
      this.#parts.log.error('worker.not_reloaded', fields)
      void this.#stopOne(worker)
    })

  /**
   * Resolves when the worker serves. Rejects when it ends before.
   * @param isReplaced also when it ends before it serves
   */
  #fork(isReplaced: boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const worker = cluster.fork()
      this.#parts.processes.attach(worker)
      this.#config.attach(worker)
      const startedAt = performance.now()
      let serves = isReplaced
      worker.on('message', (message) => {
        if (message !== 'ready') return
        serves = true
        this.#serving.add(worker)
        resolve()
      })
      worker.on('exit', (code, signal) => {
        reject(new Error(`a worker ended with ${signal ?? code} before it served`))
        this.#serving.delete(worker)
        if (serves && this.#stopping === undefined) this.#replace(worker.process.pid, startedAt, signal ?? code)
      })
      // A message could not be sent, because the worker has died. `exit` follows.
      worker.on('error', () => {})
      passOnUnacknowledged(worker, () => this.#serving.size > 0)
    })
  }

  #replace(pid: number | undefined, startedAt: number, how: string | number): void {
    const wasStable = performance.now() - startedAt > stableMs
    this.#pauseMs = wasStable ? firstRestartMs : Math.min(this.#pauseMs * 2, longestRestartMs)
    this.#parts.log.error('worker.died', { pid, how, again_in_ms: this.#pauseMs })
    setTimeout(() => {
      if (this.#stopping === undefined) this.#fork(true).catch(() => {})
    }, this.#pauseMs)
  }

  #stopOne(worker: Worker): Promise<void> {
    // It takes no more connections, so those of a worker that dies meanwhile cannot go to it.
    this.#serving.delete(worker)
    return stopWorker(worker, this.#config.config.shutdown.drainTimeoutMs + killAfterMs)
  }
}

function allWorkers(): readonly Worker[] {
  return Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined)
}

async function stopWorker(worker: Worker, limitMs: number): Promise<void> {
  const gone = new Promise<void>((resolve) => worker.once('exit', () => resolve()))
  if (worker.isDead()) return
  worker.process.kill('SIGTERM')
  const limit = setTimeout(() => worker.process.kill('SIGKILL'), limitMs)
  await gone
  clearTimeout(limit)
}
