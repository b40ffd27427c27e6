import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import fc from 'fast-check'
import { httpUpstream } from '../../proxy/support.ts'
import { until } from '../../support/until.ts'
import { startWorld } from '../../support/world.ts'

const upstreamSettings = 'rules: [{ path: /*, access: public }]'
const runs = Number(process.env['FRONT_CLIENTS'] ?? 25)

/** A request, and what its response has to contain. */
interface Sent {
  readonly text: string
  readonly expected: string
}

const content = fc.nat({ max: 100_000 }).map((length) => 'x'.repeat(length))
const small = fc.nat({ max: 100 }).map((length) => 'y'.repeat(length))
const id = fc.nat({ max: 1e9 })
const sent: fc.Arbitrary<Sent> = fc.oneof(
  id.map((n) => ({ text: `GET /${n} HTTP/1.1\r\nHost: h\r\n\r\n`, expected: `[GET /${n} 0]` })),
  fc.tuple(id, fc.oneof({ weight: 3, arbitrary: small }, content)).map(([n, body]) => ({
    text: `POST /${n} HTTP/1.1\r\nHost: h\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    expected: `[POST /${n} ${body.length}]`,
  })),
  fc.tuple(id, small).map(([n, body]) => ({
    text: `PUT /${n} HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n${body === '' ? '' : `${body.length.toString(16)}\r\n${body}\r\n`}0\r\n\r\n`,
    expected: `[PUT /${n} ${body.length}]`,
  })),
  fc.constant({ text: 'GET /.gatehouse/session HTTP/1.1\r\nHost: h\r\n\r\n', expected: '"status":401' }),
  small.map((body) => ({
    text: `POST /.gatehouse/backchannel-logout HTTP/1.1\r\nHost: h\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    expected: '"error":',
  })),
)
const client = fc.record({
  requests: fc.array(sent, { minLength: 1, maxLength: 8 }),
  /** How many bytes are sent at once. */
  step: fc.constantFrom(50, 500, 1460, 70_000, Infinity),
  /** Where the client breaks the connection off, as a share of all bytes; `1`: it does not. */
  breaksOffAt: fc.oneof({ weight: 3, arbitrary: fc.constant(1) }, fc.double({ min: 0, max: 0.99, noNaN: true })),
  halfCloses: fc.boolean(),
})

test('Clients of all kinds at once get their own responses in order, and leave nothing behind', async (t) => {
  let underWay = 0
  const { port } = await httpUpstream(t, async (req, res) => {
    underWay += 1
    res.once('close', () => (underWay -= 1))
    let length = 0
    try {
      for await (const part of req) length += (part as Buffer).length
      res.end(`[${req.method} ${req.url} ${length}]`)
    } catch {
      // The client has broken its request off.
    }
  })
  const upstream = new URL(`http://127.0.0.1:${port}`)
  const world = await startWorld(t, {
    upstream,
    upstreamSettings,
    settings: 'limits: { per_client: { refused_logout_tokens: 100000/s } }',
  })
  const gateway = Number(new URL(world.url).port)

  const run = ({ requests, step, breaksOffAt, halfCloses }: typeof client extends fc.Arbitrary<infer T> ? T : never) =>
    new Promise<void>((resolve, reject) => {
      const all = requests.map(({ text }) => text).join('')
      const end = Math.floor(all.length * breaksOffAt)
      let received = ''
      const socket = connect({ port: gateway, host: '127.0.0.1', allowHalfOpen: true })
      socket
        .on('error', () => {})
        .on('data', (part: Buffer) => {
          received += part.toString('latin1')
          if (breaksOffAt === 1 && !halfCloses && isAnswered(received, requests)) socket.end()
        })
      socket.on('end', () => socket.end())
      socket.once('close', () => {
        if (breaksOffAt < 1 || isAnswered(received, requests)) resolve()
        else reject(new Error(`not answered: ${JSON.stringify(received.slice(-2000))}`))
      })
      const send = (at: number) => {
        if (socket.destroyed) return
        if (at >= end) return void (breaksOffAt < 1 ? socket.destroy() : halfCloses && socket.end())
        socket.write(all.slice(at, Math.min(at + step, end)), 'latin1', () => setImmediate(send, at + step))
      }
      send(0)
    })

  await fc.assert(
    fc.asyncProperty(fc.array(client, { minLength: 5, maxLength: 10 }), async (clients) => {
      await Promise.all(clients.map(run))
    }),
    { numRuns: runs, endOnFailure: true },
  )
  await until('the application has nothing under way', () => underWay === 0)
  assert.equal((await fetch(`${world.url}/after`)).status, 200)
})

/** Whether each request has its response, in order. */
function isAnswered(received: string, requests: readonly Sent[]): boolean {
  let at = 0
  for (const { expected } of requests) {
    at = received.indexOf(expected, at)
    if (at === -1) return false
    at += expected.length
  }
  return true
}
