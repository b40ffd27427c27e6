// The clients, in a process of their own, told what to do by the bench.
import { once } from 'node:events'
import { Connection } from './connection.ts'
import type { LoadMessage, LoadOrder, LoadResult, Visitor } from './order.ts'

const say = (message: LoadMessage) => void process.send?.(message)

process.on('message', (order: LoadOrder | 'go') => {
  if (order === 'go') return
  carryOut(order).then(
    (result) => say({ kind: 'done', result }),
    (error: unknown) => say({ kind: 'failed', reason: error instanceof Error ? error.message : String(error) }),
  )
})

async function carryOut(order: LoadOrder): Promise<LoadResult> {
  let fail: (reason: Error) => void = () => {}
  const failed = new Promise<never>((_, reject) => (fail = reject))
  failed.catch(() => {})
  const connections = await Promise.all(
    Array.from({ length: order.connections }, () => Connection.open(order, (reason) => fail(new Error(reason)))),
  )
  const requests = order.visitors.map((visitor) => requestOf(order, visitor))
  try {
    say({ kind: 'connected' })
    await once(process, 'message')
    const load = order.rate === undefined ? asFastAsAnswered : atRate
    return await Promise.race([load(connections, requests, order), failed])
  } finally {
    for (const connection of connections) connection.close()
  }
}

/** What a browser on a page sends, or nearly. */
function requestOf({ port, bodyBytes, uploadBytes }: LoadOrder, { cookie, person }: Visitor): Buffer {
  const lines = [
    uploadBytes === undefined ? `GET /bytes/${bodyBytes} HTTP/1.1` : 'POST /upload HTTP/1.1',
    `host: 127.0.0.1:${port}`,
    'user-agent: bench',
    'accept: text/html',
    ...(uploadBytes === undefined ? [] : [`content-length: ${uploadBytes}`, 'content-type: application/octet-stream']),
    ...(cookie === '' ? [] : [`cookie: ${cookie}`]),
    ...(person === undefined ? [] : [`x-bench-person: ${person}`]),
  ]
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), Buffer.alloc(uploadBytes ?? 0, 'x')])
}

/** Each connection asks anew as soon as it is answered. */
async function asFastAsAnswered(
  connections: readonly Connection[],
  requests: readonly Buffer[],
  { ms }: LoadOrder,
): Promise<LoadResult> {
  const latencies: number[] = []
  let next = 0
  const startedAt = performance.now()
  const client = (connection: Connection): Promise<void> =>
    new Promise((resolve) => {
      let askedAt = 0
      const ask = () => {
        connection.ask(requests[next] as Buffer, onAnswer)
        next = next + 1 === requests.length ? 0 : next + 1
      }
      const onAnswer = () => {
        const now = performance.now()
        latencies.push(now - askedAt)
        if (now - startedAt >= ms) return resolve()
        askedAt = now
        ask()
      }
      askedAt = performance.now()
      ask()
    })
  await Promise.all(connections.map(client))
  return resultOf(latencies, startedAt)
}

/**
 * Requests at even distances, whatever becomes of those before; one that finds every connection busy waits, and its wait counts. What is
 * due is looked for each 100 µs or so: timers are too coarse, and to look all the time would take the processor from the upstream.
 */
async function atRate(
  connections: readonly Connection[],
  requests: readonly Buffer[],
  { ms, rate = 1 }: LoadOrder,
): Promise<LoadResult> {
  const latencies: number[] = []
  const idle = [...connections]
  const total = Math.round((rate * ms) / 1000)
  const startedAt = performance.now()
  const nap = new Int32Array(new SharedArrayBuffer(4))
  let sent = 0
  await new Promise<void>((resolve) => {
    const sendDue = () => {
      const now = performance.now()
      while (sent < total) {
        const dueAt = startedAt + (sent / rate) * 1000
        const connection = dueAt <= now ? idle.pop() : undefined
        if (connection === undefined) break
        connection.ask(requests[sent % requests.length] as Buffer, () => {
          latencies.push(performance.now() - dueAt)
          idle.push(connection)
          if (latencies.length === total) resolve()
        })
        sent += 1
      }
      if (latencies.length === total) return
      Atomics.wait(nap, 0, 0, 0.05)
      setImmediate(sendDue)
    }
    sendDue()
  })
  return resultOf(latencies, startedAt)
}

function resultOf(latencies: number[], startedAt: number): LoadResult {
  const seconds = (performance.now() - startedAt) / 1000
  latencies.sort((a, b) => a - b)
  const at = (part: number) => latencies[Math.ceil(latencies.length * part) - 1] ?? NaN
  return { requests: latencies.length, seconds, p50: at(0.5), p99: at(0.99) }
}
