import { IncomingMessage } from 'node:http'
import { carriedProtocols, isSwitchAsked } from '../proxy/upgrade.ts'

/**
 * Whether a request is to be taken for an upgrade. One that offers nothing we would switch to is a request like any other, with
 * its content (RFC 9110 §7.8): Java's HttpClient offers h2c with each one that it sends, a form with a logout token included.
 */
function isUpgrade(req: IncomingMessage): boolean {
  return req.method === 'CONNECT' || carriedProtocols(req.headers.upgrade) !== ''
}

/** Node before 24.9 knows no `shouldUpgradeCallback`; it looks at the request itself once the head has been read. */
class RequestOfOlderNode extends IncomingMessage {
  declare parserSaysUpgrade: boolean | null

  get upgrade(): boolean {
    return this.parserSaysUpgrade === true && isUpgrade(this)
  }

  set upgrade(value: boolean | null) {
    this.parserSaysUpgrade = value
  }
}

interface UpgradeOptions {
  readonly shouldUpgradeCallback?: (req: IncomingMessage) => boolean
  readonly IncomingMessage?: typeof IncomingMessage
}

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)

/** For Node's servers. */
export const upgradeOptions: UpgradeOptions =
  major > 24 || (major === 24 && minor >= 9)
    ? { shouldUpgradeCallback: isUpgrade }
    : { IncomingMessage: RequestOfOlderNode }

/**
 * Whether Node's parser took the request for an upgrade, which it is not. What arrived together with it is lost in there, and
 * nobody knows any more where the next request begins.
 */
export function isIgnoredUpgrade({ headers }: IncomingMessage): boolean {
  return isSwitchAsked(headers)
}
