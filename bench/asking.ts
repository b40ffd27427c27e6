import { setTimeout as wait } from 'node:timers/promises'
import { Client } from 'undici'

/**
 * A client with one connection. It sends the next request a moment after each response, until a
 * request is denied. When the session ends, a pending request is aborted and sent once more.
 */
export class Asking {
  /** Resolves to the time at which a request was denied. */
  readonly denied: Promise<number>
  lastAdmittedSentAt = -Infinity
  readonly #client: Client
  readonly #cookie: string
  readonly #firstServed: Promise<void>

  constructor(url: string, cookie: string) {
    this.#client = new Client(url)
    this.#cookie = cookie
    const first = this.#ask()
    this.#firstServed = first.then((status) => {
      if (status !== 200) throw new Error(`a signed-in request got ${status}`)
    })
    this.denied = this.#firstServed.then(() => this.#untilDenied())
  }

  served(): Promise<void> {
    return this.#firstServed
  }

  close(): Promise<void> {
    return this.#client.destroy()
  }

  async #untilDenied(): Promise<number> {
    for (;;) {
      const sentAt = performance.now()
      const status = await this.#ask().catch(() => undefined)
      if (status === undefined) continue
      if (status === 401) return performance.now()
      if (status !== 200) throw new Error(`a request got ${status}`)
      this.lastAdmittedSentAt = sentAt
      // Requests without a pause would take the processors from the gateway.
      await wait(1)
    }
  }

  async #ask(): Promise<number> {
    const { statusCode, body } = await this.#client.request({
      method: 'GET',
      path: '/page',
      headers: { cookie: this.#cookie },
    })
    await body.dump()
    return statusCode
  }
}
