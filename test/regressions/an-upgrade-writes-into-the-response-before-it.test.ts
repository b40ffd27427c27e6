import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import { httpUpstream, RawClient } from '../proxy/support.ts'
import { statusesIn } from '../support/raw-exchange.ts'
import { until } from '../support/until.ts'
import { startWorld } from '../support/world.ts'

const switching = (path: string) =>
  [`GET ${path} HTTP/1.1`, 'Host: h', 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13'].join(
    '\r\n',
  ) + '\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'

for (const [what, path, status] of [
  ['that is rejected', '/closed', 401],
  ['that is admitted', '/open/socket', 200],
] as const)
  for (const waiting of ['', 'GET /open/second HTTP/1.1\r\nHost: h\r\n\r\n'])
    test(`An upgrade request ${what} waits for ${waiting === '' ? 'the response' : 'both responses'} before it`, async (t) => {
      const asked: (string | undefined)[] = []
      const responses: ServerResponse[] = []
      const long = 'x'.repeat(3_000_000)
      const upstream = await httpUpstream(t, (req, res) => {
        asked.push(req.url)
        responses.push(res)
        if (req.url !== '/open/first') res.end('short')
      })
      const world = await startWorld(t, {
        upstream: new URL(`http://127.0.0.1:${upstream.port}`),
        upstreamSettings: 'rules: [{ path: /open/*, access: public }]',
      })
      const client = new RawClient(t, Number(new URL(world.url).port)).send(
        `GET /open/first HTTP/1.1\r\nHost: h\r\n\r\n${waiting}${switching(path)}`,
      )
      await until('the first request has arrived', () => responses.length > 0)
      assert.deepEqual(asked, ['/open/first'])

      // The content exceeds the socket buffers, so that the response has to wait for `drain`.
      responses[0]?.end(long)

      const text = await client.untilClosed()
      assert.deepEqual(statusesIn(text), [200, ...(waiting === '' ? [] : [200]), status])
      assert.ok(text.includes(`\r\n\r\n${long}HTTP/1.1 `))
      assert.deepEqual(asked, [
        '/open/first',
        ...(waiting === '' ? [] : ['/open/second']),
        ...(status === 200 ? [path] : []),
      ])
      const [replica] = world.replicas
      assert.deepEqual(
        replica?.log.filter(({ level }) => level === 'error'),
        [],
      )
    })
