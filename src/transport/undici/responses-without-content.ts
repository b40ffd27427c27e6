import type { Duplex } from 'node:stream'
import type { Dispatcher } from 'undici'
import { GatewayError } from '../../core/errors.ts'

/**
 * Whether a response without content (to HEAD, 1xx, 204 or 304) announces content all the same. An
 * upstream that does may send that content later, and the next request on the connection would get
 * it as its response (RFC 9112 §6.3, RFC 9110 §8.6).
 * @param contentLength the value of the field; `undefined` when there is none
 */
export function announcesContent(isChunked: boolean, contentLength: string | undefined): boolean {
  return isChunked || (contentLength !== undefined && !/^0+$/.test(contentLength))
}

/**
 * Stands between undici and a handler, and closes the connection after a 204 or 304 that announces
 * content: the response is complete with its head. undici would use the connection again, or fail
 * on the length. It closes the connection after HEAD by itself.
 */
export class ResponsesWithoutContent implements Dispatcher.DispatchHandler {
  readonly #handler: Dispatcher.DispatchHandler
  #isOver = false

  constructor(handler: Dispatcher.DispatchHandler) {
    this.#handler = handler
  }

  onRequestStart(controller: Dispatcher.DispatchController, context: unknown): void {
    this.#handler.onRequestStart?.(controller, context)
  }

  onRequestUpgrade(
    ...upgrade: [Dispatcher.DispatchController, number, Record<string, string | string[]>, Duplex]
  ): void {
    this.#handler.onRequestUpgrade?.(...upgrade)
  }

  /**
   * @throws {GatewayError} when an interim response announces content, because undici keeps the
   * connection
   */
  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[]>,
    statusMessage?: string,
  ): void {
    const isUnsafe =
      (status < 200 || status === 204 || status === 304) &&
      announcesContent(headers['transfer-encoding'] !== undefined, headers['content-length']?.toString())
    if (isUnsafe && status < 200)
      throw new GatewayError('ERR_UPSTREAM_ANSWER', `an interim response (${status}) announces content`)
    this.#handler.onResponseStart?.(controller, status, headers, statusMessage)
    if (!isUnsafe) return
    this.#isOver = true
    this.#handler.onResponseEnd?.(controller, {})
    controller.abort(complete)
  }

  onResponseData(controller: Dispatcher.DispatchController, part: Buffer): void {
    if (!this.#isOver) this.#handler.onResponseData?.(controller, part)
  }

  onResponseEnd(controller: Dispatcher.DispatchController, trailers: Record<string, string | string[]>): void {
    if (!this.#isOver) this.#handler.onResponseEnd?.(controller, trailers)
  }

  onResponseError(controller: Dispatcher.DispatchController, error: Error): void {
    if (!this.#isOver) this.#handler.onResponseError?.(controller, error)
  }
}

const complete = new GatewayError('ERR_INTERNAL', 'the response is complete with its head')
