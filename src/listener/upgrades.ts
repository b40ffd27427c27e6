import { IncomingMessage, type ServerOptions } from 'node:http'
import type { Socket } from 'node:net'
import { carriedProtocols, requestsUpgrade } from '../http/upgrade-field.ts'

export interface UpgradeRules {
  /** The protocols that any upstream lists, at the moment. */
  readonly listed: () => readonly string[]
  /**
   * Whether too many requests wait on this socket. One more request is emitted as an upgrade, so
   * that Node parses nothing after it. {@link isOverrun} recognizes it.
   */
  readonly isFull: (socket: Socket) => boolean
}

/**
 * The options of Node's servers that decide which requests are upgrades. Node reads `req.upgrade`
 * when the head has been parsed, and stops parsing when it is true. A request that offers no listed
 * protocol is an ordinary request with its content (RFC 9110 §7.8). For example, Java's HttpClient
 * offers h2c with each request, also with a form that contains a Logout Token.
 *
 * Node does not document that it assigns and reads `upgrade` in this order (tested with Node.js 22
 * and 24 by test/regressions/an-offer-of-h2c-is-taken-for-an-upgrade.test.ts). In a version with
 * another order, `shouldUpgradeCallback` decides, and the listener closes a connection on which too
 * many requests wait. Before Node.js 22.21 and 24.9, which introduced that option, each such offer
 * would be an upgrade. The gateway refuses those with content.
 */
export function upgradeOptions({
  listed,
  isFull,
}: UpgradeRules): Required<Pick<ServerOptions<typeof IncomingMessage>, 'IncomingMessage' | 'shouldUpgradeCallback'>> {
  const isUpgrade = ({ method, headers }: IncomingMessage) =>
    method === 'CONNECT' || carriedProtocols(headers.upgrade, listed()) !== ''

  class ServerRequest extends IncomingMessage {
    declare parserSaysUpgrade: boolean | null
    declare isOverrun: boolean

    get upgrade(): boolean {
      return this.isOverrun || (this.parserSaysUpgrade === true && isUpgrade(this))
    }

    // Null while the message is constructed; otherwise its head has been read.
    set upgrade(value: boolean | null) {
      this.parserSaysUpgrade = value
      this.isOverrun = value !== null && isFull(this.socket)
    }
  }
  return { IncomingMessage: ServerRequest, shouldUpgradeCallback: (req) => isOverrun(req) || isUpgrade(req) }
}

/** Whether a request was emitted as an upgrade because too many wait: see {@link UpgradeRules}. */
export function isOverrun(req: IncomingMessage): boolean {
  return 'isOverrun' in req && req.isOverrun === true
}

/**
 * Whether Node's parser treats the request as an upgrade although it is an ordinary one. The parser
 * loses the bytes that arrived together with the request, so it is unknown where the next request
 * begins.
 */
export function isIgnoredUpgrade({ headers }: IncomingMessage): boolean {
  return requestsUpgrade(headers)
}
