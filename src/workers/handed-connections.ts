import type { Worker } from 'node:cluster'

interface Handle {
  close(): void
}

/**
 * Closes the connection that was sent to a worker which died before it acknowledged it.
 * `node:cluster` sends a worker one connection at a time and waits for the acknowledgement, for a
 * worker that died without end: the connection would stay open in this process, and its client,
 * which may be the provider with a Logout Token, would wait. When the connection is closed, the
 * client retries at another worker.
 *
 * This reads the internal messages of `node:cluster` (tested with Node.js 20 to 24). When they have
 * another form, this function does nothing.
 */
export function closeUnacknowledgedConnection(worker: Worker): void {
  let unacknowledged: Handle | undefined
  const { process } = worker
  const send = process.send.bind(process) as (...args: unknown[]) => boolean
  process.send = (...args: readonly unknown[]): boolean => {
    const [message, handle] = args
    if (isNewConnection(message) && isHandle(handle)) unacknowledged = handle
    return send(...args)
  }
  // An acknowledged connection is closed in this process already; closing it again has no effect.
  worker.once('exit', () => unacknowledged?.close())
}

function isNewConnection(message: unknown): boolean {
  return typeof message === 'object' && message !== null && 'act' in message && message.act === 'newconn'
}

function isHandle(handle: unknown): handle is Handle {
  return typeof handle === 'object' && handle !== null && 'close' in handle && typeof handle.close === 'function'
}
