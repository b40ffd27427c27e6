import { EventEmitter } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { ClientMessage } from '../../http/client-messages.ts'
import type { LentPart, ReusedReads } from '../../wire/read-buffers.ts'
import { atEndOfTurn } from '../../wire/timing.ts'
import type { RequestHead } from './request-head.ts'

/** What a request needs of its connection. */
export interface RequestConnection {
  readonly socket: Socket
  /** Stops reading from the client, or goes on. */
  holdContent(isHeld: boolean): void
}

/** How many bytes of content are kept in memory while its reader pauses. */
const maxHeldBytes = 64 * 1024

/**
 * A request whose head is plain. Its content is delivered like that of Node's `IncomingMessage`:
 * nothing is lost before the first listener for `data`, and nothing arrives while it is paused.
 */
export class PlainRequest extends EventEmitter implements ClientMessage {
  method: string
  url: string
  readonly httpVersion = '1.1'
  readonly httpVersionMinor = 1
  readonly socket: Socket
  readonly headers: IncomingMessage['headers']
  readonly rawHeaders: string[]
  readonly isKeepAlive: boolean
  readonly #connection: RequestConnection
  /** How many bytes of content have not arrived yet. */
  #left: number
  #held: LentPart[] = []
  #heldBytes = 0
  /** The memory of the parts that were lent and not given back, in bytes. */
  #lentBytes = 0
  #state: 'waiting' | 'flowing' | 'paused' = 'waiting'
  #isDelivering = false
  #isClosed = false
  readableEnded = false

  constructor(connection: RequestConnection, head: RequestHead) {
    super()
    this.#connection = connection
    this.socket = connection.socket
    this.method = head.method
    this.url = head.url
    this.headers = head.headers
    this.rawHeaders = head.rawHeaders as string[]
    this.isKeepAlive = head.isKeepAlive
    this.#left = head.contentLength
  }

  /** How many bytes of content are to come, if they can be passed on at once; otherwise 0. */
  get expectedBytes(): number {
    return this.#state === 'flowing' ? this.#left : 0
  }

  get complete(): boolean {
    return this.#left === 0
  }

  /** The memory of its content, in bytes: what waits here, and the buffers that were lent. */
  get heldBytes(): number {
    const copied = this.#held.filter(({ lentBytes }) => lentBytes === 0)
    return copied.reduce((sum, { part }) => sum + part.length, this.#lentBytes)
  }

  get destroyed(): boolean {
    return this.#isClosed
  }

  override on(event: string, listener: Parameters<EventEmitter['on']>[1]): this {
    super.on(event, listener)
    if (event === 'data' && this.#state === 'waiting') this.resume()
    return this
  }

  pause(): this {
    this.#state = 'paused'
    return this
  }

  resume(): this {
    this.#state = 'flowing'
    // The caller may still have to add its listeners.
    if (!this.#isDelivering) atEndOfTurn(deliverLater, this)
    return this
  }

  isPaused(): boolean {
    return this.#state === 'paused'
  }

  /**
   * Takes the content out of `bytes`.
   * @param reads lends the bytes; absent: they are not overwritten
   * @returns how many bytes belong to this request
   */
  arrive(bytes: Buffer, reads: ReusedReads | undefined): number {
    const taken = Math.min(this.#left, bytes.length)
    if (taken === 0) return 0
    this.#left -= taken
    const part = taken === bytes.length ? bytes : bytes.subarray(0, taken)
    this.#held.push(reads === undefined ? { part, giveBack: nothing, lentBytes: 0 } : this.#counted(reads.lend(part)))
    this.#heldBytes += taken
    this.deliver()
    if (this.#heldBytes >= maxHeldBytes && this.#left > 0) this.#connection.holdContent(true)
    return taken
  }

  /** The same part, whose memory counts until it is given back. */
  #counted(lent: LentPart): LentPart {
    let { lentBytes } = lent
    if (lentBytes === 0) return lent
    this.#lentBytes += lentBytes
    const giveBack = (error?: Error | null) => {
      this.#lentBytes -= lentBytes
      lentBytes = 0
      lent.giveBack(error)
    }
    return { ...lent, giveBack }
  }

  /** Content that nothing reads yet stays with the client, whose request may have to wait. */
  holdUnused(): void {
    if (this.#state === 'waiting' && this.#left > 0) this.#connection.holdContent(true)
  }

  /** Emits what was held, and the end. */
  deliver(): void {
    if (this.#isDelivering) return
    this.#isDelivering = true
    while (this.#isFlowing() && this.#held.length > 0) {
      const { part, giveBack } = this.#held.shift() as LentPart
      this.#heldBytes -= part.length
      // Without a listener, the content is dropped.
      if (!this.emit('data', part, giveBack)) giveBack()
    }
    this.#isDelivering = false
    if (!this.#isFlowing() || this.#isClosed) return
    if (this.#left > 0) this.#connection.holdContent(false)
    else if (!this.readableEnded) {
      this.readableEnded = true
      this.emit('end')
    }
  }

  /** The response has ended, or the connection is closed. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    for (const { giveBack } of this.#held.splice(0)) giveBack()
    this.emit('close')
  }

  #isFlowing(): boolean {
    return this.#state === 'flowing'
  }
}

function nothing(): void {}

function deliverLater(request: PlainRequest): void {
  request.deliver()
}
