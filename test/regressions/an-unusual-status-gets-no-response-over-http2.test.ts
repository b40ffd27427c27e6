import assert from 'node:assert/strict'
import { test } from 'node:test'
import { request, startHttp2World } from '../support/http2.ts'

for (const [what, fields] of [
  ['a length', { 'Content-Length': '7' }],
  ['chunks', {}],
] as const)
  test(`A 205 with content of ${what} arrives without it`, async (t) => {
    const world = await startHttp2World(t, (_req, res) => res.writeHead(205, { ...fields, 'X-A': '1' }).end('content'))

    const { status, headers, body } = await request(world.connect(), { ':path': '/public/x' })

    assert.deepEqual([status, headers['x-a'], headers['content-length'], body], [205, '1', undefined, ''])
  })

for (const status of [600, 999])
  test(`A response with status ${status} becomes a 502, and the log says why`, async (t) => {
    const world = await startHttp2World(t, (req, res) =>
      res.writeHead(req.url === '/public/x' ? status : 200).end('content'),
    )
    const session = world.connect()

    const found = await request(session, { ':path': '/public/x' })

    assert.equal(found.status, 502)
    const [failed] = world.replicas[0]?.log.filter(({ message }) => message === 'upstream.failed') ?? []
    assert.match(String(failed?.fields['reason']), new RegExp(`the status ${status} is invalid`))
    assert.equal((await request(session, { ':path': '/public/y' })).status, 200)
  })
