import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import { accessibilityFaults } from '../support/axe.ts'
import { picture, startChromium } from '../support/chromium.ts'
import { freePort } from '../support/free-port.ts'
import { secrets, startWorld, type Replica, type World } from '../support/world.ts'

const chromium = await startChromium()

/** A world with signed-in people, an unreachable upstream and some Logout Tokens. */
async function livelyWorld(t: TestContext, page: string) {
  const adminPort = await freePort()
  const world = await startWorld(t, {
    store: 'redis',
    settings: `admin: { listen: "127.0.0.1:${adminPort}", page: ${page} }`,
    upstreamSettings: `rules: [{ path: /static/*, access: public }]
  reports: { url: "http://127.0.0.1:${await freePort()}", path: /reports/, rules: [{ path: /*, access: public }] }`,
  })
  const [jane, samir, zoe] = [world.browser('jane'), world.browser('samir'), world.browser('zoe')]
  for (const browser of [jane, samir, zoe]) await browser.get(`${world.url}/echo`)
  await world.browser().send(`${world.url}/reports/may`)
  const sid = world.provider.sessions().find(({ sub }) => sub === 'zoe')?.sid ?? ''
  await world.provider.endSession(sid)
  await world.postLogoutToken({ logout_token: 'eyJhbGciOiJub25lIn0.e30.' })
  return { world, admin: `http://127.0.0.1:${adminPort}`, jane, samir }
}

/** Whether a signed-in person is still admitted. */
async function isSignedIn(world: World, browser: { fetch(url: string): Promise<{ readonly status: number }> }) {
  return (await browser.fetch(`${world.url}/echo`)).status === 200
}

function auditOf(world: World): unknown[] {
  const { log } = world.replicas[0] as Replica
  return log.filter(({ message }) => message === 'session.ended').map(({ fields }) => [fields['by'], fields['sub']])
}

test('An administrator ends a session on the administration page with the keyboard alone, and axe-core finds no fault', async (t) => {
  const { world, admin, jane, samir } = await livelyWorld(t, '{ token: { env: CLIENT_SECRET } }')
  const httpCredentials = { username: 'admin', password: secrets.CLIENT_SECRET }
  const person = await chromium.person(t, { httpCredentials, viewport: { width: 1280, height: 1560 } })
  const page = await person.tab()
  const asked: string[] = []
  page.on('request', (request) => asked.push(request.url()))

  await page.goto(`${admin}/`)
  await page.getByRole('heading', { name: 'Sessions' }).waitFor()
  for (const name of ['Timeline of ended sessions', 'Charts', 'Upstreams', 'Provider'])
    await page.getByRole('heading', { name, exact: true }).waitFor()
  await page.getByText('ended 1 session').waitFor()
  await picture(page, 'admin-page')
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    assert.deepEqual(await accessibilityFaults(page), [], colorScheme)
  }
  await page.setViewportSize({ width: 320, height: 600 })
  assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 320)
  assert.deepEqual([...new Set(asked)], [`${admin}/`])

  await page.getByRole('searchbox').fill('jane')
  await page.keyboard.press('Enter')
  await page.getByText('1 session', { exact: true }).waitFor()
  await page.getByRole('button', { name: /^End the session of jane, / }).focus()
  await page.keyboard.press('Enter')

  await page.getByRole('heading', { name: 'The session has ended' }).waitFor()
  assert.deepEqual(await accessibilityFaults(page), [])
  assert.deepEqual([await isSignedIn(world, jane), await isSignedIn(world, samir)], [false, true])
  assert.deepEqual(auditOf(world), [
    ['provider', 'zoe'],
    ['administrator', 'jane'],
  ])
  await page.getByRole('link', { name: 'Back to the overview' }).click()
  await page.getByRole('button', { name: /^End the session of samir, / }).waitFor()
  assert.equal(await page.getByRole('button', { name: /^End / }).count(), 1)
  assert.deepEqual(person.complaints, [])
})

