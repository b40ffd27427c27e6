import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { startHttp2World } from '../support/http2.ts'
import { until } from '../support/until.ts'

// A client may say only with the last frame that there is no content. Node.js emits the end of such
// content without a reader, and the gateway waited for it until the application was given up (504).

for (const path of ['/public/x', '/x'])
  test(`Content that turns out to be empty ends at the application, at ${path}`, async (t) => {
    const world = await startHttp2World(
      t,
      (req, res) => void req.resume().on('end', () => res.end(`ended ${req.headers['transfer-encoding']}`)),
      { h2c: true, upstreamSettings: 'rules: [{ path: /public/*, access: public }]\n    response_timeout: 5s' },
    )
    const jane = world.browser()
    await jane.get(`${world.url}/x`)
    const session = world.connect()
    await once(session, 'remoteSettings')
    const stream = session.request(
      { ':method': 'POST', ':path': path, cookie: jane.cookieHeader },
      { endStream: false },
    )
    let [status, body] = [0, '']
    stream.on('response', ({ ':status': received = 0 }) => (status = received))
    stream.on('data', (part: Buffer) => (body += part.toString()))

    stream.end()

    await until('the response is complete', () => stream.readableEnded)
    assert.deepEqual([status, body], [200, 'ended chunked'])
  })
