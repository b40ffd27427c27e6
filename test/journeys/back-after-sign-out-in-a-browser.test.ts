// Slow: 6 s, Chromium goes back in each situation
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import { httpUpstream } from '../proxy/support.ts'
import { startChromium } from '../support/chromium.ts'
import { until } from '../support/until.ts'
import { startWorld, type World, type WorldOptions } from '../support/world.ts'

const chromium = await startChromium({ keepsPagesForBack: true })

/** An application whose responses have this Cache-Control. */
async function startApplication(
  t: TestContext,
  cacheControl: string | undefined,
  options: WorldOptions = {},
): Promise<World> {
  const { port } = await httpUpstream(t, (_req, res) => {
    if (cacheControl !== undefined) res.setHeader('cache-control', cacheControl)
    const links = '<a href="/.gatehouse/sign-out">Sign out</a> <a href="/next">Next</a>'
    res.setHeader('content-type', 'text/html').end(`<!doctype html><title>Orders</title><h1>Private</h1>${links}`)
  })
  return startWorld(t, {
    upstream: new URL(`http://127.0.0.1:${port}`),
    upstreamSettings: 'cache: private',
    ...options,
  })
}

async function signIn(page: Page, url: string): Promise<void> {
  await page.goto(url)
  await page.getByRole('button', { name: 'Jane Doe' }).click()
  await page.getByRole('heading', { name: 'Private' }).waitFor()
}

/** Presses Back, and returns the heading of the page that the browser then shows. */
async function goBack(page: Page): Promise<string> {
  await page.evaluate('window.isLeft = true; history.back()')
  // A page from the memory of the browser does not load again, so there is no event to wait for.
  let heading: unknown
  await until('the browser shows another page', async () => {
    const shown = "window.isLeft === true ? undefined : document.querySelector('h1')?.innerText"
    heading = await page.evaluate(shown).catch(() => undefined)
    return heading !== undefined
  })
  return String(heading)
}

test('The Back button shows a page from the memory of the browser while the person is signed in', async (t) => {
  const world = await startApplication(t, undefined)
  const page = await (await chromium.person(t)).tab()
  await signIn(page, `${world.url}/orders`)
  await page.evaluate("window.kept = 'kept'")
  await page.getByRole('link', { name: 'Next' }).click()
  await page.waitForURL(/next/)

  assert.equal(await goBack(page), 'Private')

  assert.equal(await page.evaluate('window.kept'), 'kept')
})

for (const cacheControl of [undefined, 'max-age=3600', 'public, max-age=3600', 'no-store']) {
  const said = cacheControl ?? 'nothing'

  test(`After sign-out, Back does not show the private page of an application that says ${said} about caches`, async (t) => {
    const world = await startApplication(t, cacheControl)
    const page = await (await chromium.person(t)).tab()
    await signIn(page, `${world.url}/orders`)
    await page.getByRole('link', { name: 'Sign out' }).click()
    await page.waitForURL(`${world.url}/.gatehouse/signed-out`)

    assert.equal(await goBack(page), 'Who are you today?')
  })

  test(`After a logout at the provider and a navigation, Back does not show the private page: ${said}`, async (t) => {
    const world = await startApplication(t, cacheControl)
    const page = await (await chromium.person(t)).tab()
    await signIn(page, `${world.url}/orders`)
    await world.provider.endSession(world.provider.sessions()[0]?.sid ?? '')
    await page.getByRole('link', { name: 'Next' }).click()
    await page.getByRole('heading', { name: 'Who are you today?' }).waitFor()

    assert.equal(await goBack(page), 'Who are you today?')
  })
}

test('The page after sign-out loads once more, and the response removes what the browser keeps', async (t) => {
  const world = await startApplication(t, undefined)
  const jane = world.browser()

  for (const query of ['?state=of-the-provider', '?provider=not_asked']) {
    const { headers } = await jane.send(`${world.url}/.gatehouse/signed-out${query}`)
    assert.equal(headers['refresh'], '0; url=/.gatehouse/signed-out')
  }
  const { headers } = await jane.send(`${world.url}/.gatehouse/signed-out`)
  assert.deepEqual([headers['refresh'], headers['clear-site-data']], [undefined, '"cache"'])
})

test('A response that finds the session ended tells the browser to remove what it keeps, also for a script', async (t) => {
  const world = await startApplication(t, undefined)
  const jane = world.browser()
  await jane.get(`${world.url}/orders`)
  const headers = { cookie: jane.cookieHeader }
  await world.provider.endSession(world.provider.sessions()[0]?.sid ?? '')

  for (const response of [
    await jane.send(`${world.url}/orders`, { headers }),
    await jane.fetch(`${world.url}/orders`, { headers }),
  ])
    assert.equal(response.headers['clear-site-data'], '"cache"')
  assert.equal((await world.browser().send(`${world.url}/orders`)).headers['clear-site-data'], undefined)
})
