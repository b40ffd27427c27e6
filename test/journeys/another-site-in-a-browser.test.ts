import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import { startChromium } from '../support/chromium.ts'
import { startWorld, type World } from '../support/world.ts'

const chromium = await startChromium()

/**
 * A page of another person. Resolves to its origin. On another port it is another origin of the
 * same site, on another host name it is another site.
 */
async function startSite(t: TestContext, body: () => string, host = '127.0.0.1'): Promise<string> {
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end(`<!doctype html><title>Elsewhere</title>${body()}`)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://${host}:${(server.address() as AddressInfo).port}`
}

function form(world: World, button: string): string {
  return `<form method="post" action="${world.url}/echo"><button>${button}</button></form>`
}

async function signedIn(t: TestContext, world: World): Promise<Page> {
  const page = await (await chromium.person(t)).tab()
  await page.goto(`${world.url}/`)
  await page.getByRole('button', { name: 'Jane Doe' }).click()
  await page.getByRole('heading', { name: 'Jane Doe' }).waitFor()
  return page
}

/** Resolves to the result of a WebSocket that the page opens. */
function openSocket(page: Page, url: string): Promise<unknown> {
  return page.evaluate(`new Promise((resolve) => {
    const socket = new WebSocket('${url}')
    socket.onopen = () => resolve('open')
    socket.onerror = () => resolve('refused')
  })`)
}

test('A same-site page, to whose requests the browser adds the cookie, cannot act for the signed-in person', async (t) => {
  const world = await startWorld(t)
  const neighbour = await startSite(t, () => form(world, 'Win'))
  const page = await signedIn(t, world)
  const webSocketUrl = `${world.url.replace('http', 'ws')}/ws`
  assert.equal(await openSocket(page, webSocketUrl), 'open')

  await page.goto(neighbour)
  await page.getByRole('button', { name: 'Win' }).click()

  await page.getByText('This request came from another site and was not carried out.').waitFor()
  await page.goto(neighbour)
  assert.equal(await openSocket(page, webSocketUrl), 'refused')
  const refused = world.replicas.flatMap(({ log }) => log).filter(({ message }) => message === 'access.denied')
  const reasons = refused.map(({ fields }) => fields['reason'])
  assert.deepEqual(
    reasons.filter((reason) => String(reason).includes(neighbour)),
    // The second denial of the same session and rule is counted and logged later.
    [`a page of ${neighbour} made the request (same-site)`],
  )
})

test('A same-site page with a trusted origin can act for the signed-in person', async (t) => {
  const neighbour = await startSite(t, () => form(world, 'Order'))
  const world: World = await startWorld(t, { upstreamSettings: `trusted_origins: ["${neighbour}"]` })
  const page = await signedIn(t, world)

  await page.goto(neighbour)
  await page.getByRole('button', { name: 'Order' }).click()

  await page.waitForURL(`${world.url}/echo`)
  assert.match(await page.locator('body').innerText(), /"X-Remote-User",\s*"jane"/)
})

test('With a Strict cookie, a link on another site leads to the page without a new session', async (t) => {
  const world = await startWorld(t, { session: 'cookie: { same_site: strict }' })
  const elsewhere = await startSite(t, () => `<a href="${world.url}/echo?page=2#end">Page two</a>`, 'localhost')
  const page = await signedIn(t, world)
  const sessionCookie = async () =>
    (await page.context().cookies(world.url)).find(({ name }) => name === 'gatehouse')?.value
  const before = await sessionCookie()

  await page.goto(elsewhere)
  await page.getByRole('link', { name: 'Page two' }).click()

  await page.waitForURL(/\/echo\?page=2/)
  await page.getByText('X-Remote-User').waitFor()
  assert.equal(await sessionCookie(), before)
})
