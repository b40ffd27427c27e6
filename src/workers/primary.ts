import cluster, { type Worker } from 'node:cluster'
import type { GatewayConfig } from '../config/model.ts'
import type { Log } from '../observe/log.ts'
import { closeUnacknowledgedConnection } from './handed-connections.ts'
import type { WorkerAnswers } from './messages.ts'
import { WorkerConfig } from './worker-config.ts'

const restartFirstMs = 200
const restartMostMs = 10_000
/** A worker that lives this long, in ms, has started well. */
const stableMs = 10_000
/**
 * So much longer than draining may take, in ms, a worker has to end; one that hangs is killed then.
 */
const hangsMs = 5_000

/**
 * Several processes behind one port. Sessions are in Redis, so workers are to one another what
 * replicas are.
 */
export interface Workers {
  /**
   * Has all of them serve by another configuration. One that cannot, although another one can, is
   * replaced.
   * @throws {Error} when none of them can; nothing has changed then
   */
  reload(config: GatewayConfig): Promise<void>
  /** Stops all of them, each draining; resolves when the last one is gone. */
  stop(): Promise<void>
}

export interface WorkersParts {
  readonly log: Log
  /** Is to ask the workers. */
  readonly answers: WorkerAnswers
  readonly config: GatewayConfig
  /** Resolves when all is to stop, be it while they start. */
  readonly stopped: Promise<void>
}

export function isWorker(): boolean {
  return cluster.isWorker
}

/** In a worker: says that it serves. */
export function announceReady(): void {
  process.send?.('ready')
}

/**
 * Starts the workers and replaces those that die. Resolves when all serve, or are to stop.
 * @throws {Error} when a worker cannot start at all; it has said why
 */
export async function startWorkers(parts: WorkersParts): Promise<Workers> {
  const { log } = parts
  const count = parts.config.workers
  let stopping: Promise<void> | undefined
  let pauseMs = restartFirstMs
  const config = new WorkerConfig(parts.config)
  // JSON has no bytes.
  cluster.setupPrimary({ serialization: 'advanced' })

  const start = (isReplacement: boolean): Promise<void> =>
    new Promise((resolve, reject) => {
      const worker = cluster.fork()
      closeUnacknowledgedConnection(worker)
      parts.answers.attach(worker)
      config.attach(worker)
      const startedAt = performance.now()
      let serves = isReplacement
      worker.on('message', (message) => {
        if (message !== 'ready') return
        serves = true
        resolve()
      })
      worker.on('exit', (code, signal) => {
        reject(new Error(`a worker ended with ${signal ?? code} before it served`))
        if (serves && stopping === undefined) replace(worker.process.pid, startedAt, signal ?? code)
      })
    })
  const replace = (pid: number | undefined, startedAt: number, how: string | number): void => {
    pauseMs = performance.now() - startedAt > stableMs ? restartFirstMs : Math.min(pauseMs * 2, restartMostMs)
    log.error('worker.died', { pid, how, again_in_ms: pauseMs })
    setTimeout(() => {
      if (stopping === undefined) start(true).catch(() => {})
    }, pauseMs)
  }

  const stopOne = (worker: Worker) => stopWorker(worker, config.config.shutdown.drainTimeoutMs + hangsMs)
  const stopAll = async (): Promise<void> => void (await Promise.all(allWorkers().map(stopOne)))
  const stop = () => (stopping ??= stopAll())

  void parts.stopped.then(stop)
  try {
    // What keeps one from starting keeps all: the first one says it, once.
    await start(false)
    if (stopping === undefined) await Promise.all(Array.from({ length: count - 1 }, () => start(false)))
  } catch (error) {
    const wasToStop = stopping !== undefined
    await stop()
    if (!wasToStop) throw error
  }
  const reload = (next: GatewayConfig) =>
    config.change(next, allWorkers(), (worker, why) => {
      log.error('worker.not_reloaded', { pid: worker.process.pid, reason: why, hint: 'it is replaced' })
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
