import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { SwitchingReply } from '../http/client-messages.ts'
import { closeLater } from '../http/response.ts'
import { checkedLine, PlainResponse } from './plain/plain-response.ts'

/**
 * The response of HTTP/1.1 to a request for another protocol, on the socket that Node's server has
 * released. Unless the protocol is switched, the connection closes afterwards.
 */
export class UpgradeResponse extends PlainResponse implements SwitchingReply {
  readonly #client: Duplex

  constructor(socket: Duplex, req: IncomingMessage) {
    const responded = () => closeLater(socket.resume())
    super({ socket, keepAliveFields: '', mayContinue: false, responded }, req)
    this.#client = socket
    socket.on('drain', this.#onDrain).once('end', this.#onEnd).once('close', this.#onClose)
  }

  switchProtocols(fields: readonly string[], { upgrade }: { readonly upgrade: string }): boolean {
    const socket = this.#client
    socket.off('drain', this.#onDrain).off('end', this.#onEnd).off('close', this.#onClose)
    let text = `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade${checkedLine('Upgrade', upgrade)}`
    for (let at = 0; at + 1 < fields.length; at += 2)
      text += checkedLine(fields[at] as string, fields[at + 1] as string)
    socket.write(`${text}\r\n\r\n`, 'latin1')
    return true
  }

  readonly #onDrain = (): void => void this.emit('drain')

  /** A client that ends its side before the response has begun is gone. */
  readonly #onEnd = (): void => {
    if (!this.headersSent) this.#client.destroy()
  }

  readonly #onClose = (): void => this.closed()
}