/** A page of an attacker that tries everything a page can, and reports what it could read. */
function hostilePage(admin: string, order: string): string {
  return `<!doctype html><title>Elsewhere</title>
<iframe name="inside" src="${admin}/"></iframe><img src="${admin}/">
<form id="form" method="post" action="${admin}/sessions/end" target="inside"><input name="order" value="${order}"></form>
<script>
const body = new URLSearchParams({ order: '${order}' })
const tries = [
  () => fetch('${admin}/', { credentials: 'include' }).then((answer) => answer.text()),
  () => fetch('${admin}/', { mode: 'no-cors', credentials: 'include' }).then((answer) => answer.text()),
  () => fetch('${admin}/sessions/end', { method: 'POST', body, credentials: 'include' }).then((answer) => answer.text()),
  () => fetch('${admin}/sessions/end', { method: 'POST', body, mode: 'no-cors', credentials: 'include' }).then((answer) => answer.text()),
  () => fetch('${admin}/sessions/end', { method: 'POST', body, headers: { 'sec-fetch-site': 'same-origin' } }).then((answer) => answer.text()),
]
const seen = Promise.all(tries.map((attempt) => attempt().catch(() => '')))
document.getElementById('form').submit()
</script>`
}

async function startSite(t: TestContext, html: string): Promise<number> {
  const server = createServer((_, res) => void res.writeHead(200, { 'content-type': 'text/html' }).end(html))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return (server.address() as AddressInfo).port
}

/**
 * The form of the button for jane's session. An attacker cannot have it, but security must not
 * depend on that alone.
 */
async function orderOn(page: Page): Promise<string> {
  const form = page.locator('form', { has: page.getByRole('button', { name: /session of jane/ }) })
  return form.locator('input[name=order]').inputValue()
}

for (const [where, host] of [
  ['on this machine, at another port', '127.0.0.1'],
  ['of another site', 'elsewhere.localhost'],
] as const)
  test(`A page ${where} can neither read the administration page nor end a session, even if it knows the token`, async (t) => {
    const { world, admin, jane } = await livelyWorld(t, '{}')
    const page = await (await chromium.person(t)).tab()
    await page.goto(`${admin}/`)
    const order = await orderOn(page)
    const site = await startSite(t, hostilePage(admin, order))

    await page.goto(`http://${host}:${site}/`)
    const seen = (await page.evaluate('seen')) as readonly string[]
    const popup = page.waitForEvent('popup')
    await page.evaluate(`void (window.opened = open('${admin}/'))`)
    await (await popup).getByRole('heading', { name: 'Sessions' }).waitFor()
    const inTheWindow = await page.evaluate(
      "(() => { try { return opened.document.body.innerText } catch { return '' } })()",
    )

    assert.deepEqual(
      seen,
      seen.map(() => ''),
    )
    assert.equal(await isSignedIn(world, jane), true)
    assert.deepEqual(auditOf(world), [['provider', 'zoe']])
    // A window with the page is isolated from the page that opened it.
    assert.deepEqual([inTheWindow, await page.evaluate('opened.closed')], ['', true])
  })

test('A site whose name resolves to this machine does not reach the administration page (DNS rebinding)', async (t) => {
  const { world, admin, jane } = await livelyWorld(t, '{}')
  const page = await (await chromium.person(t)).tab()
  await page.goto(`${admin}/`)
  const order = await orderOn(page)
  // The browser resolves every name below localhost to 127.0.0.1, as if the site had changed its
  // address.
  const rebound = `http://evil.localhost:${new URL(admin).port}`

  const response = await page.goto(`${rebound}/`)
  // The page that the site served before that.
  await page.route(`${rebound}/game`, (route) => route.fulfill({ contentType: 'text/html', body: 'Play!' }))
  await page.goto(`${rebound}/game`)
  const [read, ended] = (await page.evaluate(`Promise.all([
    fetch('/').then((answer) => answer.status),
    fetch('/sessions/end', { method: 'POST', body: new URLSearchParams({ order: '${order}' }) }).then((answer) => answer.status),
  ])`)) as readonly number[]

  assert.deepEqual([response?.status(), read, ended], [421, 421, 421])
  assert.equal(await isSignedIn(world, jane), true)
})
