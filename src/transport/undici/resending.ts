import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Dispatcher } from 'undici'

/** Errors that closed a connection that was used again, before a byte of the response. */
const errorsAfterReuse = new WeakSet<Error>()

/**
 * Remembers the error that closes the connection if it `isUnanswered` then. undici reports the same
 * error for the request.
 */
export function noteReuse(socket: Socket, isUnanswered: () => boolean): void {
  const { destroy } = socket
  const note = (error: Error) => {
    if (isUnanswered()) errorsAfterReuse.add(error)
  }
  socket.on('error', note)
  socket.destroy = function (this: Socket, error?: Error) {
    if (error !== undefined && error !== null) note(error)
    return destroy.call(this, error)
  }
}

/**
 * Stands between undici and a handler. When a connection that is used again is closed before a byte
 * of the response has arrived, it has the request sent once more. Only for requests that are safe
 * and have no content (RFC 9110 §9.2.2).
 */
export class Resending implements Dispatcher.DispatchHandler {
  readonly #handler: Dispatcher.DispatchHandler
  readonly #resend: (handler: Dispatcher.DispatchHandler) => void
  #hasBegun = false

  /** @param resend sends the request on a new connection */
  constructor(handler: Dispatcher.DispatchHandler, resend: (handler: Dispatcher.DispatchHandler) => void) {
    this.#handler = handler
    this.#resend = resend
  }

  onRequestStart(controller: Dispatcher.DispatchController, context: unknown): void {
    this.#handler.onRequestStart?.(controller, context)
  }

  onRequestUpgrade(
    ...upgrade: [Dispatcher.DispatchController, number, Record<string, string | string[]>, Duplex]
  ): void {
    this.#handler.onRequestUpgrade?.(...upgrade)
  }

  onResponseStart(
    ...start: [Dispatcher.DispatchController, number, Record<string, string | string[]>, string | undefined]
  ): void {
    this.#hasBegun = true
    this.#handler.onResponseStart?.(...start)
  }

  onResponseData(controller: Dispatcher.DispatchController, part: Buffer): void {
    this.#handler.onResponseData?.(controller, part)
  }

  onResponseEnd(controller: Dispatcher.DispatchController, trailers: Record<string, string | string[]>): void {
    this.#handler.onResponseEnd?.(controller, trailers)
  }

  onResponseError(controller: Dispatcher.DispatchController, error: Error): void {
    if (!this.#hasBegun && !controller?.aborted && errorsAfterReuse.has(error)) this.#resend(this.#handler)
    else this.#handler.onResponseError?.(controller, error)
  }
}
