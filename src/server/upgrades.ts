import { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { carriedProtocols, isSwitchAsked } from '../proxy/upgrade.ts'

export interface UpgradeRules {
  /** The protocols that any upstream lists, at the moment. */
  readonly listed: () => readonly string[]
  /**
   * Whether a request on this socket must not even be queued. It is emitted as an upgrade, {@link
   * isOverrun} tells it, and nothing behind it is parsed.
   */
  readonly isFull: (socket: Socket) => boolean
}

/**
 * The option of Node's servers that decides which requests are upgrades. Node reads `req.upgrade`
 * when the head has been parsed, and stops parsing when it is true. A request that offers no listed
 * protocol is an ordinary request with its content (RFC 9110 §7.8). For example, Java's HttpClient
 * offers h2c with each request, also with a form that contains a Logout Token.
 *
 * That Node assigns and reads `upgrade` in this order is not documented (Node.js 20 to 24;
 * test/regressions/an-offer-of-h2c-is-taken-for-an-upgrade.test.ts fails when it changes). A
 * version that does not treats each such offer as an upgrade, which the gateway refuses.
 */
export function upgradeOptions({ listed, isFull }: UpgradeRules): { readonly IncomingMessage: typeof IncomingMessage } {
  class ServerRequest extends IncomingMessage {
    declare parserSaysUpgrade: boolean | null
    declare isOverrun: boolean

    get upgrade(): boolean {
      return this.isOverrun || (this.parserSaysUpgrade === true && this.#isUpgrade())
    }

    // Null: the message is being constructed. Otherwise all of its head has been read.
    set upgrade(value: boolean | null) {
      this.parserSaysUpgrade = value
      this.isOverrun = value !== null && isFull(this.socket)
    }

    #isUpgrade(): boolean {
      return this.method === 'CONNECT' || carriedProtocols(this.headers.upgrade, listed()) !== ''
    }
  }
  return { IncomingMessage: ServerRequest }
}

/**
 * Whether a request that was emitted as an upgrade is one that must not be queued; see {@link
 * UpgradeRules}.
 */
export function isOverrun(req: IncomingMessage): boolean {
  return 'isOverrun' in req && req.isOverrun === true
}

/**
 * Whether Node's parser took the request for an upgrade, which it is not. What arrived together
 * with it is lost in there, and nobody knows any more where the next request begins.
 */
export function isIgnoredUpgrade({ headers }: IncomingMessage): boolean {
  return isSwitchAsked(headers)
}
