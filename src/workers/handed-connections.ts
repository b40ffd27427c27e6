import type { Worker } from 'node:cluster'

interface Handle {
  close(): void
}

/**
 * Closes a connection that was sent to a worker when the worker dies before it acknowledges the
 * connection. `node:cluster` would wait for the acknowledgement without end, and keep the
 * connection open in this process. The client, which may be the provider with a Logout Token, would
 * wait too. After the close, the client retries, and another worker serves it. `node:cluster` sends
 * a worker one connection at a time.
 *
 * This function reads the internal messages of `node:cluster` (tested with Node.js 20 to 24 by
 * test/regressions/a-connection-handed-to-a-dead-worker-hangs.test.ts). If they have another form,
 * it does nothing.
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
  // An acknowledged connection is already closed in this process. Closing it again has no effect.
  worker.once('exit', () => unacknowledged?.close())
}

function isNewConnection(message: unknown): boolean {
  return typeof message === 'object' && message !== null && 'act' in message && message.act === 'newconn'
}

function isHandle(handle: unknown): handle is Handle {
  return typeof handle === 'object' && handle !== null && 'close' in handle && typeof handle.close === 'function'
}
