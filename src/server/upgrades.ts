import { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { carriedProtocols, isSwitchAsked } from '../proxy/upgrade.ts'

/**
 * Whether a request is to be taken for an upgrade. One that offers nothing we would switch to is a request like any other, with
 * its content (RFC 9110 §7.8): Java's HttpClient offers h2c with each one that it sends, a form with a logout token included.
 */
function isUpgrade(req: IncomingMessage): boolean {
  return req.method === 'CONNECT' || carriedProtocols(req.headers.upgrade) !== ''
}

/**
 * The option of Node's servers that says which requests it takes for an upgrade. Node asks `req.upgrade` when the head has been read, and
 * stops to parse what follows when it is true.
 *
 * @param isOverrun whether a request, on this socket, must not even be queued: it is emitted as an upgrade, `isOverrun` is set on it,
 * and nothing behind it is parsed
 */
export function upgradeOptions(isOverrun: (socket: Socket) => boolean): {
  readonly IncomingMessage: typeof IncomingMessage
} {
  class ServerRequest extends IncomingMessage {
    declare parserSaysUpgrade: boolean | null
    declare isOverrun: boolean

    get upgrade(): boolean {
      return this.isOverrun || (this.parserSaysUpgrade === true && isUpgrade(this))
    }

    // Null: the message is being constructed. Otherwise all of its head has been read.
    set upgrade(value: boolean | null) {
      this.parserSaysUpgrade = value
      this.isOverrun = value !== null && isOverrun(this.socket)
    }
  }
  return { IncomingMessage: ServerRequest }
}

/** Whether a request that was emitted as an upgrade is one that must not be queued; see {@link upgradeOptions}. */
export function isOverrun(req: IncomingMessage): boolean {
  return 'isOverrun' in req && req.isOverrun === true
}

/**
 * Whether Node's parser took the request for an upgrade, which it is not. What arrived together with it is lost in there, and
 * nobody knows any more where the next request begins.
 */
export function isIgnoredUpgrade({ headers }: IncomingMessage): boolean {
  return isSwitchAsked(headers)
}
