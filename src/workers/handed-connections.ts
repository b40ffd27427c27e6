import type { Worker } from 'node:cluster'

interface Handle {
  close(): void
}

/**
 * Closes the connection that a worker had been handed when it died. `node:cluster` hands a worker
 * one connection at a time and waits until the worker acknowledges it. For a worker that dies
 * before, it waits for ever: the connection stays open in this process, and its client, which may
 * be the provider with a Logout Token, waits too. Closed, the client tries again at another worker.
 *
 * It looks at the messages of `node:cluster` itself (Node.js 20 to 24). Where they have another
 * form, nothing is remembered and nothing closed.
 */
export function closeUnacknowledgedConnection(worker: Worker): void {
  let handed: Handle | undefined
  const { process } = worker
  const send = process.send.bind(process) as (...args: unknown[]) => boolean
  process.send = (...args: readonly unknown[]): boolean => {
    const [message, handle] = args
    if (isHandingOver(message) && isHandle(handle)) handed = handle
    return send(...args)
  }
  // One that was acknowledged has been closed here already; to close it again has no effect.
  worker.once('exit', () => handed?.close())
}

function isHandingOver(message: unknown): boolean {
  return typeof message === 'object' && message !== null && 'act' in message && message.act === 'newconn'
}

function isHandle(handle: unknown): handle is Handle {
  return typeof handle === 'object' && handle !== null && 'close' in handle && typeof handle.close === 'function'
}
