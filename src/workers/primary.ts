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
  /** Resolves when the workers are to stop, even while they start. */
  readonly stopped: Promise<void>
}

export function isWorker(): boolean {
  return cluster.isWorker
}

/** In a worker: tells the primary that it serves. */
export function announceReady(): void {
  process.send?.('ready')
}

/**
 * Starts the workers and replaces those that die. Resolves when all serve, or are to stop.
 * @throws {Error} when a worker cannot start; the worker has logged the reason
 */
export async function startWorkers(parts: WorkersParts): Promise<Workers> {
  const { log } = parts
  const count = parts.config.workers
  let stopping: Promise<void> | undefined
  let pauseMs = firstRestartMs
  const config = new WorkerConfig(parts.config)
  const serving = new Set<Worker>()
  // JSON, the default, cannot represent the bytes of the keys.
  cluster.setupPrimary({ serialization: 'advanced' })

  const start = (isReplacement: boolean): Promise<void> =>
    new Promise((resolve, reject) => {
      const worker = cluster.fork()
      parts.processes.attach(worker)
      config.attach(worker)
      const startedAt = performance.now()
      let serves = isReplacement
      worker.on('message', (message) => {
        if (message !== 'ready') return
        serves = true
        serving.add(worker)
        resolve()
      })
      worker.on('exit', (code, signal) => {
        reject(new Error(`a worker ended with ${signal ?? code} before it served`))
        serving.delete(worker)
        if (serves && stopping === undefined) replace(worker.process.pid, startedAt, signal ?? code)
      })
      // A message could not be sent, because the worker has died. `exit` follows.
      worker.on('error', () => {})
      passOnUnacknowledged(worker, () => serving.size > 0)
    })
  const replace = (pid: number | undefined, startedAt: number, how: string | number): void => {
    pauseMs = performance.now() - startedAt > stableMs ? firstRestartMs : Math.min(pauseMs * 2, longestRestartMs)
    log.error('worker.died', { pid, how, again_in_ms: pauseMs })
    setTimeout(() => {
      if (stopping === undefined) start(true).catch(() => {})
    }, pauseMs)
  }

  const stopOne = (worker: Worker) => {
    // It takes no more connections, so those of a worker that dies meanwhile cannot go to it.
    serving.delete(worker)
    return stopWorker(worker, config.config.shutdown.drainTimeoutMs + killAfterMs)
  }
  const stopAll = async (): Promise<void> => void (await Promise.all(allWorkers().map(stopOne)))
  const stop = () => (stopping ??= stopAll())

  void parts.stopped.then(stop)
  try {
    // The first worker starts alone, so that an error of the configuration is reported once.
    await start(false)
    if (stopping === undefined) await Promise.all(Array.from({ length: count - 1 }, () => start(false)))
  } catch (error) {
    const wasStopping = stopping !== undefined
    await stop()
    if (!wasStopping) throw error
  }
  const reload = (next: GatewayConfig) =>
    config.change(next, allWorkers(), (worker, why) => {
      log.error('worker.not_reloaded', { pid: worker.process.pid, reason: why, hint: 'The worker is replaced.' })
      void stopOne(worker)
    })
  return { reload, stop }
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
