import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import { httpUpstream, RawClient } from '../proxy/support.ts'
import { until } from '../support/until.ts'
import { startWorld } from '../support/world.ts'

const switching = (path: string) =>
  [`GET ${path} HTTP/1.1`, 'Host: h', 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13'].join(
    '\r\n',
  ) + '\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'

for (const [what, path] of [
  ['that is refused', '/closed'],
  ['that is admitted', '/open/socket'],
] as const)
  for (const hasBegun of [false, true])
    test(`a request to upgrade ${what}, behind an answer that ${hasBegun ? 'has begun' : 'is still to come'}, says nothing within it`, async (t) => {
      const asked: (string | undefined)[] = []
      let first: ServerResponse | undefined
      const upstream = await httpUpstream(t, (req, res) => {
        asked.push(req.url)
        first = res
        if (hasBegun) res.writeHead(200, { 'Content-Length': '1000' }).write('begun')
      })
      const world = await startWorld(t, {
        upstream: new URL(`http://127.0.0.1:${upstream.port}`),
        upstreamSettings: 'rules: [{ path: /open/*, access: public }]',
      })
      const client = new RawClient(t, Number(new URL(world.url).port)).send(
        'GET /open/first HTTP/1.1\r\nHost: h\r\n\r\n',
      )
      await until('the first request has arrived', () => first !== undefined)
      if (hasBegun) await client.until(/begun$/)
      const isGone = once(first as ServerResponse, 'close')

      client.send(switching(path))

      assert.match(await client.untilClosed(), hasBegun ? /^HTTP\/1\.1 200 (?:(?!HTTP)[^])*begun$/ : /^$/)
      // Nobody waits for its answer any more.
      await isGone
      assert.deepEqual(asked, ['/open/first'])
      const [replica] = world.replicas
      await until('the record of the first request is complete', () =>
        Boolean(replica?.access.some(({ path }) => path === '/open/first')),
      )
      assert.deepEqual(
        replica?.log.filter(({ level }) => level === 'error'),
        [],
      )
    })
