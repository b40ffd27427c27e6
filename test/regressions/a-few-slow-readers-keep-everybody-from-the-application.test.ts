import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { until } from '../support/until.ts'
import { startWorld } from '../support/world.ts'

/**
 * The content of `/static/large` exceeds all buffers on the way, and `/static/never` gets no
 * response.
 */
async function startApplication(t: TestContext) {
  const large = Buffer.alloc(32 * 1024 * 1024, 'x')
  const asked = { strangers: 0 }
  const server = createServer((req, res) => {
    if (!req.url?.startsWith('/static/')) return void res.end('hello')
    asked.strangers += 1
    if (req.url === '/static/large') res.end(large)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return { asked, url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`) }
}

for (const [what, path] of [
  ['request a public file without reading it', '/static/large'],
  ['ask for a page that takes long', '/static/never'],
] as const)
  test(`A signed-in person is served while more anonymous clients than there are connections ${what}`, async (t) => {
    const { asked, url: upstream } = await startApplication(t)
    const world = await startWorld(t, { upstream })
    const jane = world.browser()
    await jane.get(`${world.url}/orders`)

    for (let count = 0; count < 200; count += 1) {
      const stranger = connect(Number(new URL(world.url).port), '127.0.0.1')
      stranger.on('error', () => {}).pause()
      stranger.write(`GET ${path} HTTP/1.1\r\nHost: h\r\n\r\n`)
      t.after(() => stranger.destroy())
    }
    await until('they have all connections that they may have', () => asked.strangers >= 96)

    const responses = await Promise.all(Array.from({ length: 20 }, () => jane.fetch(`${world.url}/orders`)))
    assert.deepEqual(new Set(responses.map(({ status }) => status)), new Set([200]))
  })
