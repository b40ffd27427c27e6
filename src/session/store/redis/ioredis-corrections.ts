import { Command, Redis } from 'ioredis'

/**
 * Corrections to ioredis that it has no option for. They replace members that are not part of its
 * public interface, so only this file knows them. They were tested with {@link testedWith}; a test
 * fails for another version.
 *
 * ioredis itself creates the connections to Sentinels and nodes of a Cluster, so the class is
 * corrected, not an object.
 *
 * A correction whose members ioredis lacks is left out. The store works without them, but a process
 * that was busy for longer than a timeout may close a connection or reject a command although the
 * response has arrived, and a TLS handshake with a Sentinel or within a Cluster that fails twice
 * may end the process.
 */
export const testedWith = /^6\.0\./

interface Library {
  readonly Redis: { readonly prototype: object }
  readonly Command: { readonly prototype: object }
}

interface Correction {
  readonly prototype: object
  readonly replaces: readonly string[]
  readonly members: PropertyDescriptorMap
}

/** Members of `Redis` that are private, and what is used of the public ones. */
interface RedisInternals {
  readonly stream: Redis['stream']
  readonly options: { readonly socketTimeout: number }
  readonly commandQueue: { readonly length: number }
  socketTimeoutTimer: NodeJS.Timeout | undefined
  setSocketTimeout(): void
}

/** Members of `Command` that are private, and what is used of the public ones. */
interface CommandInternals {
  readonly isSettled: boolean
  _commandTimeoutTimer: NodeJS.Timeout | undefined
  reject(error: Error): void
}

/**
 * ioredis listens for the first error of a socket only. A failed TLS handshake may emit a second
 * one, and an `error` event without a listener ends the process.
 *
 * ioredis adds a listener for each command that a replica rejects, for which Node.js would warn.
 */
const socketListeners = (): PropertyDescriptorMap => {
  const streams = new WeakMap<Redis, Redis['stream']>()
  return {
    stream: {
      configurable: true,
      get(this: Redis) {
        return streams.get(this)
      },
      set(this: Redis, stream: Redis['stream']) {
        streams.set(this, stream.on('error', () => {}).setMaxListeners(0))
      },
    },
  }
}

/** ioredis destroys a connection as soon as the timer is due, without reading the socket first. */
const socketTimeout: PropertyDescriptorMap = {
  setSocketTimeout: method(function setSocketTimeout(this: RedisInternals): void {
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
    // The listener of ioredis came first, so the queue has no commands with a reply.
    stream.once('data', () => {
      clearTimeout(this.socketTimeoutTimer)
      this.socketTimeoutTimer = undefined
      if (this.commandQueue.length > 0) this.setSocketTimeout()
    })
  }),
}

/** ioredis rejects a command as soon as the timer is due, without reading the socket first. */
const commandTimeout: PropertyDescriptorMap = {
  setTimeout: method(function setCommandTimeout(this: CommandInternals, ms: number): void {
    this._commandTimeoutTimer ??= setTimeout(() => {
      afterSocketsAreRead(() => {
        if (!this.isSettled) this.reject(new Error('Command timed out'))
      })
    }, ms)
  }),
}

function method(value: (this: never, ...args: never[]) => void): PropertyDescriptor {
  return { value, configurable: true, writable: true }
}

/** Installs the corrections that fit. Returns the corrected methods, and what takes all back. */
export function correctIoredis(library: Library = { Redis, Command }): {
  readonly corrected: readonly string[]
  readonly undo: () => void
} {
  const corrections: readonly Correction[] = [
    { prototype: library.Redis.prototype, replaces: [], members: socketListeners() },
    { prototype: library.Redis.prototype, replaces: ['setSocketTimeout'], members: socketTimeout },
    { prototype: library.Command.prototype, replaces: ['setTimeout'], members: commandTimeout },
  ]
  const applicable = corrections.filter(({ prototype, replaces }) =>
    replaces.every((name) => typeof Reflect.get(prototype, name) === 'function'),
  )
  const originals = applicable.flatMap(({ prototype, members }) =>
    Object.keys(members).map((name) => ({ prototype, name, before: Object.getOwnPropertyDescriptor(prototype, name) })),
  )
  for (const { prototype, members } of applicable) Object.defineProperties(prototype, members)
  return {
    corrected: applicable.flatMap(({ replaces }) => replaces),
    undo: () => {
      for (const { prototype, name, before } of originals)
        if (before === undefined) Reflect.deleteProperty(prototype, name)
        else Object.defineProperty(prototype, name, before)
    },
  }
}

/** The corrections of this process. A test takes them back to see that the store works without. */
export const corrections = correctIoredis()

/**
 * Calls back after the data on the sockets was read. Node.js runs due timers first: when the
 * process was busy for longer than a timeout, a reply that came in time may still be unread. TLS
 * needs a second round of the event loop.
 */
export function afterSocketsAreRead(callback: () => void): void {
  setImmediate(() => setImmediate(callback))
}
