import cluster, { type Worker } from 'node:cluster'
import type { Log } from '../observe/log.ts'

const restartFirstMs = 200
const restartMostMs = 10_000
/** A worker that lives this long, in ms, has started well. */
const stableMs = 10_000

/** Several processes behind one port. Sessions are in Redis, so workers are to one another what replicas are. */
export interface Workers {
  /** Stops all of them, each draining; resolves when the last one is gone. */
  stop(): Promise<void>
}

export function isWorker(): boolean {
  return cluster.isWorker
}

/** In a worker: says that it serves. */
export function announceReady(): void {
  process.send?.('ready')
}

/**
 * Starts `count` workers and replaces those that die. Resolves when all serve.
 * @throws {OperatorError} when a worker cannot start at all; it has said why
 */
export async function startWorkers(count: number, log: Log): Promise<Workers> {
  let stopping = false
  let pauseMs = restartFirstMs

  const start = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const worker = cluster.fork()
      const startedAt = Date.now()
      worker.on('message', (message) => {
        if (message === 'ready') resolve()
      })
      worker.on('exit', (code, signal) => {
        reject(new Error(`a worker ended with ${signal ?? code} before it served`))
        if (!stopping) replace(startedAt, signal ?? code)
      })
    })
  const replace = (startedAt: number, how: string | number): void => {
    pauseMs = Date.now() - startedAt > stableMs ? restartFirstMs : Math.min(pauseMs * 2, restartMostMs)
    log.error('worker.died', { how, again_in_ms: pauseMs })
    setTimeout(() => {
      if (!stopping) start().catch(() => {})
    }, pauseMs)
  }

  const stop = async (): Promise<void> => {
    stopping = true
    const workers = Object.values(cluster.workers ?? {}).filter((worker): worker is Worker => worker !== undefined)
    await Promise.all(
      workers.map((worker) => {
        const gone = new Promise<void>((resolve) => worker.once('exit', () => resolve()))
        worker.process.kill('SIGTERM')
        return gone
      }),
    )
  }

  try {
    await Promise.all(Array.from({ length: count }, start))
  } catch (error) {
    await stop()
    throw error
  }
  return { stop }
}
