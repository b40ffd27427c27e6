import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import { httpUpstream, RawClient } from '../proxy/support.ts'
import { statusesIn } from '../support/raw-exchange.ts'
import { until } from '../support/until.ts'
import { startWorld } from '../support/world.ts'

const connectRequest = 'CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1:22\r\n\r\n'
const content = 'x'.repeat(100_000)

for (const plainPath of [true, false])
  test(`A CONNECT gets 501, after the responses to earlier requests (plain_path: ${plainPath})`, async (t) => {
    const seen: string[] = []
    const held: ServerResponse[] = []
    const { port } = await httpUpstream(t, (req, res) => {
      seen.push(`${req.method} ${req.url}`)
      held.push(res)
    })
    const world = await startWorld(t, {
      upstream: new URL(`http://127.0.0.1:${port}`),
      upstreamSettings: 'rules: [{ path: /*, access: public }]',
      listen: (address) => `{ address: "${address}", plain_path: ${plainPath} }`,
    })
    const client = () => new RawClient(t, Number(new URL(world.url).port))

    for (const fields of ['', 'TE: trailers\r\n']) {
      const one = client().send(`GET /a HTTP/1.1\r\nHost: h\r\n${fields}\r\n${connectRequest}GET /b HTTP/1.1\r\n\r\n`)
      await until('the request has arrived', () => held.length === 1)
      held.pop()?.end(content)
      const text = await one.untilClosed()
      assert.deepEqual(statusesIn(text), [200, 501])
      assert.ok(text.includes(`\r\n\r\n${content}HTTP/1.1 501 `))
    }
    assert.deepEqual(statusesIn(await client().send(connectRequest).untilClosed()), [501])
    assert.deepEqual(seen, ['GET /a', 'GET /a'])
  })
