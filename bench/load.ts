// The clients: so many connections, each asking anew as soon as it is answered. Told what to do by the process above.
import { Pool } from 'undici'

export interface LoadOrder {
  readonly url: string
  readonly cookie: string
  readonly connections: number
  readonly ms: number
}

export interface LoadResult {
  readonly requests: number
  readonly failures: number
  readonly seconds: number
  /** In ms. */
  readonly p50: number
  readonly p99: number
}

async function load({ url, cookie, connections, ms }: LoadOrder): Promise<LoadResult> {
  const { origin, pathname } = new URL(url)
  const pool = new Pool(origin, { connections, pipelining: 1 })
  const headers = ['accept', 'text/html', 'user-agent', 'bench', ...(cookie === '' ? [] : ['cookie', cookie])]
  const latencies: number[] = []
  let failures = 0
  const startedAt = performance.now()
  const end = startedAt + ms

  const client = (): Promise<void> =>
    new Promise((resolve) => {
      const ask = () => {
        const askedAt = performance.now()
        if (askedAt >= end) return resolve()
        let bytes = 0
        let good = false
        const over = () => {
          if (good && bytes === 1024) latencies.push(performance.now() - askedAt)
          else failures += 1
          ask()
        }
        pool.dispatch(
          { method: 'GET', path: pathname, headers },
          {
            onRequestStart() {},
            onResponseStart: (_, status) => void (good = status === 200),
            onResponseData: (_, chunk) => void (bytes += chunk.length),
            onResponseEnd: over,
            onResponseError: over,
          },
        )
      }
      ask()
    })
  await Promise.all(Array.from({ length: connections }, client))
  const seconds = (performance.now() - startedAt) / 1000
  await pool.destroy()
  latencies.sort((a, b) => a - b)
  const at = (part: number) => latencies[Math.floor(latencies.length * part)] ?? NaN
  return { requests: latencies.length, failures, seconds, p50: at(0.5), p99: at(0.99) }
}

process.on('message', (order: LoadOrder) => {
  void load(order).then((result) => process.send?.(result))
})
