// Slow: 4 s, Chromium examines the administration page
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import { accessibilityFaults } from '../support/axe.ts'
import { picture, startChromium } from '../support/chromium.ts'
import { freePort } from '../support/free-port.ts'
import { openPageStream } from '../support/page-stream.ts'
import { replacePauses } from '../support/pauses.ts'
import { secrets, startWorld, type Replica, type World } from '../support/world.ts'

const chromium = await startChromium()

/** A world with signed-in people, an unreachable upstream and some Logout Tokens. */
async function livelyWorld(t: TestContext, page: string) {
  const world = await startWorld(t, {
    store: 'redis',
    replicas: 2,
    settings: `admin: { listen: "127.0.0.1:0", page: ${page} }`,
    upstreamSettings: `rules: [{ path: /static/*, access: public }]
  reports: { url: "http://127.0.0.1:${await freePort()}", path: /reports/, rules: [{ path: /*, access: public }] }`,
  })
  const admin = `http://127.0.0.1:${(world.replicas[0] as Replica).gateway.adminAddress?.port}`
  if (process.env['UPDATE_SCREENSHOTS'] === '1') await quarterOfAnHour(world, admin)
  const [jane, samir, zoe] = [world.browser('jane'), world.browser('samir'), world.browser('zoe')]
  jane.userAgent = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0'
  samir.userAgent =
    'Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36'
  for (const browser of [jane, samir, zoe]) await browser.get(`${world.url}/echo`)
  await world.browser().send(`${world.url}/reports/may`)
  const sid = world.provider.sessions().find(({ sub }) => sub === 'zoe')?.sid ?? ''
  await world.provider.endSession(sid)
  await world.postLogoutToken({ logout_token: 'eyJhbGciOiJub25lIn0.e30.' })
  world.moveClock(10_000)
  return { world, admin, jane, samir }
}

/** Requests of the last quarter of an hour, for the charts in the pictures. */
async function quarterOfAnHour(world: World, admin: string): Promise<void> {
  const authorization = `Basic ${Buffer.from(`:${secrets.CLIENT_SECRET}`).toString('base64')}`
  const read = () => fetch(admin, { headers: { authorization } })
  world.moveClock(-900_000)
  await read()
  for (let step = 0; step < 90; step += 1) {
    const count = Math.round(12 + 8 * Math.sin(step / 9) + 4 * Math.sin(step * 2.3))
    for (let times = 0; times < count; times += 1) await fetch(`${world.url}/static/about.txt`)
    for (let times = 0; times < (step * 7) % 5; times += 1) await fetch(`${world.url}/echo`)
    world.moveClock(10_000)
    await read()
  }
}

/** Whether a signed-in person is still admitted. */
async function isSignedIn(world: World, browser: { fetch(url: string): Promise<{ readonly status: number }> }) {
  return (await browser.fetch(`${world.url}/echo`)).status === 200
}

function auditOf(world: World): unknown[] {
  const { log } = world.replicas[0] as Replica
  return log.filter(({ message }) => message === 'session.ended').map(({ fields }) => [fields['by'], fields['sub']])
}

/** Without the contrast of covered text, which axe-core cannot tell. */
async function faultsBesideContrast(page: Page): Promise<readonly string[]> {
  return (await accessibilityFaults(page)).filter((fault) => !fault.startsWith('color-contrast'))
}

