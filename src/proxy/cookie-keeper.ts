import { GatewayError } from '../core/errors.ts'
import { type KeptCookie, nameInSetCookie, type ReceivedCookies } from '../http/cookie-jar.ts'
import type { SwitchedConnection, ExchangeControl, RawFields, ResponseHandler } from '../transport/transport.ts'
import type { GiveBack } from '../wire/read-buffers.ts'

export interface CookieKeeperParts {
  /** Whether the gateway keeps cookies of this name. */
  readonly isKept: (name: string) => boolean
  /** Whether the session remembers where the browser has cookies of this name. */
  readonly isNoted: (name: string) => boolean
  /** Stores cookies in the session. Absent when the request has no session. */
  readonly keep: ((cookies: ReceivedCookies) => Promise<void>) | undefined
  /** An upstream has set cookies in a response to a request without a session. They are dropped. */
  readonly onLost: (names: readonly string[]) => void
  /** An upstream has set cookies that browsers would reject. They are dropped. */
  readonly onRejected: (names: readonly string[]) => void
  /** Reads a cookie that the gateway keeps; `undefined` when it is invalid. */
  readonly read: (setCookie: string) => KeptCookie | undefined
  /** Reads a cookie as the browser will have it; `undefined` when browsers reject it. */
  readonly readInBrowser: (setCookie: string) => KeptCookie | undefined
}

/**
 * Takes the cookies that the gateway keeps out of a response, and notes those that the browser gets
 * and that belong to one person. The response waits until the session has them: the next request of
 * the browser may reach another process, and needs them there.
 */
export class CookieKeeper implements ResponseHandler, ExchangeControl {
  readonly #handler: ResponseHandler
  readonly #parts: CookieKeeperParts
  #control: ExchangeControl | undefined
  /** What has arrived while the cookies are being stored; `undefined` when nothing waits. */
  #held: (() => void)[] | undefined
  /** The handler has asked for a pause. */
  #isPaused = false

  constructor(handler: ResponseHandler, parts: CookieKeeperParts) {
    this.#handler = handler
    this.#parts = parts
  }

  onSend(control: ExchangeControl): boolean {
    this.#control = control
    return this.#handler.onSend(this)
  }

  pause(): void {
    this.#isPaused = true
    this.#control?.pause()
  }

  resume(): void {
    this.#isPaused = false
    if (this.#held === undefined) this.#control?.resume()
  }

  abort(reason: Error): void {
    this.#control?.abort(reason)
  }

  onResponse(status: number, statusMessage: string, fields: RawFields): void {
    const setsCookies = fields.some((name, at) => at % 2 === 0 && isSetCookie(name))
    // Most responses set no cookie.
    if (!setsCookies) return this.#handler.onResponse(status, statusMessage, fields)
    const { rest, ...cookies } = this.#split(fields)
    if (status < 200) this.#handler.onResponse(status, statusMessage, rest)
    else this.#afterStoring(cookies, () => this.#handler.onResponse(status, statusMessage, rest))
  }

  onShortPart(part: Buffer): void {
    if (this.#held === undefined) return this.#handler.onShortPart(part)
    const copy = Buffer.from(part)
    this.#held.push(() => this.#handler.onShortPart(copy))
  }

  onContent(part: Buffer, giveBack: GiveBack): void {
    if (this.#held === undefined) this.#handler.onContent(part, giveBack)
    else this.#held.push(() => this.#handler.onContent(part, giveBack))
  }

  onEnd(trailers: RawFields): void {
    if (this.#held === undefined) this.#handler.onEnd(trailers)
    else this.#held.push(() => this.#handler.onEnd(trailers))
  }

  onSwitch(connection: SwitchedConnection, fields: RawFields): void {
    const { rest, ...cookies } = this.#split(fields)
    this.#afterStoring(
      cookies,
      () => this.#handler.onSwitch(connection, rest),
      () => connection.socket.destroy(),
    )
  }

  onError(error: GatewayError): void {
    if (this.#held === undefined) this.#handler.onError(error)
    else this.#held.push(() => this.#handler.onError(error))
  }

  onDone(): void {
    this.#handler.onDone()
  }

  /** @param discard releases what the exchange holds when the cookies cannot be stored */
  #afterStoring(cookies: ReceivedCookies, proceed: () => void, discard?: () => void): void {
    const { keep, onLost } = this.#parts
    const { kept, inBrowser } = cookies
    if (kept.length > 0 && keep === undefined) onLost(kept.map(({ name }) => name))
    if (kept.length + inBrowser.length === 0 || keep === undefined) {
      proceed()
      return
    }
    const held = [proceed]
    this.#held = held
    this.#control?.pause()
    keep(cookies).then(
      () => this.#release(held),
      (error: unknown) => {
        // The browser has the other cookies. Until the session knows them, no upstream gets them.
        if (kept.length === 0) return this.#release(held)
        discard?.()
        this.#fail(error)
      },
    )
  }

  /** Passes on what was held, in order. */
  #release(held: (() => void)[]): void {
    this.#held = undefined
    try {
      for (const pass of held) pass()
    } catch (error) {
      this.#fail(error)
      return
    }
    if (!this.#isPaused) this.#control?.resume()
  }

  #fail(error: unknown): void {
    const failure =
      error instanceof GatewayError
        ? error
        : new GatewayError('ERR_INTERNAL', 'the cookies could not be stored', { cause: error })
    this.#held = []
    this.#handler.onError(failure)
    this.#control?.abort(failure)
  }

  #split(fields: RawFields): ReceivedCookies & { readonly rest: RawFields } {
    const { isKept, isNoted, onRejected, read, readInBrowser } = this.#parts
    const rest: string[] = []
    const kept: KeptCookie[] = []
    const inBrowser: KeptCookie[] = []
    const rejected: string[] = []
    for (let at = 0; at + 1 < fields.length; at += 2) {
      const [name, value] = [fields[at] as string, fields[at + 1] as string]
      const setCookie = isSetCookie(name) ? value : undefined
      const cookieName = setCookie === undefined ? '' : nameInSetCookie(setCookie)
      if (setCookie === undefined || !isKept(cookieName)) rest.push(name, value)
      if (setCookie === undefined) continue
      if (isKept(cookieName)) {
        const cookie = read(setCookie)
        if (cookie === undefined) rejected.push(cookieName)
        else kept.push(cookie)
      } else if (isNoted(cookieName)) inBrowser.push(...[readInBrowser(setCookie) ?? []].flat())
    }
    if (rejected.length > 0) onRejected(rejected)
    return { rest, kept, inBrowser }
  }
}

function isSetCookie(name: string): boolean {
  return name.length === 10 && name.toLowerCase() === 'set-cookie'
}
