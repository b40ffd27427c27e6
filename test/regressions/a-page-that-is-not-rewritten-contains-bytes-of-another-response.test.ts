import assert from 'node:assert/strict'
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { test } from 'node:test'
import { httpUpstream } from '../proxy/support.ts'
import { startWorld } from '../support/world.ts'

const bytes = 24 * 1024 * 1024
/** A page in UTF-16, in which no two places are the same. */
const content = Buffer.from(Uint32Array.from({ length: bytes / 4 }, (_, at) => at).buffer)
content.writeUInt16BE(0xfffe, 0)

test('A page in UTF-16 for a client that reads slowly contains no other bytes', async (t) => {
  const { port } = await httpUpstream(t, (req, res) => {
    const isPage = req.url === '/page'
    res.writeHead(200, { 'content-type': isPage ? 'text/html' : 'application/octet-stream' })
    res.end(isPage ? content : Buffer.alloc(bytes, 'b'))
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

  const parts: Buffer[] = []
  for await (const part of page) parts.push(part as Buffer)
  assert.ok(Buffer.concat(parts).equals(content))
})