test('An administrator ends a session on the administration page with the keyboard alone, and axe-core finds no fault', async (t) => {
  const { world, admin, jane, samir } = await livelyWorld(t, '{ token: { env: CLIENT_SECRET }, show_claim: email }')
  const httpCredentials = { username: 'admin', password: secrets.CLIENT_SECRET }
  const person = await chromium.person(t, { httpCredentials, viewport: { width: 1440, height: 1900 } })
  const page = await person.tab()
  const asked: string[] = []
  page.on('request', (request) => asked.push(request.url()))

  await page.goto(`${admin}/`)
  await page.getByText('Live', { exact: true }).waitFor()
  for (const name of ['Sessions', 'Timeline', 'Charts', 'Upstreams', 'Provider', 'Caches', 'Background work'])
    await page.getByRole('heading', { name, exact: true }).waitFor()
  await page.getByText('ended 1 session').waitFor()
  await page.locator('#chart-requests canvas').waitFor()
  assert.equal(await page.locator('.chart canvas').count(), 8)
  const legend = page.locator('#chart-requests .u-legend')
  assert.match(await legend.innerText(), /^UTC\W*\d\d:\d\d:\d\d\W*requests\W*(?:[\d.]+|--)$/)
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    assert.deepEqual(await accessibilityFaults(page), [], colorScheme)
  }
  await page.emulateMedia({ colorScheme: 'light' })
  await page.evaluate('document.activeElement.blur()')
  await page.evaluate("document.querySelector('#part-timeline td details').open = true")
  await picture(page, 'admin-page')
  await page.setViewportSize({ width: 390, height: 1300 })
  await picture(page, 'admin-page-narrow')
  assert.deepEqual(await faultsBesideContrast(page), [])
  await page.evaluate("document.querySelectorAll('details').forEach((details) => (details.open = true))")
  assert.deepEqual(await faultsBesideContrast(page), [])
  for (const width of [390, 320]) {
    await page.setViewportSize({ width, height: 844 })
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), width)
  }
  assert.deepEqual(new Set(asked), new Set([`${admin}/`, `${admin}/events`]))

  await page.goto(`${admin}/`)
  await page.keyboard.press('Tab')
  assert.equal(await page.evaluate('document.activeElement.textContent'), 'Skip to the content')
  await page.keyboard.press('Enter')
  // Over the charts, which are closed.
  await page.keyboard.press('Tab')
  await page.keyboard.press('Tab')
  await page.keyboard.type('127.0.0.1')
  await page.keyboard.press('ControlOrMeta+A')
  await page.keyboard.type('jane')
  await page.keyboard.press('Enter')
  await page.getByText('1 session', { exact: true }).waitFor()
  await page.getByRole('button', { name: /^End the session of jane/ }).focus()
  await page.keyboard.press('Enter')
  await page.getByRole('dialog', { name: 'End the session of jane.doe@example.com?' }).waitFor()
  assert.deepEqual(await faultsBesideContrast(page), [])
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')

  await page.getByRole('heading', { name: 'The session has ended' }).waitFor()
  assert.deepEqual(await accessibilityFaults(page), [])
  assert.deepEqual([await isSignedIn(world, jane), await isSignedIn(world, samir)], [false, true])
  assert.deepEqual(auditOf(world), [
    ['provider', 'zoe'],
    ['administrator', 'jane'],
  ])
  await page.getByRole('link', { name: 'Back to the overview' }).click()
  await page.getByRole('button', { name: /^End the session of samir/ }).waitFor()
  assert.equal(await page.getByRole('button', { name: /^End / }).count(), 1)
  assert.deepEqual(person.complaints, [])
})

test('What changes appears on the open page, while the focus, an open list, a text and a selection stay', async (t) => {
  replacePauses(t, { updateAdminPageMs: 50 })
  const { world, admin } = await livelyWorld(t, '{}')
  const person = await chromium.person(t)
  const page = await person.tab()
  await page.goto(`${admin}/`)
  await page.locator('#part-timeline td summary').first().click()
  await page.getByRole('searchbox').pressSequentially('not sent yet')
  const button = page.getByRole('button', { name: /^End the session of samir/ })
  await button.focus()
  const seen = (text: string) => page.locator('#part-sessions').getByText(text, { exact: true })

  await world.browser('zoe').get(`${world.url}/echo`)
  await seen('zoe').waitFor()
  assert.deepEqual(
    [
      await page.evaluate("document.activeElement.getAttribute('aria-label').slice(0, 24)"),
      await page.locator('#part-timeline details').last().getAttribute('open'),
      await page.getByRole('searchbox').inputValue(),
    ],
    ['End the session of samir', '', 'not sent yet'],
  )

  await page.evaluate("getSelection().selectAllChildren(document.querySelector('#part-sessions caption'))")
  await page.getByRole('button', { name: 'Pause' }).click()
  await page.getByText(/^Paused: the page shows the state of /).waitFor()
  await world.browser('jane').get(`${world.url}/echo`)
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.getByText('Live', { exact: true }).waitFor()
  assert.equal(await page.evaluate('String(getSelection())'), '3 sessions')
  assert.equal(await seen('4 sessions').count(), 0)
  await page.evaluate('getSelection().empty()')
  await seen('4 sessions').waitFor()

  // The session of the focused button ends elsewhere.
  await button.focus()
  const sid = world.provider.sessions().find(({ sub }) => sub === 'samir')?.sid ?? ''
  await world.provider.endSession(sid)
  await button.waitFor({ state: 'detached' })
  assert.equal(await page.evaluate('document.activeElement.className'), 'wide')

  // Ten pages get updates. The eleventh says why it gets none.
  for (let streams = 0; streams < 10; streams += 1) await openPageStream(t, admin)
  const another = await person.tab()
  await another.goto(`${admin}/`)
  await another.getByText(/^Too many pages are open: 10 others .* the state of \d\d:\d\d:\d\d UTC/).waitFor()
  await another.close()
  assert.deepEqual(person.complaints, [])

  await (world.replicas[0] as Replica).stop()
  await page.getByText(/^The connection is lost: the page shows the state of \d\d:\d\d:\d\d UTC/).waitFor()
})

