import type { Duplex } from 'node:stream'
import { GatewayError } from '../core/errors.ts'
import { type CookieScope, type KeptCookie, nameInSetCookie, readSetCookie } from '../http/cookie-jar.ts'
import type { ExchangeControl, RawFields, ResponseHandler } from '../transport/transport.ts'
import { fieldText } from './raw-fields.ts'

export interface CookieKeeperParts {
  /** Whether the gateway keeps cookies of this name. */
  readonly isKept: (name: string) => boolean
  /** Stores cookies in the session. Absent when the request has no session. */
  readonly keep: ((cookies: readonly KeptCookie[]) => Promise<void>) | undefined
  /** An upstream has set cookies without a session, where they cannot be kept. */
  readonly onLost: (names: readonly string[]) => void
  /** The request that the response belongs to. */
  readonly scopeOf: () => CookieScope
  readonly now: () => number
}

/**
 * Takes the cookies that the gateway keeps out of a response. The response waits until they are
 * stored: the next request of the browser may reach another process, and needs them there.
 */
export class CookieKeeper implements ResponseHandler, ExchangeControl {
  readonly #handler: ResponseHandler
  readonly #parts: CookieKeeperParts
  #control: ExchangeControl | undefined
  /** What has arrived while the cookies are being stored; `undefined` when nothing waits. */
  #held: (() => void)[] | undefined
  /** The handler does not read on. */
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
    const { rest, cookies } = this.#split(fields)
    if (status < 200) this.#handler.onResponse(status, statusMessage, rest)
    else this.#afterStoring(cookies, () => this.#handler.onResponse(status, statusMessage, rest))
  }

  onText(text: string): void {
    if (this.#held === undefined) this.#handler.onText(text)
    else this.#held.push(() => this.#handler.onText(text))
  }

  onContent(part: Buffer, giveBack: () => void): void {
    if (this.#held === undefined) this.#handler.onContent(part, giveBack)
    else this.#held.push(() => this.#handler.onContent(part, giveBack))
  }

  onEnd(trailers: RawFields): void {
    if (this.#held === undefined) this.#handler.onEnd(trailers)
    else this.#held.push(() => this.#handler.onEnd(trailers))
  }

  onSwitch(socket: Duplex, fields: RawFields): void {
    const { rest, cookies } = this.#split(fields)
    this.#afterStoring(
      cookies,
      () => this.#handler.onSwitch(socket, rest),
      () => socket.destroy(),
    )
  }

  onError(error: GatewayError): void {
    if (this.#held === undefined) this.#handler.onError(error)
    else this.#held.push(() => this.#handler.onError(error))
  }

  onDone(): void {
    this.#handler.onDone()
  }

  /** @param giveUp releases what the exchange holds when the cookies cannot be stored */
  #afterStoring(cookies: readonly KeptCookie[], goOn: () => void, giveUp?: () => void): void {
    const { keep, onLost } = this.#parts
    if (cookies.length > 0 && keep === undefined) onLost(cookies.map(({ name }) => name))
    if (cookies.length === 0 || keep === undefined) {
      goOn()
      return
    }
    const held = [goOn]
    this.#held = held
    this.#control?.pause()
    keep(cookies).then(
      () => this.#release(held),
      (error: unknown) => {
        giveUp?.()
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

  #split(fields: RawFields): { readonly rest: RawFields; readonly cookies: readonly KeptCookie[] } {
    // Most responses set no cookie.
    if (!fields.some((name, at) => at % 2 === 0 && isSetCookie(name))) return { rest: fields, cookies: [] }
    const { isKept, scopeOf, now } = this.#parts
    const rest: (Buffer | string)[] = []
    const cookies: KeptCookie[] = []
    for (let at = 0; at + 1 < fields.length; at += 2) {
      const [name, value] = [fields[at] as Buffer | string, fields[at + 1] as Buffer | string]
      const setCookie = isSetCookie(name) ? fieldText(value) : undefined
      if (setCookie === undefined || !isKept(nameInSetCookie(setCookie))) rest.push(name, value)
      else {
        const cookie = readSetCookie(setCookie, scopeOf(), now())
        if (cookie !== undefined) cookies.push(cookie)
      }
    }
    return { rest, cookies }
  }
}

function isSetCookie(name: Buffer | string): boolean {
  return name.length === 10 && fieldText(name).toLowerCase() === 'set-cookie'
}
