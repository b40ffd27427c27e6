import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import zlib from 'node:zlib'
import { request, startHttp2World } from '../../support/http2.ts'

const page = '<p>text</p>'.repeat(1_000)

test('Responses of the gateway and compressed ones arrive over HTTP/2', async (t) => {
  const site = mkdtempSync(join(tmpdir(), 'gatehouse-http2-'))
  t.after(() => rmSync(site, { recursive: true }))
  writeFileSync(join(site, 'a.txt'), 'file')
  writeFileSync(join(site, 'shrinking.bin'), Buffer.alloc(64 * 1024 * 1024))
  const { connect } = await startHttp2World(
    t,
    (_req, res) => res.writeHead(200, { 'content-type': 'text/html' }).end(page),
    {
      upstreamSettings: `compress: true
    rules:
      - { path: /old/*, access: public, respond: { to: /new/*, status: 308 } }
      - { path: /text, access: public, respond: { text: text } }
      - { path: /files/*, access: public, respond: { files: ${site} } }
      - { path: /closed, respond: { maintenance: true } }
      - { path: /*, access: public }`,
    },
  )
  const session = connect()
  const get = (path: string, fields: Readonly<Record<string, string>> = {}) =>
    request(session, { ':path': path, ...fields })

  const moved = await get('/old/a?b')
  assert.deepEqual([moved.status, moved.headers['location']], [308, '/new/a?b'])
  assert.equal((await get('/text')).body, 'text')
  assert.equal((await get('/files/a.txt')).body, 'file')
  assert.equal((await get('/files/a.txt', { range: 'bytes=1-2' })).body, 'il')
  const head = await get('/files/a.txt', { ':method': 'HEAD' })
  assert.deepEqual([head.headers['content-length'], head.body], ['4', ''])
  assert.equal((await get('/closed')).status, 503)
  const compressed = await get('/page', { 'accept-encoding': 'gzip' })
  assert.equal(zlib.gunzipSync(Buffer.from(compressed.body, 'latin1')).toString(), page)

  const stream = session.request({ ':path': '/files/shrinking.bin' })
  await once(stream, 'response')
  truncateSync(join(site, 'shrinking.bin'), 1024)
  await assert.rejects(stream.toArray())
  assert.equal((await get('/text')).status, 200, 'the other streams of the connection go on')
})
