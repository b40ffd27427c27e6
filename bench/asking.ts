import { setTimeout as wait } from 'node:timers/promises'
import { Client } from 'undici'

/**
 * A client with one connection, which asks anew a moment after it was answered, until it is denied.
 * A request that is in progress when the session ends is aborted, and sent once more.
 */
export class Asking {
  /** Resolves to when it was denied. */
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
      if (status !== 200) throw new Error(`a signed-in request was answered with ${status}`)
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
      if (status !== 200) throw new Error(`a request was answered with ${status}`)
      this.lastAdmittedSentAt = sentAt
      // All the time is too often: what is measured would wait for processors.
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
