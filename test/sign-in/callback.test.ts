import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Browser, Visit } from '../support/browser.ts'
import { startWorld, type World } from '../support/world.ts'

/** Where the provider sends the browser back to after jane was chosen there. */
async function callbackOf(world: World, jane: Browser): Promise<URL> {
  return new URL(await jane.until(`${world.url}/orders?page=2`, '/.gatehouse/callback'))
}

function isSignedIn(jane: Browser): boolean {
  return jane.cookies.has('gatehouse')
}

function startAgain({ body }: Visit): string | undefined {
  return /href="([^"]*sign-in[^"]*)"/.exec(body)?.[1]
}

for (const [why, status, change] of [
  ['without "state"', 400, (url) => url.searchParams.delete('state')],
  ['with a made-up "state"', 400, (url) => url.searchParams.set('state', 'x'.repeat(200))],
  ['with two values of "state"', 400, (url) => url.searchParams.append('state', url.searchParams.get('state') ?? '')],
  ['without "code"', 502, (url) => url.searchParams.delete('code')],
  ['with two codes', 502, (url) => url.searchParams.append('code', 'another')],
  ['without the "iss" that is announced', 502, (url) => url.searchParams.delete('iss')],
  ['of another issuer', 502, (url) => url.searchParams.set('iss', 'https://evil.example')],
  ['with a code that the provider does not know', 400, (url) => url.searchParams.set('code', 'made-up')],
] satisfies readonly (readonly [string, number, (url: URL) => void])[])
  test(`a callback ${why} signs nobody in, and says so on a page`, async (t) => {
    const world = await startWorld(t)
    const jane = world.browser()
    const callback = await callbackOf(world, jane)
    change(callback)

    const page = await jane.send(callback.href)

    assert.equal(page.status, status)
    assert.match(String(page.headers['content-type']), /^text\/html/)
    assert.equal(page.headers['cache-control'], 'no-store')
    assert.ok(startAgain(page))
    assert.equal(isSignedIn(jane), false)
  })

test('a person whom the provider rejects sees a page that says so, and can start again', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()
  const callback = await callbackOf(world, jane)
  callback.searchParams.delete('code')
  callback.searchParams.set('error', 'access_denied')
  callback.searchParams.set('error_description', '<script>alert(1)</script>')

  const page = await jane.send(callback.href)

  assert.equal(page.status, 403)
  assert.equal(startAgain(page), '/.gatehouse/sign-in?return_to=%2Forders%3Fpage%3D2')
  assert.ok(!page.body.includes('alert'), 'what came from outside is not repeated')
})

test('a callback in another browser signs nobody in there', async (t) => {
  const world = await startWorld(t)
  const [jane, mallory] = [world.browser(), world.browser('samir')]
  const callback = await callbackOf(world, mallory)
  await callbackOf(world, jane)

  const page = await jane.send(callback.href)

  assert.equal(page.status, 400)
  assert.equal(isSignedIn(jane), false)
  assert.equal(world.provider.hits('/oauth/token'), 0, 'no code was sent to the provider')
})

test('a callback that comes too late signs nobody in', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()
  const callback = await callbackOf(world, jane)

  world.moveClock(16 * 60_000)

  assert.equal((await jane.send(callback.href)).status, 400)
  assert.equal(isSignedIn(jane), false)
})

test('a code is sent to the provider once, however often the callback is loaded', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()
  const callback = await callbackOf(world, jane)
  const cookie = jane.cookieHeader

  const pages = await Promise.all(
    Array.from({ length: 5 }, () => world.browser().send(callback.href, { headers: { cookie } })),
  )

  assert.deepEqual(pages.map(({ status }) => status).sort(), [303, 400, 400, 400, 400])
  assert.equal(world.provider.hits('/oauth/token'), 1)
})

test('a callback that is loaded again after some minutes does not send its code once more', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()
  const callback = await callbackOf(world, jane)
  const cookie = jane.cookieHeader
  await jane.send(callback.href)
  assert.ok(isSignedIn(jane))

  world.moveClock(10 * 60_000)
  const again = await world.browser().send(callback.href, { headers: { cookie } })

  assert.equal(again.status, 400)
  assert.equal(world.provider.hits('/oauth/token'), 1)
})

test('a sign-in that was begun at another origin of the gateway does not end at this one', async (t) => {
  const [world, other] = [await startWorld(t), await startWorld(t)]
  const jane = world.browser()
  const foreign = await callbackOf(other, jane)

  const page = await jane.send(`${world.url}/.gatehouse/callback${foreign.search}`)

  assert.equal(page.status, 400)
  assert.equal(isSignedIn(jane), false)
})

test('a sign-in never uses the session id that the browser sent', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()
  const planted = 'A'.repeat(64)
  jane.cookies.set('gatehouse', { value: planted, path: '/' })

  await jane.get(`${world.url}/orders`)

  assert.notEqual(jane.cookies.get('gatehouse')?.value, planted)
  assert.equal(
    (await world.browser().send(`${world.url}/orders`, { headers: { cookie: `gatehouse=${planted}` } })).status,
    303,
  )
})

test('signing in as another person ends the previous session', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()
  await jane.get(`${world.url}/orders`)
  const before = jane.cookies.get('gatehouse')
  const samir = world.browser('samir')
  const callback = await callbackOf(world, samir)
  samir.cookies.set('gatehouse', before ?? { value: '', path: '/' })

  assert.equal((await samir.send(callback.href)).status, 303)

  const old = await world.browser().send(`${world.url}/orders`, { headers: { cookie: `gatehouse=${before?.value}` } })
  assert.equal(old.status, 303, 'the old cookie leads to the sign-in')
})

test('neither a form nor a HEAD request is a callback', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()
  const callback = await callbackOf(world, jane)

  const posted = await jane.send(`${world.url}/.gatehouse/callback`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: callback.search.slice(1),
  })
  const head = await jane.send(callback.href, { method: 'HEAD' })

  assert.deepEqual([posted.status, head.status], [405, 405])
  await jane.send(callback.href)
  assert.ok(isSignedIn(jane), 'the attempt was not used up')
})

for (const [what, response, status] of [
  ['another person', { sub: 'samir' }, 502],
  ['nobody', {}, 502],
] as const)
  test(`userinfo about ${what} signs nobody in`, async (t) => {
    const world = await startWorld(t)
    const jane = world.browser()
    world.provider.fault('/oauth/userinfo', (_req, res) =>
      res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(response)),
    )

    const page = await jane.get(`${world.url}/orders`)

    assert.equal(page.status, status)
    assert.equal(isSignedIn(jane), false)
  })

for (const path of ['/oauth/token', '/oauth/userinfo'])
  test(`a sign-in during which ${path} fails can be started again when it is back`, async (t) => {
    const world = await startWorld(t)
    const jane = world.browser()
    const mend = world.provider.fault(path, (_req, res) => res.writeHead(503).end())

    const failed = await jane.get(`${world.url}/echo`)
    mend()
    const again = await jane.get(`${world.url}${startAgain(failed)}`)

    assert.equal(failed.status, 503)
    assert.ok(failed.headers['retry-after'])
    assert.deepEqual([again.status, again.url], [200, `${world.url}/echo`])
  })
