import { Command, Redis } from 'ioredis'

/**
 * Calls back after everything that has arrived on the sockets is read. Node.js runs the timers that
 * are due before it reads. When the process was busy for longer than a timeout, the response may
 * have arrived in time. The second round is for TLS.
 */
export function afterSocketsAreRead(callback: () => void): void {
  setImmediate(() => setImmediate(callback))
}

/** What ioredis has in its timeouts, and does not declare. */
interface Internals {
  readonly stream: Redis['stream']
  readonly options: { readonly socketTimeout: number }
  readonly commandQueue: { readonly length: number }
  socketTimeoutTimer: NodeJS.Timeout | undefined
  setSocketTimeout(): void
}

interface CommandInternals {
  readonly isSettled: boolean
  _commandTimeoutTimer: NodeJS.Timeout | undefined
  reject(error: Error): void
}

// ioredis destroys a connection and rejects a command as soon as the timer is due. It offers no
// option for another check. The connections to the nodes of a Cluster are made by ioredis and are
// of this class too.
Object.assign(Redis.prototype, {
  setSocketTimeout(this: Internals): void {
    const { stream } = this
    const { socketTimeout } = this.options
    const timer = setTimeout(() => {
      afterSocketsAreRead(() => {
        // Data has arrived, or the connection was closed.
        if (this.socketTimeoutTimer !== timer) return
        this.socketTimeoutTimer = undefined
        stream.destroy(new Error(`no data within ${socketTimeout} ms`))
      })
    }, socketTimeout)
    this.socketTimeoutTimer = timer
    // ioredis has removed the answered commands from the queue by then, because its own listener is
    // the first.
    stream.once('data', () => {
      clearTimeout(this.socketTimeoutTimer)
      this.socketTimeoutTimer = undefined
      if (this.commandQueue.length > 0) this.setSocketTimeout()
    })
  },
})
Object.assign(Command.prototype, {
  setTimeout(this: CommandInternals, ms: number): void {
    this._commandTimeoutTimer ??= setTimeout(() => {
      afterSocketsAreRead(() => {
        if (!this.isSettled) this.reject(new Error('Command timed out'))
      })
    }, ms)
  },
})
