import assert from 'node:assert/strict'
import { test } from 'node:test'
import { httpUpstream } from '../proxy/support.ts'
import { startWorld } from '../support/world.ts'

test('An application with another path gets its own paths, and the browser gets public ones', async (t) => {
  const { port } = await httpUpstream(t, ({ url = '' }, res) => {
    if (url === '/app/old') return res.writeHead(302, { location: 'http://intranet.corp:8080/app/new?a=b' }).end()
    return res.end(url)
  })
  const world = await startWorld(t, {
    upstream: new URL(`http://127.0.0.1:${port}`),
    upstreamSettings: `path: /wiki
    strip_path: true
    also_known_as: [http://intranet.corp:8080]
    rules:
      - { path: /wiki/open/*, access: public }
      - { path: /open/*, access: public }`,
    upstreamPath: '/app',
  })
  const nobody = world.browser()

  assert.equal((await nobody.fetch(`${world.url}/wiki/open/a`)).body, '/app/open/a')
  assert.equal((await nobody.fetch(`${world.url}/wiki/a`)).status, 401)
  assert.equal((await nobody.fetch(`${world.url}/open/a`)).status, 404)

  const jane = world.browser()
  const page = await jane.get(`${world.url}/wiki/old`)
  assert.equal(page.url, `${world.url}/wiki/new?a=b`)
  assert.equal(page.body, '/app/new?a=b')
})