test('On a telephone, 25 sessions are a short page: each opens, links lead past them, and a finger hits what it needs', async (t) => {
  const world = await startWorld(t, { settings: 'admin: { listen: "127.0.0.1:0", page: { show_claim: email } }' })
  for (let sessions = 0; sessions < 26; sessions += 1) await world.browser('samir').get(`${world.url}/echo`)
  for (let events = 0; events < 40; events += 1)
    await world.postLogoutToken({ logout_token: 'eyJhbGciOiJub25lIn0.e30.' })
  const page = await (await chromium.person(t, { viewport: { width: 390, height: 844 } })).tab()
  await page.goto(`http://127.0.0.1:${(world.replicas[0] as Replica).gateway.adminAddress?.port}/`)
  const [row, copy] = [page.locator('#part-sessions tbody tr').first(), page.getByRole('button', { name: 'Copy sid' })]
  const measured = () =>
    page.evaluate('[document.documentElement.scrollWidth, document.documentElement.scrollHeight]') as Promise<
      [number, number]
    >

  for (const width of [390, 320]) {
    await page.setViewportSize({ width, height: 844 })
    const [scrollWidth, scrollHeight] = await measured()
    assert.equal(scrollWidth, width)
    assert.ok(scrollHeight < 4_000, `${scrollHeight} px at a width of ${width}`)
  }
  for (const target of await page.locator('nav a, thead a, input[type=search], button, summary').all()) {
    const { width = 44, height = 44 } = (await target.boundingBox()) ?? {}
    assert.ok(width >= 44 && height >= 44, `${width} × ${height}: ${await target.innerText()}`)
  }
  // The order of the columns is that of the cells, for a screen reader.
  const roles = async () => [await page.getByRole('columnheader').count(), await row.getByRole('cell').count()]
  const bound = row.getByText('not bound')
  assert.deepEqual([...(await roles()), await copy.count(), await bound.isVisible()], [7, 6, 0, false])
  await row.locator('summary').focus()
  await page.keyboard.press('Enter')
  assert.deepEqual([...(await roles()), await copy.count(), await bound.isVisible()], [7, 6, 1, true])
  for (const [name, text] of [
    ['Timeline', 'refused'],
    ['Upstreams', 'Counted since'],
  ] as const) {
    const shown = page.getByText(text).first()
    assert.equal(await shown.isVisible(), false)
    await page.getByRole('link', { name }).click()
    await shown.waitFor()
    const top = `document.getElementById('${name.toLowerCase()}').getBoundingClientRect().top`
    assert.equal(await page.evaluate(`${top} >= 0 && ${top} < innerHeight`), true)
  }
  await page.locator('summary[aria-label=Provider]').click()
  await page.getByText('Issuer').waitFor()

  await page.setViewportSize({ width: 1280, height: 844 })
  assert.deepEqual([await copy.count(), await page.locator('.more > summary:visible').count()], [25, 0])
})

test('Without its script the page shows everything, and a link refreshes it', async (t) => {
  const { admin } = await livelyWorld(t, '{}')
  const page = await (await chromium.person(t, { javaScriptEnabled: false })).tab()

  await page.goto(`${admin}/?q=jane`)
  await page.getByRole('link', { name: 'Refresh' }).click()

  await page.getByText('1 session', { exact: true }).waitFor()
  await page.getByText('ended 1 session').waitFor()
  assert.equal(await page.getByRole('button', { name: 'Pause' }).count(), 0)
  assert.match(page.url(), /\?q=jane$/)
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
  const row = page.locator('tr', { has: page.getByRole('button', { name: /session of jane/ }) })
  return row.locator('input[name=order]').inputValue()
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
    await (await popup).getByRole('heading', { name: 'Sessions', exact: true }).waitFor()
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
