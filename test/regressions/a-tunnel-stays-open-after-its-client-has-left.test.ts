import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import { httpUpstream, RawClient } from '../proxy/support.ts'
import { until } from '../support/until.ts'
import { startWorld } from '../support/world.ts'

const websocket = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhl'

for (const plainPath of [true, false])
  test(`An upgrade is not begun when its client has left during an earlier response (plain_path: ${plainPath})`, async (t) => {
    const seen: (string | undefined)[] = []
    let held: ServerResponse | undefined
    const { port } = await httpUpstream(t, (req, res) => {
      seen.push(req.url)
      held = res
    })
    const world = await startWorld(t, {
      upstream: new URL(`http://127.0.0.1:${port}`),
      upstreamSettings: 'rules: [{ path: /*, access: public }]',
      listen: (address) => `{ address: "${address}", plain_path: ${plainPath} }`,
    })
    const client = new RawClient(t, Number(new URL(world.url).port)).send(
      `GET /first HTTP/1.1\r\nHost: h\r\nTE: trailers\r\n\r\nGET /ws HTTP/1.1\r\nHost: h\r\n${websocket}\r\n\r\n`,
    )
    await until('the first request has arrived', () => held !== undefined)
    client.socket.end()
    // The gateway has read the FIN when it sends a probe.
    await client.until(/102 Processing/)

    held?.end('the first response')

    assert.match(await client.untilClosed(), /the first response$/)
    assert.deepEqual(seen, ['/first'])
  })
