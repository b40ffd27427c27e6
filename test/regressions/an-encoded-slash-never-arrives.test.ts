import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { exchangeRaw } from '../support/raw-exchange.ts'
import { startWorld } from '../support/world.ts'

test('An encoded slash reaches the application unchanged, and opens no rule that a slash would not open', async (t) => {
  const seen: string[] = []
  const application = createServer((req, res) => {
    seen.push(req.url ?? '')
    res.end('here')
  }).listen(0, '127.0.0.1')
  await once(application, 'listening')
  t.after(() => application.close())
  const world = await startWorld(t, {
    upstream: new URL(`http://127.0.0.1:${(application.address() as AddressInfo).port}`),
    upstreamSettings: 'rules: [{ path: /api/admin/* }, { path: /api/*, access: public }]',
  })
  const { port } = new URL(world.url)
  const statusOf = async (path: string) => {
    const head = `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: close\r\n\r\n`
    return (await exchangeRaw(Number(port), head)).statuses[0]
  }

  // GitLab, npm, RabbitMQ, Jenkins and Collabora use such names.
  const paths = [
    '/api/v4/projects/group%2Fproject',
    '/api/@scope%2fname',
    '/api/queues/%2F/orders',
    '/api/feature%252Fone/',
  ]
  for (const path of paths) assert.equal(await statusOf(path), 200, path)
  assert.deepEqual(seen, paths)
  assert.equal(await statusOf('/api%2Fadmin/x'), 401)
  for (const path of ['/api/admin%2fx', '/api/x%2f..%2fadmin', '/api/%2fadmin'])
    assert.equal(await statusOf(path), 400, path)
  assert.deepEqual(seen, paths)
})
