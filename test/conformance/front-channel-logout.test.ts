import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { application, startHostileWorld, type HostileWorld } from '../corpus/hostile-world.ts'
import { startChromium } from '../support/chromium.ts'

const settings = 'frontchannel_logout: true'
const chromium = await startChromium()

const frameOf = ({ url, provider: { issuer, sid } }: HostileWorld, asked: Readonly<Record<string, string>> = {}) =>
  `${url}/.gatehouse/frontchannel-logout?${new URLSearchParams({ iss: issuer, sid, ...asked }).toString()}`

/** A browser loads the page in a frame of the provider without a cookie of the gateway. */
function loadFrame(world: HostileWorld, url = frameOf(world)) {
  const headers = { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'iframe', 'sec-fetch-mode': 'navigate' }
  return world.browser().send(url, { headers })
}

// oidcc-client-front-channel-logout-rp-basic, and the module that is in no plan. A second browser
// with the same provider session shows whether the frame ended the session.
test('oidcc-client-test-rp-frontchannel-rpinitlogout', async (t) => {
  const world = await startHostileWorld(t, { settings })
  const [alice, sameSession] = [world.browser(), world.browser()]
  await world.signIn(alice)
  await world.signIn(sameSession)
  const { headers } = await world.signOut(alice)

  assert.equal((await loadFrame(world)).status, 200)

  assert.equal(await world.isSignedIn(sameSession), false)
  const back = new URL(String(headers['location'])).searchParams
  const { status } = await alice.send(`${back.get('post_logout_redirect_uri')}?state=${back.get('state')}`)
  assert.equal(status, 200)
})

test('oidcc-client-test-rp-frontchannel-opinitlogout', async (t) => {
  const world = await startHostileWorld(t, { settings })
  const alice = world.browser()
  await world.signIn(alice)

  const { status, headers } = await loadFrame(world)

  assert.equal(status, 200)
  assert.match(String(headers['cache-control']), /no-store/)
  assert.equal(await world.isSignedIn(alice), false)
})

test('Only the provider may frame the logout page, and no site may frame any other page', async (t) => {
  const world = await startHostileWorld(t, { settings })
  const policy = async (url: string) => String((await world.browser().send(url)).headers['content-security-policy'])

  assert.match(await policy(frameOf(world)), new RegExp(`frame-ancestors ${world.provider.issuer}(?:;|$)`))
  assert.match(await policy(`${world.url}/.gatehouse/signed-out`), /frame-ancestors 'none'/)
})

test('In a browser, the page of the provider ends the session, and the page of another site cannot even show the frame', async (t) => {
  const world = await startHostileWorld(t, { settings, host: 'localhost' })
  const { tab, complaints } = await chromium.person(t)
  const [page, elsewhere] = [await tab(), await tab()]
  await page.goto(world.url + application)
  await page.getByText('this is the application').waitFor()

  await page.goto(`${world.provider.issuer}/frame?${new URLSearchParams({ src: frameOf(world) }).toString()}`)
  await page.frameLocator('iframe').getByText('Your session here has ended.').waitFor()
  await elsewhere.goto(await somebodyElsesPage(t, frameOf(world)))

  assert.ok(
    complaints.some((complaint) => /frame-ancestors|refused to (?:frame|display)/i.test(complaint)),
    String(complaints),
  )
  const asked = world.provider.hits('authorize')
  await page.goto(world.url + application)
  assert.equal(world.provider.hits('authorize'), asked + 1, 'still signed in')
})

for (const [what, query] of [
  ['nothing', ''],
  ['no sid', 'iss={issuer}'],
  ['no issuer', 'sid={sid}'],
  ['an empty sid', 'iss={issuer}&sid='],
  ['another issuer', 'iss=https://other.example&sid={sid}'],
  ['two sids', 'iss={issuer}&sid={sid}&sid={sid}'],
  ['a sid longer than any', `iss={issuer}&sid=${'s'.repeat(1001)}`],
] as const)
  test(`A frame with ${what} ends no session`, async (t) => {
    const world = await startHostileWorld(t, { settings })
    const alice = world.browser()
    await world.signIn(alice)
    const { issuer, sid } = world.provider

    const { status } = await loadFrame(
      world,
      `${world.url}/.gatehouse/frontchannel-logout?${query.replaceAll('{issuer}', issuer).replaceAll('{sid}', sid)}`,
    )

    assert.equal(status, 400)
    assert.equal(await world.isSignedIn(alice), true)
  })

test('An unknown sid gets the same response as any other, and ends no session', async (t) => {
  const world = await startHostileWorld(t, { settings })
  const alice = world.browser()
  await world.signIn(alice)

  const { status } = await loadFrame(world, frameOf(world, { sid: 'sid-of-nobody' }))

  assert.equal(status, 200)
  assert.equal(await world.isSignedIn(alice), true)
})

test('An unsigned front-channel logout does not affect a sign-in in progress', async (t) => {
  const world = await startHostileWorld(t, { settings })
  const alice = world.browser()
  const callback = await world.start(alice)
  await loadFrame(world)

  await alice.send(callback)

  assert.equal(await world.isSignedIn(alice), true)
})

test('Where front-channel logout is disabled, there is no such page, and no session ends', async (t) => {
  const world = await startHostileWorld(t)
  const alice = world.browser()
  await world.signIn(alice)

  assert.equal((await loadFrame(world)).status, 404)
  assert.equal(await world.isSignedIn(alice), true)
})

/** A page of another origin that contains a frame. */
async function somebodyElsesPage(t: TestContext, src: string): Promise<string> {
  const server = createServer((_req, res) => {
    res.setHeader('content-type', 'text/html').end(`<iframe src="${src.replaceAll('&', '&amp;')}"></iframe>`)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}
