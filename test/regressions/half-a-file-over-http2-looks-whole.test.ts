import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import type { Browser } from '../support/browser.ts'
import { type Http2World, readResponse, startHttp2World } from '../support/http2.ts'

for (const [when, cut] of [
  ['the application closes its connection', (_world, res) => res.destroy()],
  ['the session ends', ({ url }, _res, jane) => jane.get(`${url}/logout`)],
  ['the gateway stops', ({ replicas: [replica] }) => replica?.stop()],
] as const satisfies readonly (readonly [string, (world: Http2World, res: ServerResponse, jane: Browser) => unknown])[])
  for (const h2c of [true, false])
    test(`A client of Node.js gets an error when ${when}, ${h2c ? 'without TLS' : 'over TLS'}`, async (t) => {
      const responses: ServerResponse[] = []
      const world = await startHttp2World(
        t,
        (req, res) => (req.url === '/file' ? res.write('half', () => responses.push(res)) : res.end()),
        {
          ...{ h2c, drain: '100ms' },
          upstreamSettings: 'logout: { paths: [/logout] }\n    rules: [{ path: /page, respond: { text: page } }]',
        },
      )
      const jane = world.browser()
      await jane.get(`${world.url}/page`)
      const stream = world.connect().request({ ':path': '/file', cookie: jane.cookieHeader })
      const read = readResponse(stream)
      await once(stream, 'readable')

      await Promise.all([cut(world, responses[0] as ServerResponse, jane), assert.rejects(read, /INTERNAL_ERROR/)])
    })
