// When the clients send their requests.
import type { LoadResult } from './order.ts'

/** A client with at most one pending request or message. */
export interface Asker {
  /** Calls `answered` when the response is complete. */
  ask(request: Buffer, answered: () => void): void
}

/**
 * Each client sends a request as soon as it has the previous response. Ends after `ms`, with the
 * last response.
 */
export async function asFastAsItResponds(
  askers: readonly Asker[],
  requests: readonly Buffer[],
  ms: number,
): Promise<LoadResult> {
  const latencies: number[] = []
  let next = 0
  const startedAt = performance.now()
  const keepAsking = (asker: Asker): Promise<void> =>
    new Promise((resolve) => {
      let askedAt = performance.now()
      const ask = () => {
        const request = requests[next] as Buffer
        next = next + 1 === requests.length ? 0 : next + 1
        asker.ask(request, onResponse)
      }
      const onResponse = () => {
        const now = performance.now()
        latencies.push(now - askedAt)
        if (now - startedAt >= ms) return resolve()
        askedAt = now
        ask()
      }
      ask()
    })
  await Promise.all(askers.map(keepAsking))
  return resultOf(latencies, startedAt)
}

/** The pause between two checks for due requests, in ms. */
const nap = 0.05

/**
 * How long latencies are ignored at the start, in ms. V8 compiles the code of the clients in this
 * time, which would count as latency.
 */
const leadMs = 500

/**
 * Sends `rate` requests per second at even intervals, without waiting for earlier responses. A due
 * request without an idle client waits, and its wait counts as latency. Timers are too coarse for
 * this. A busy loop would take processor time from the upstream.
 */
export async function atRate(
  askers: readonly Asker[],
  requests: readonly Buffer[],
  ms: number,
  rate: number,
): Promise<LoadResult> {
  const latencies: number[] = []
  const idle = [...askers]
  const total = Math.round((rate * ms) / 1000)
  const lead = Math.round((rate * Math.min(leadMs, ms / 4)) / 1000)
  let answered = 0
  const startedAt = performance.now()
  const sleeper = new Int32Array(new SharedArrayBuffer(4))
  let sent = 0
  await new Promise<void>((resolve) => {
    const sendDue = () => {
      const now = performance.now()
      while (sent < total) {
        const dueAt = startedAt + (sent / rate) * 1000
        const asker = dueAt <= now ? idle.pop() : undefined
        if (asker === undefined) break
        const request = requests[sent % requests.length] as Buffer
        const isCounted = sent >= lead
        sent += 1
        asker.ask(request, () => {
          answered += 1
          if (isCounted) latencies.push(performance.now() - dueAt)
          idle.push(asker)
        })
      }
      if (answered === total) return resolve()
      Atomics.wait(sleeper, 0, 0, nap)
      setImmediate(sendDue)
    }
    sendDue()
  })
  return resultOf(latencies, startedAt, total)
}

function resultOf(latencies: number[], startedAt: number, count = latencies.length): LoadResult {
  const seconds = (performance.now() - startedAt) / 1000
  latencies.sort((a, b) => a - b)
  const at = (part: number) => latencies[Math.ceil(latencies.length * part) - 1] ?? NaN
  return { count, seconds, p50: at(0.5), p99: at(0.99) }
}
