import type { Socket } from 'node:net'

/** Receives data. Its memory is used again after the call, so the receiver copies what it keeps. */
export type Receiver = (bytes: Buffer) => void

/**
 * The memory that all connections read into. A read fills it and calls the receiver at once, so no
 * two connections need it at the same time, and a connection without data has no memory of its own.
 */
const memory = Buffer.allocUnsafeSlow(64 * 1024)

/**
 * A connection to an upstream that has switched to another protocol (RFC 9110 §7.8). It is paused
 * until it has a receiver. Its data does not pass through the streams of Node.js, because they cost
 * about as much as the system call that reads a short message.
 */
export class SwitchedConnection {
  /**
   * For writing, pausing and closing, and for all events except `data`. After a pause, data that
   * was read already may still arrive.
   */
  readonly socket: Socket
  readonly memory = memory
  /** Data that arrived before there was a receiver. */
  #early: Buffer[]
  #receive: Receiver = (bytes) => void this.#early.push(Buffer.from(bytes))

  /** @param rest what arrived together with the response */
  constructor(socket: Socket, rest: Buffer) {
    this.socket = socket
    this.#early = rest.length === 0 ? [] : [Buffer.from(rest)]
  }

  /** All data goes to `receive` from now on. The socket is read. */
  read(receive: Receiver): void {
    this.#receive = receive
    const early = this.#early
    this.#early = []
    for (const bytes of early) receive(bytes)
    this.socket.resume()
  }

  /** @internal The socket has read this many bytes into the memory. */
  arrive(length: number): void {
    this.#receive(memory.subarray(0, length))
  }
}
