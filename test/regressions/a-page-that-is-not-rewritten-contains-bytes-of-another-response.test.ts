import assert from 'node:assert/strict'
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { test } from 'node:test'
import { httpUpstream } from '../proxy/support.ts'
import { startWorld } from '../support/world.ts'

const bytes = 24 * 1024 * 1024

test('A page in UTF-16 for a client that reads slowly contains no bytes of other responses', async (t) => {
  const { port } = await httpUpstream(t, (req, res) => {
    const isPage = req.url === '/page'
    res.writeHead(200, { 'content-type': isPage ? 'text/html' : 'application/octet-stream' })
    res.end(isPage ? Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.alloc(bytes, 'a')]) : Buffer.alloc(bytes, 'b'))
  })
  const world = await startWorld(t, {
    upstream: new URL(`http://127.0.0.1:${port}`),
    upstreamSettings: `rewrite_content: true
    also_known_as: [http://intranet.corp:8080]
    rules: [{ path: /*, access: public }]`,
  })
  const begin = async (path: string) => {
    const [response] = (await once(get(`${world.url}${path}`), 'response')) as [IncomingMessage]
    return response
  }
  const page = await begin('/page')
  page.pause()
  for (let times = 0; times < 3; times += 1) await once((await begin('/other')).resume(), 'end')

  let length = 0
  for await (const part of page) {
    const content = (part as Buffer).subarray(length === 0 ? 2 : 0)
    assert.ok(
      content.every((byte) => byte === 0x61),
      `another byte after ${length} bytes`,
    )
    length += (part as Buffer).length
  }
  assert.equal(length, bytes + 2)
})
