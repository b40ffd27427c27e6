import { setTimeout as wait } from 'node:timers/promises'
import { Pool } from 'undici'
import type { Stand } from './stand.ts'

/** What the requests of an observer got. */
export interface Seen {
  readonly sent: number
  readonly served: number
  /** How the other requests ended: the status of each, `late`, or `closed`. */
  readonly refused: string
  /** In ms, of those that were served. */
  readonly p50: number
  readonly p99: number
}

/** Another signed-in person, who sends 50 requests a second and gives up after 5 s. */
export class Observer {
  readonly #pool: Pool
  readonly #path: string
  readonly #headers: Readonly<Record<string, string>>

  constructor({ port }: Stand, path: string, cookie: string) {
    this.#path = path
    this.#headers = cookie === '' ? {} : { cookie }
    const localAddress = '127.0.2.1'
    this.#pool = new Pool(`http://127.0.0.1:${port}`, { connections: 16, pipelining: 1, localAddress })
  }

  async watch(end: Promise<unknown>): Promise<Seen> {
    const [taken, asked]: [number[], Promise<unknown>[]] = [[], []]
    const refused = new Map<string, number>()
    let isOver = false
    void end.then(() => (isOver = true))
    while (!isOver) {
      asked.push(
        this.#ask().then((result) => {
          if (typeof result === 'number') taken.push(result)
          else refused.set(result, (refused.get(result) ?? 0) + 1)
        }),
      )
      await wait(20)
    }
    await Promise.all(asked)
    taken.sort((a, b) => a - b)
    const texts = [...refused].map(([what, count]) => `${what}: ${count}`)
    const at = (part: number) => taken[Math.ceil(taken.length * part) - 1] ?? NaN
    return { sent: asked.length, served: taken.length, refused: texts.join(', '), p50: at(0.5), p99: at(0.99) }
  }

  /** When five requests in succession took no longer than this, in ms on the monotonic clock. */
  async untilCalm(usualMs: number): Promise<number | undefined> {
    const [giveUpAt, fast] = [performance.now() + 20_000, 5]
    for (let inSuccession = 0; performance.now() < giveUpAt; await wait(20)) {
      const ms = await this.#ask()
      inSuccession = typeof ms === 'number' && ms <= usualMs ? inSuccession + 1 : 0
      if (inSuccession === fast) return performance.now()
    }
    return undefined
  }

  /** The time of a request in ms, or why it was not served. */
  async #ask(): Promise<number | string> {
    const startedAt = performance.now()
    try {
      const signal = AbortSignal.timeout(5_000)
      const response = await this.#pool.request({ method: 'GET', path: this.#path, headers: this.#headers, signal })
      await response.body.dump()
      return response.statusCode === 200 ? performance.now() - startedAt : String(response.statusCode)
    } catch (error) {
      return (error as Error).name === 'TimeoutError' ? 'late' : 'closed'
    }
  }

  close(): void {
    void this.#pool.destroy()
  }
}
