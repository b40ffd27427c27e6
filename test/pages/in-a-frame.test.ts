// Slow: 3 s, Chromium shows the page in a frame in each language
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { languages } from '../../src/config/model/pages.ts'
import { messagesByLanguage } from '../../src/pages/messages.ts'
import { httpUpstream } from '../proxy/support.ts'
import { accessibilityFaults } from '../support/axe.ts'
import { startChromium } from '../support/chromium.ts'
import { startWorld, type World } from '../support/world.ts'
import { choose } from './support.ts'

const chromium = await startChromium()

const frame = { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe', 'sec-fetch-site': 'same-origin' }

/** An application whose page has another page of it in a frame. */
async function startFramingWorld(t: TestContext): Promise<World> {
  const { port } = await httpUpstream(t, (req, res) => {
    const inner = '<!doctype html><html lang="en"><title>Orders</title><h1>The orders</h1></html>'
    const outer =
      '<!doctype html><html lang="en"><title>Desk</title><h1>The desk</h1><iframe title="Orders" src="/orders?page=2"></iframe></html>'
    res.writeHead(200, { 'content-type': 'text/html' }).end(req.url?.startsWith('/desk') === true ? outer : inner)
  })
  return startWorld(t, {
    upstream: new URL(`http://127.0.0.1:${port}`),
    upstreamSettings: `rules:
      - { path: /desk, access: public }
      - { path: /redirect/*, unauthenticated: redirect }`,
  })
}

for (const language of languages)
  test(`An expired session in a frame shows a page whose link opens in the whole window, in ${language}`, async (t) => {
    const world = await startFramingWorld(t)
    const jane = await chromium.person(t, { locale: language })
    const page = await jane.tab()

    await page.goto(`${world.url}/desk?tab=orders`)

    const inside = page.frameLocator('iframe')
    await inside.getByText(messagesByLanguage[language].signInFromFrame).waitFor()
    assert.equal(await inside.locator('html').getAttribute('lang'), language)
    await page.goto(`${world.url}/desk?tab=orders`)
    await inside.getByRole('link', { name: messagesByLanguage[language].actions.sign_in }).click()
    await choose(page, 'Jane Doe')
    await page.waitForURL(`${world.url}/desk?tab=orders`)
    await inside.getByRole('heading', { name: 'The orders' }).waitFor()
    assert.deepEqual(
      jane.complaints.filter((complaint) => !complaint.includes('status of')),
      [],
    )
  })

test('axe-core finds nothing on the page in a frame', async (t) => {
  const world = await startFramingWorld(t)
  const page = await (await chromium.person(t)).tab()
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    await page.goto(`${world.url}/desk`)
    await page.frameLocator('iframe').getByRole('link').waitFor()

    const [, inside] = page.frames()
    assert.ok(inside)
    assert.deepEqual(await accessibilityFaults(inside), [], colorScheme)
  }
})

test('a page of another origin cannot show the page in its frame', async (t) => {
  const world = await startFramingWorld(t)
  const site = createServer((_req, res) => {
    res.writeHead(200, { 'content-type': 'text/html' }).end(`<iframe src="${world.url}/orders"></iframe>`)
  }).listen(0, '127.0.0.1')
  t.after(() => site.close())
  const jane = await chromium.person(t)
  const page = await jane.tab()

  await page.goto(`http://127.0.0.1:${(site.address() as AddressInfo).port}/`)

  await page.frameLocator('iframe').locator('body').waitFor({ state: 'attached' })
  assert.equal(await page.frameLocator('iframe').getByRole('link', { name: 'Sign in' }).count(), 0)
  assert.ok(jane.complaints.some((complaint) => complaint.includes('frame-ancestors')))
})

for (const path of ['/orders', '/redirect/orders', '/.gatehouse/sign-in'])
  for (const dest of ['iframe', 'frame'])
    test(`A request in a frame is not redirected to the sign-in: ${path}, ${dest}`, async (t) => {
      const world = await startFramingWorld(t)

      const response = await world.browser().send(world.url + path, { headers: { ...frame, 'sec-fetch-dest': dest } })

      assert.equal(response.status, 401)
      assert.match(String(response.headers['content-type']), /^text\/html/)
      assert.match(String(response.headers['content-security-policy']), /frame-ancestors 'self'/)
      assert.match(response.body, /<a class="first" target="_top" href="\/\.gatehouse\/sign-in">/)
    })

for (const [referer, returnTo] of [
  ['HOST/desk?a=b', '?return_to=%2Fdesk%3Fa%3Db'],
  ['https://evil.example/desk', ''],
  ['HOST/', '?return_to=%2F'],
  ['no URL', ''],
] as const)
  test(`The sign-in from a frame returns to the page of this host that contains the frame: ${referer}`, async (t) => {
    const world = await startFramingWorld(t)

    const headers = { ...frame, referer: referer.replace('HOST', world.url) }
    const { body } = await world.browser().send(`${world.url}/orders`, { headers })

    assert.ok(body.includes(`href="/.gatehouse/sign-in${returnTo}"`), body)
  })

test('An unreachable application in a frame shows a page too', async (t) => {
  const world = await startWorld(t, {
    upstream: new URL('http://127.0.0.1:1'),
    upstreamSettings: 'rules: [{ path: /*, access: public }]',
  })

  const response = await world.browser().send(`${world.url}/orders`, { headers: frame })

  assert.equal(response.status, 502)
  assert.match(String(response.headers['content-security-policy']), /frame-ancestors 'self'/)
  assert.match(response.body, /<a class="first" href="">Try again/)
})
