import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startWorld } from '../support/world.ts'

const upstreamSettings = `logout:
      paths: [/logout, { path: /wp-login.php, query: { action: logout } }]
      cookies: [JSESSIONID]`

for (const [method, path, body] of [
  ['GET', '/logout'],
  ['HEAD', '/logout'],
  ['POST', '/logout', '{"all":true}'],
  ['DELETE', '/logout'],
  ['DELETE', '/logout', 'all=true'],
  ['GET', '/wp-login.php?action=logout&_wpnonce=1a2b'],
] as const)
  test(`A script signs out with ${method} ${path}${body === undefined ? '' : ' and content'}, here and at the provider`, async (t) => {
    const world = await startWorld(t, { upstreamSettings })
    const jane = world.browser()
    await jane.get(`${world.url}/`)
    const kept = jane.cookieHeader
    assert.ok(jane.cookies.has('JSESSIONID'))
    const headers = { 'content-type': method === 'POST' ? 'application/json' : 'application/x-www-form-urlencoded' }

    const response = await jane.fetch(world.url + path, body === undefined ? { method } : { method, body, headers })

    assert.equal(response.status, 200)
    assert.match(String(response.headers['content-type']), /^application\/json\b/)
    if (method === 'HEAD') assert.equal(response.body, '')
    else assert.deepEqual(JSON.parse(response.body), { signed_out: true, provider: 'ended' })
    assert.deepEqual(world.provider.sessions(), [])
    assert.ok(!jane.cookies.has('gatehouse') && !jane.cookies.has('JSESSIONID'))
    assert.equal((await world.browser().fetch(`${world.url}/echo`, { headers: { cookie: kept } })).status, 401)
    assert.equal(world.replicas[0]?.access.at(-2)?.['method'], method)
  })

for (const method of ['GET', 'HEAD', 'POST', 'DELETE', 'PUT'])
  for (const site of ['cross-site', 'same-site'])
    test(`A script of another site (${site}) signs nobody out with ${method} on the logout link of the application`, async (t) => {
      const world = await startWorld(t, { upstreamSettings })
      const jane = world.browser()
      await jane.get(`${world.url}/`)

      const headers = { 'sec-fetch-site': site, origin: 'https://evil.example' }
      const response = await jane.fetch(`${world.url}/logout`, { method, headers })

      assert.equal(response.status, 403)
      assert.equal((await jane.fetch(`${world.url}/echo`)).status, 200)
    })

test('A preflight request for the logout link goes to the application, and signs nobody out', async (t) => {
  const world = await startWorld(t, { upstreamSettings })
  const jane = world.browser()
  await jane.get(`${world.url}/`)

  await jane.fetch(`${world.url}/logout`, { method: 'OPTIONS' })

  assert.equal((await jane.fetch(`${world.url}/echo`)).status, 200)
})
