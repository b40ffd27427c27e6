import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import type { Dispatcher } from 'undici'
import { Client } from '../../core/undici.ts'
import { maxHeadBytes } from '../http1/response-head.ts'
import { ResponsesWithoutContent } from './responses-without-content.ts'
import { forgiving } from './socket.ts'

/**
 * The rest of a connection, for undici to read an answer from that is not plain. The request has
 * been written already: what undici writes goes nowhere. Bytes are unchanged, and come no faster
 * than undici takes them.
 */
export class HandedOver extends Duplex {
  readonly #socket: Socket
  #first: Buffer | undefined

  constructor(socket: Socket, first: Buffer) {
    super({ allowHalfOpen: true })
    this.#socket = socket
    this.#first = first
    // Whoever reads hears it, too; undici does not always.
    this.on('error', () => {})
  }

  /** More has arrived. */
  arrive(bytes: Buffer): void {
    if (this.#first !== undefined) this.#first = Buffer.concat([this.#first, bytes])
    else if (!this.push(bytes)) this.#socket.pause()
  }

  override _read(): void {
    this.#socket.resume()
  }

  /** undici asks now: what came before it did would look unasked to it. */
  override _write(_: Buffer, __: BufferEncoding, written: () => void): void {
    this.#begin()
    written()
  }

  /** The upstream sends no more. */
  noMore(): void {
    this.#begin()
    if (!this.readableEnded && !this.destroyed) this.push(null)
  }

  #begin(): void {
    const first = this.#first
    this.#first = undefined
    if (first !== undefined) this.push(first)
  }
}

export interface Rest {
  readonly method: string
  /** What has been read already, and is read again. */
  readonly bytes: Buffer
  readonly socket: Socket
}

/** Has undici read an answer from its beginning, whose first bytes have been read already. */
export function handOver({ method, bytes, socket }: Rest, handler: Dispatcher.DispatchHandler): HandedOver {
  const rest = new HandedOver(socket, bytes)
  const client = new Client('http://upstream', {
    connect: (_, connected) => queueMicrotask(() => connected(null, forgiving(rest as unknown as Socket))),
    headersTimeout: 0,
    bodyTimeout: 0,
    maxHeaderSize: maxHeadBytes,
  })
  const close = () => void client.destroy().catch(() => {})
  client.dispatch(
    { method: method as Dispatcher.HttpMethod, path: '/', reset: true },
    new ResponsesWithoutContent({
      ...handler,
      onResponseEnd: (reader, trailers) => {
        handler.onResponseEnd?.(reader, trailers)
        close()
      },
      onResponseError: (reader, error) => {
        handler.onResponseError?.(reader, error)
        close()
      },
    }),
  )
  return rest
}
