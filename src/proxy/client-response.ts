import type { ClientMessage, ClientReply } from '../http/client-messages.ts'
import type { RawFields } from '../transport/transport.ts'
import type { Addresses } from './addresses.ts'

/**
 * Writes the response of an upstream to the client, with few writes: the head goes out together
 * with the first part, and a short response goes out in one write.
 */
export class ClientResponse {
  readonly #req: ClientMessage
  readonly #res: ClientReply
  /** The first part, if it is short. It is held until more arrives or the turn ends. */
  #first: Buffer | undefined
  /** Nothing is held any more: each part is written at once. */
  #isFlowing = false

  constructor(req: ClientMessage, res: ClientReply) {
    this.#req = req
    this.#res = res
  }

  /**
   * Sends the `Link` fields of an interim response 103 (RFC 8297). A client that is behind gets
   * none, because an upstream may send any number of them and hints are optional.
   */
  sendEarlyHints(fields: RawFields, addresses: Addresses): void {
    if (this.#res.socket?.writableNeedDrain === true) return
    // HTTP/1.0 has no interim responses: RFC 9110 §15.2.
    if (this.#req.httpVersionMinor === 0) return
    const link: string[] = []
    for (let at = 0; at + 1 < fields.length; at += 2)
      if (fields[at]?.toLowerCase() === 'link') link.push(addresses.response('link', fields[at + 1] ?? ''))
    try {
      if (link.length > 0) this.#res.writeEarlyHints({ link })
    } catch {
      // Node.js checks the syntax of a hint. A response without the hint is still correct.
    }
  }

  begin(status: number, statusMessage: string, fields: string[]): void {
    // A reason phrase outside ASCII has no agreed meaning, and clients ignore it: RFC 9112 §4.
    if (/^[\t\x20-\x7e]+$/.test(statusMessage)) this.#res.writeHead(status, statusMessage, fields)
    else this.#res.writeHead(status, fields)
  }

  /** Keeps the first part for the next write. Returns `false` for any other part. */
  hold(part: Buffer): boolean {
    if (this.#isFlowing || this.#first !== undefined) return false
    this.#first = part
    return true
  }

  /**
   * Writes a part. Returns `false` when the client is behind, until the next `drain` of the
   * response.
   * @param written absent for a short part, which is copied if it is kept
   */
  write(part: Buffer, written?: (error?: Error | null) => void): boolean {
    this.#writeFirst()
    this.#isFlowing = true
    return written === undefined ? this.#res.write(this.#kept(part)) : this.#res.write(part, written)
  }

  /** Sends what has arrived until now, because the response is not complete yet. */
  flush(): void {
    if (this.#first !== undefined) this.#writeFirst()
    else if (!this.#isFlowing && this.#req.method !== 'HEAD') this.#res.flushHeaders()
    this.#isFlowing = true
  }

  end(): void {
    if (this.#first !== undefined) this.#res.end(this.#kept(this.#first))
    else this.#res.end()
  }

  /** Closes the connection, so that the client sees that the response is incomplete. */
  abort(): void {
    const { socket } = this.#req
    // An HTTP/1.0 client may take the end of the connection for the end of the content. Only a
    // reset shows that the response is incomplete.
    if (this.#res.headersSent && this.#req.httpVersionMinor === 0 && !('encrypted' in socket)) socket.resetAndDestroy()
    else this.#res.destroy()
  }

  #writeFirst(): void {
    const first = this.#first
    this.#first = undefined
    if (first !== undefined) this.#res.write(first)
  }

  /** A short part in memory that the response may keep. */
  #kept(part: Buffer): Buffer {
    return this.#res.copiesShortParts === true ? part : Buffer.from(part)
  }
}

/** Whether a response was sent completely. Only then does Node.js detach the socket. */
export function isSentCompletely(res: ClientReply): boolean {
  return res.writableFinished && res.socket === null
}

/** @param fields names and values in turn */
export function isEventStream(fields: readonly string[]): boolean {
  for (let at = 0; at + 1 < fields.length; at += 2)
    if (fields[at]?.length === 12 && fields[at]?.toLowerCase() === 'content-type')
      return /^text\/event-stream\b/i.test(fields[at + 1] ?? '')
  return false
}
