import type { Worker } from 'node:cluster'
import { isObject } from '../core/json.ts'
import { privatePartsLeftOut } from '../core/node-private-parts.ts'

/** How often it is tested whether the last messages of a dead worker have arrived, in ms. */
const retestMs = 5

interface Handle {
  close(): void
}

/**
 * Passes the connections on to other workers that were sent to a worker which dies before it
 * acknowledges them. `node:cluster` would wait for the acknowledgement without end, and so would
 * the client, which may be the provider with a Logout Token. When no other worker serves, the
 * connections are closed, so that their clients try again.
 *
 * No byte of a client is lost: a worker sends the acknowledgement before it reads from the
 * connection, and all messages of the dead worker are read here before a connection is passed on.
 *
 * This function reads and writes the internal messages of `node:cluster` (tested by
 * test/regressions/a-connection-handed-to-a-dead-worker-is-lost.test.ts). If they have another
 * form, it does nothing.
 *
 * @param othersServe whether another worker serves
 */
export function passOnUnacknowledged(worker: Worker, othersServe: () => boolean): void {
  if (privatePartsLeftOut() !== undefined) return
  /** By the number of the message, which the acknowledgement repeats. */
  const unacknowledged = new Map<number, Handle>()
  const { process } = worker
  const send = process.send.bind(process) as (...args: unknown[]) => boolean
  process.send = (...args: readonly unknown[]): boolean => {
    const [message, handle] = args
    if (isNewConnection(message) && isHandle(handle)) unacknowledged.set(message.seq, handle)
    return send(...args)
  }
  process.on('internalMessage', (message: unknown) => {
    if (isAcknowledgement(message)) unacknowledged.delete(message.ack)
  })
  const passOn = () => {
    // Node.js emits no `disconnect` while a connection is unacknowledged.
    if (worker.isConnected()) return void setTimeout(passOn, retestMs)
    if (unacknowledged.size === 0) return
    // Without `disconnect`, `node:cluster` would send it connections still.
    worker.disconnect()
    for (const [seq, handle] of unacknowledged) {
      // A worker that stops responds so: it has not taken the connection.
      if (othersServe()) process.emit('internalMessage', { cmd: 'NODE_CLUSTER', ack: seq, accepted: false }, undefined)
      else handle.close()
    }
  }
  worker.once('exit', passOn)
}

function isNewConnection(message: unknown): message is { readonly seq: number } {
  return isObject(message) && message['act'] === 'newconn' && typeof message['seq'] === 'number'
}

function isAcknowledgement(message: unknown): message is { readonly ack: number } {
  return isObject(message) && typeof message['ack'] === 'number'
}

function isHandle(handle: unknown): handle is Handle {
  return isObject(handle) && typeof handle['close'] === 'function'
}
