import cluster, { type Worker } from 'node:cluster'
import type { Log } from '../observe/log.ts'
import { WorkerMetrics } from './worker-metrics.ts'

const restartFirstMs = 200
const restartMostMs = 10_000
/** A worker that lives this long, in ms, has started well. */
const stableMs = 10_000
/** So much longer than draining may take, in ms, a worker has to end; one that hangs is killed then. */
const hangsMs = 5_000

/** Several processes behind one port. Sessions are in Redis, so workers are to one another what replicas are. */
export interface Workers {
  /** Has each of them read the configuration again. */
  reload(): void
  /** Stops all of them, each draining; resolves when the last one is gone. */
  stop(): Promise<void>
}

export interface WorkersParts {
  readonly log: Log
  readonly drainTimeoutMs: number
  /** Resolves when all is to stop, be it while they start. */
  readonly stopped: Promise<void>
}

export function isWorker(): boolean {
  return cluster.isWorker
}

/** In a worker: calls back when the configuration is to be read again. SIGHUP is the business of the process above. */
export function onReloadOrder(reload: () => void): void {
  process.on('SIGHUP', () => {})
  process.on('message', (message) => {
    if (message === 'reload') reload()
  })
}

/** In a worker: says that it serves. */
export function announceReady(): void {
  process.send?.('ready')
}

/**
 * Starts `count` workers and replaces those that die. Resolves when all serve, or are to stop.
 * @throws {Error} when a worker cannot start at all; it has said why
 */
export async function startWorkers(count: number, parts: WorkersParts): Promise<Workers> {
  const { log, drainTimeoutMs } = parts
  let stopping: Promise<void> | undefined
  let pauseMs = restartFirstMs
  const metrics = new WorkerMetrics()

  const start = (isReplacement: boolean): Promise<void> =>
    new Promise((resolve, reject) => {
      const worker = cluster.fork()
      metrics.attach(worker)
      const startedAt = Date.now()
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
    pauseMs = Date.now() - startedAt > stableMs ? restartFirstMs : Math.min(pauseMs * 2, restartMostMs)
    log.error('worker.died', { pid, how, again_in_ms: pauseMs })
    setTimeout(() => {
      if (stopping === undefined) start(true).catch(() => {})
    }, pauseMs)
  }

  const stopAll = async (): Promise<void> => {
    const workers = Object.values(cluster.workers ?? {}).filter((worker): worker is Worker => worker !== undefined)
    await Promise.all(workers.map((worker) => stopWorker(worker, drainTimeoutMs + hangsMs)))
  }
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
  const reload = () => {
    for (const worker of Object.values(cluster.workers ?? {})) if (worker?.isConnected()) worker.send('reload')
  }
  return { reload, stop }
}

async function stopWorker(worker: Worker, limitMs: number): Promise<void> {
  const gone = new Promise<void>((resolve) => worker.once('exit', () => resolve()))
  if (worker.isDead()) return
  worker.process.kill('SIGTERM')
  const limit = setTimeout(() => worker.process.kill('SIGKILL'), limitMs)
  await gone
  clearTimeout(limit)
}
