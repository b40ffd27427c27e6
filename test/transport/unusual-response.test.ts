import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Http1Transport } from '../../src/transport/http1/http1-transport.ts'
import type { ExchangeControl } from '../../src/transport/transport.ts'
import { rawUpstream } from '../proxy/support.ts'
import { until } from '../support/until.ts'

// undici reports an empty part when it resumes without data. If the handler pauses then, undici
// fails at the end of the connection with an error that nothing can catch.
test('A response that ends with its connection is complete when its reader pauses at each part', async (t) => {
  const content = 'x'.repeat(9_000)
  const port = await rawUpstream(t, (socket) => socket.end(`HTTP/1.0 200 OK\r\n\r\n${content}`))
  const target = { host: '127.0.0.1', port, tls: undefined, maxConnections: 1 }
  const transport = new Http1Transport({ ...target, connectTimeoutMs: 10_000, keepAliveMs: 0, lifetimeMs: 60_000 })
  t.after(() => transport.destroy())
  const parts: number[] = []
  let control: ExchangeControl | undefined
  let end: string | undefined
  const take = (bytes: number) => {
    parts.push(bytes)
    control?.pause()
    setTimeout(() => control?.resume())
  }
  transport.dispatch(
    { method: 'GET', path: '/', headers: ['Host', 'h'], identity: [], body: undefined, upgrade: undefined },
    {
      onSend: (given) => {
        control = given
        return true
      },
      onResponse() {},
      onShortPart: ({ length }) => take(length),
      onContent: ({ length }) => take(length),
      onEnd: () => void (end = 'whole'),
      onSwitch() {},
      onError: ({ message }) => void (end = message),
      onDone() {},
    },
  )

  await until('the response has ended', () => end !== undefined)
  assert.equal(end, 'whole')
  assert.ok(!parts.includes(0), 'a part is empty')
  assert.equal(
    parts.reduce((sum, bytes) => sum + bytes, 0),
    content.length,
  )
})
