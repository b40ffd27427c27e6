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

test('Cookies, header fields and the origin of a request are translated on the way', async (t) => {
  const { port } = await httpUpstream(t, ({ headers }, res) => {
    res.writeHead(200, { 'set-cookie': 'sid=1; Path=/', 'x-powered-by': 'PHP/5', 'x-frame-options': 'ALLOWALL' })
    return res.end(JSON.stringify([headers.origin, headers['destination']]))
  })
  const own = `http://127.0.0.1:${port}`
  const world = await startWorld(t, {
    upstream: new URL(own),
    upstreamSettings: `path: /wiki
    strip_path: true
    origin_header: upstream
    set_cookie: { same_site: strict }
    response_headers: { set: { X-Frame-Options: DENY }, remove: [x-powered-by] }
    rules: [{ path: /wiki/*, access: public }]`,
  })

  const headers = { origin: world.url, destination: `${world.url}/wiki/b` }
  const response = await world.browser().fetch(`${world.url}/wiki/a`, { method: 'POST', headers })

  assert.deepEqual(JSON.parse(response.body), [own, `${world.url}/wiki/b`])
  assert.deepEqual([response.headers['set-cookie']].flat(), ['sid=1; Path=/wiki; SameSite=Strict'])
  assert.equal(response.headers['x-frame-options'], 'DENY')
  assert.equal(response.headers['x-powered-by'], undefined)
})
