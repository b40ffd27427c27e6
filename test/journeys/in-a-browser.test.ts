// Slow: 10 s, Chromium is led through every way to sign out
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import { accessibilityFaults } from '../support/axe.ts'
import { picture, startChromium } from '../support/chromium.ts'
import { freePort } from '../support/free-port.ts'
import { inTime } from '../support/in-time.ts'
import { startWorld, type World } from '../support/world.ts'
import { choose, isAtTheApplicationAs, isSignedOut, signIn, startDemoWorld } from './demo-application.ts'

const chromium = await startChromium()

test('A session that ends at the provider ends in the open page within a second, and no other session ends', async (t) => {
  const world = await startDemoWorld(t)
  const [jane, samir] = [await chromium.person(t), await chromium.person(t)]
  const [application, ofSamir] = [await jane.tab(), await samir.tab()]
  await signIn(application, world, 'Jane Doe')
  await signIn(ofSamir, world, 'Samir Haddad')
  for (const page of [application, ofSamir]) for (const stream of streams) await ticksAfter(page, stream, 1)
  await picture(application, 'application')
  const sessions = await jane.tab()
  await sessions.goto(world.provider.issuer)
  await picture(sessions, 'sessions')

  const closed = Promise.all(streams.map((stream) => stateOf(application, stream, 'closed').waitFor()))
  const answered = sessions.waitForResponse((response) => response.url().endsWith('/sessions/end'))
  const closedInTime = answered.then(() => inTime(1_000, () => closed))
  await sessions
    .getByRole('listitem')
    .filter({ hasText: 'Jane Doe' })
    .getByRole('button', { name: 'End this session' })
    .click()

  await closedInTime
  await application.getByText('Your session has ended.').waitFor()
  await picture(application, 'session-ended')
  await application.reload()
  await application.getByRole('heading', { name: 'Who are you today?' }).waitFor()
  for (const stream of streams) await ticksAfter(ofSamir, stream, await ticksOf(ofSamir, stream))
  await ofSamir.reload()
  await isAtTheApplicationAs(ofSamir, 'Samir Haddad')
})

test('An account that is disabled at the provider ends the open page within a second, and cannot sign in again', async (t) => {
  const eventReceiver = { url: '', aud: 'orders' }
  const world = await startDemoWorld(t, { providerSettings: 'signals: {}', provider: { eventReceiver } })
  eventReceiver.url = `${world.url}/.gatehouse/security-events`
  const jane = await chromium.person(t)
  const [application, sessions] = [await jane.tab(), await jane.tab()]
  await signIn(application, world, 'Jane Doe')
  for (const stream of streams) await ticksAfter(application, stream, 1)
  await sessions.goto(world.provider.issuer)

  const closed = Promise.all(streams.map((stream) => stateOf(application, stream, 'closed').waitFor()))
  const disabled = sessions.waitForResponse((response) => response.url().endsWith('/accounts/disable'))
  const closedInTime = disabled.then(() => inTime(1_000, () => closed))
  await sessions.getByRole('button', { name: 'Disable this account' }).click()

  await closedInTime
  await application.getByText('Your session has ended.').waitFor()
  await application.goto(world.url)
  await choose(application, 'Jane Doe')
  await application.getByText('Jane Doe cannot sign in').waitFor()
})

test('Ten tabs that open at once all end at their own pages', async (t) => {
  const world = await startDemoWorld(t)
  const jane = await chromium.person(t)
  // Pages without streams, because a browser opens six connections to a host and open streams would
  // use them up.
  const wanted = Array.from({ length: 10 }, (_, tab) => `${world.url}/echo?tab=${tab}`)

  const ended = wanted.map(async (url) => {
    const page = await jane.tab()
    await page.goto(url)
    // A late tab sees no question, because another tab has signed in already.
    if (page.url() !== url) await choose(page, 'Jane Doe')
    await page.waitForURL(url)
    return page.url()
  })

  assert.deepEqual(await Promise.all(ended), wanted)
})

test('A link on another site leads to a question before the sign-out, and the button on that page signs out', async (t) => {
  const world = await startDemoWorld(t)
  const site = await startSite(t, `<a href="${world.url}/.gatehouse/sign-out">You have won</a>`)
  const page = await (await chromium.person(t)).tab()
  await signIn(page, world, 'Jane Doe')

  await page.goto(`http://localhost:${site}`)
  await page.getByRole('link', { name: 'You have won' }).click()
  await page.getByRole('heading', { name: 'Do you want to sign out?' }).waitFor()
  assert.equal(world.provider.sessions().length, 1)
  await isSignedInStill(page, world)

  await page.getByRole('button', { name: 'Sign out' }).click()
  await isSignedOut(page)
  assert.deepEqual(world.provider.sessions(), [])
})

for (const [where, host] of [
  ['another site', 'localhost'],
  // The browser sends the cookie here, because a site is a host name without its port.
  ['another origin of this site', '127.0.0.1'],
] as const) {
  test(`An image on ${where} signs nobody out`, async (t) => {
    const world = await startDemoWorld(t)
    const site = await startSite(t, 'Look at this:')
    const page = await (await chromium.person(t)).tab()
    await signIn(page, world, 'Jane Doe')

    await page.goto(`http://${host}:${site}`)
    for (const path of signOutPaths) await showImage(page, `${world.url}${path}`)

    await isSignedInStill(page, world)
  })
}

test('The logout link of the application also signs out of the gateway and the provider', async (t) => {
  const world = await startDemoWorld(t)
  const jane = await chromium.person(t)
  const page = await jane.tab()
  await signIn(page, world, 'Jane Doe')

  await page.getByRole('link', { name: 'The application’s own logout' }).click()

  await isSignedOut(page)
  assert.deepEqual(world.provider.sessions(), [])
  assert.deepEqual(await jane.context.cookies(world.url), [])
})

test('The page for an unreachable application says nothing about the servers behind the gateway', async (t) => {
  const port = await freePort()
  const world = await startWorld(t, { upstream: new URL(`http://127.0.0.1:${port}`) })
  const page = await (await chromium.person(t)).tab()
  await page.goto(world.url)
  const answered = page.waitForResponse(`${world.url}/`)

  await choose(page, 'Jane Doe')

  assert.equal((await answered).status(), 502)
  await page.getByRole('heading', { name: 'The application cannot be reached.' }).waitFor()
  assert.doesNotMatch(await page.content(), new RegExp(`${port}|127\\.0\\.0\\.1|ECONN|orders|at .*:\\d+`))
})

test('The page for an unreachable provider says so, and its link works when the provider is back', async (t) => {
  const world = await startDemoWorld(t, { providerStartsDown: true })
  const page = await (await chromium.person(t)).tab()

  const response = await page.goto(`${world.url}/admin/?month=may`)

  assert.equal(response?.status(), 503)
  await page.getByText('The sign-in service cannot be reached.').waitFor()
  await world.provider.up()
  // The gateway waits before its next request to an unreachable provider.
  world.moveClock(1000)
  await page.getByRole('link', { name: 'Try again' }).click()
  await choose(page, 'Jane Doe')
  await isAtTheApplicationAs(page, 'Jane Doe')
  assert.equal(page.url(), `${world.url}/admin/?month=may`)
})

test('Loading a callback a second time leads to the application', async (t) => {
  const world = await startDemoWorld(t)
  const page = await (await chromium.person(t)).tab()
  const callback = page.waitForRequest((request) => request.url().includes('/.gatehouse/callback?'))
  await page.goto(`${world.url}/admin/?month=may`)
  await choose(page, 'Jane Doe')
  await isAtTheApplicationAs(page, 'Jane Doe')

  await page.goto((await callback).url())

  await isAtTheApplicationAs(page, 'Jane Doe')
  assert.equal(page.url(), `${world.url}/admin/?month=may`)
})

test('A link on another site leads through one sign-in with a Strict session cookie, not into a loop', async (t) => {
  const world = await startDemoWorld(t, { session: 'cookie: { same_site: strict }' })
  const site = await startSite(t, `<a href="${world.url}/admin/?month=may">The figures for May</a>`)
  const jane = await chromium.person(t)
  const page = await jane.tab()
  await signIn(page, world, 'Jane Doe')
  assert.deepEqual(
    (await jane.context.cookies(world.url)).filter(({ name }) => name === 'gatehouse').map(({ sameSite }) => sameSite),
    ['Strict'],
  )

  await page.goto(`http://localhost:${site}`)
  await page.getByRole('link', { name: 'The figures for May' }).click()

  await isAtTheApplicationAs(page, 'Jane Doe')
  assert.equal(page.url(), `${world.url}/admin/?month=may`)
})

test('The Back button after sign-out leads to the sign-in', async (t) => {
  const world = await startDemoWorld(t)
  const page = await (await chromium.person(t)).tab()
  await signIn(page, world, 'Jane Doe')
  await page.getByRole('link', { name: 'Sign out' }).click()
  await isSignedOut(page)

  await page.goBack()

  await page.getByRole('heading', { name: 'Who are you today?' }).waitFor()
})

test('An image in the content of the application signs nobody out', async (t) => {
  const world = await startDemoWorld(t)
  const page = await (await chromium.person(t)).tab()
  await signIn(page, world, 'Jane Doe')

  for (const path of signOutPaths) await showImage(page, `${world.url}${path}`)

  await isSignedInStill(page, world)
})

test('The browser reports no error during sign-in and sign-out', async (t) => {
  const world = await startDemoWorld(t, { session: 'cookie: { same_site: strict }' })
  const site = await startSite(t, `<link rel="icon" href="data:,"><a href="${world.url}/.gatehouse/sign-out">Leave</a>`)
  const jane = await chromium.person(t)
  const page = await jane.tab()

  await signIn(page, world, 'Jane Doe')
  for (const stream of streams) await ticksAfter(page, stream, 0)
  await page.getByRole('button', { name: 'Call' }).click()
  await page.getByText('200 OK').waitFor()
  await page.goto(world.provider.issuer)
  await page.goto(`http://localhost:${site}`)
  await page.getByRole('link', { name: 'Leave' }).click()
  await page.getByRole('button', { name: 'Sign out' }).click()
  await isSignedOut(page)
  await page.getByRole('link', { name: 'Sign in' }).click()
  await choose(page, 'Samir Haddad')
  await isAtTheApplicationAs(page, 'Samir Haddad')
  await page.goto(`${world.url}/.gatehouse/signed-out`)
  await page.getByRole('heading', { name: 'You are still signed in.' }).waitFor()
  await page.getByRole('button', { name: 'Sign out' }).click()
  await isSignedOut(page)

  assert.deepEqual(jane.complaints, [])
})

for (const [status, path] of [
  [400, '/.gatehouse/callback'],
  [403, '/admin/'],
  [404, '/.gatehouse/nothing-here'],
] as const) {
  test(`The page with status ${status} looks as designed`, async (t) => {
    const world = await startDemoWorld(t)
    const samir = await chromium.person(t)
    const page = await samir.tab()
    await signIn(page, world, 'Samir Haddad')

    const response = await page.goto(`${world.url}${path}`)

    assert.equal(response?.status(), status)
    // The status itself is one.
    assert.deepEqual(
      samir.complaints.filter((complaint) => !complaint.includes(`status of ${status}`)),
      [],
    )
    assert.equal(await page.evaluate("getComputedStyle(document.querySelector('main')).borderRadius"), '12px')
  })
}

test('The pages of the demo follow the color scheme of the system, also on a telephone', async (t) => {
  const world = await startDemoWorld(t)
  const page = await (await chromium.person(t, { viewport: { width: 390, height: 844 } })).tab()
  const isAsDesigned = async (where: string) => {
    for (const [colorScheme, isDark] of [
      ['light', false],
      ['dark', true],
    ] as const) {
      await page.emulateMedia({ colorScheme })
      const [red = 0] = (await page.evaluate(
        'getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).map(Number)',
      )) as number[]
      assert.equal(red < 64, isDark, `${where} ${colorScheme}`)
      // The list of sessions loads itself again, because it may have no script.
      assert.deepEqual(
        (await accessibilityFaults(page)).filter((fault) => !fault.startsWith('meta-refresh')),
        [],
        `${where} ${colorScheme}`,
      )
      assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 390)
    }
  }

  await page.goto(world.url)
  await isAsDesigned('people')
  await choose(page, 'Jane Doe')
  for (const stream of streams) await ticksAfter(page, stream, 0)
  await isAsDesigned('application')
  await page.goto(world.provider.issuer)
  await isAsDesigned('sessions')
})

const streams = ['socket', 'events'] as const
type Stream = (typeof streams)[number]

/** The application of the demo world links to the provider. */
/** Another site with one page. Resolves to its port. */
async function startSite(t: TestContext, body: string): Promise<number> {
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end(`<!doctype html><title>Elsewhere</title>${body}`)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return (server.address() as AddressInfo).port
}

/**
 * Sent apart from the page, with the cookies of the browser. A page load would start a new sign-in
 * without a question at the provider.
 */
async function isSignedInStill(page: Page, world: World): Promise<void> {
  assert.equal((await page.request.get(`${world.url}/api/me`)).status(), 200)
}

const signOutPaths = ['/.gatehouse/sign-out', '/logout']

/** Resolves when the browser has requested it and found that it is not an image. */
async function showImage(page: Page, url: string): Promise<void> {
  await page.evaluate(`new Promise((resolve) => {
    const image = document.body.appendChild(new Image())
    image.onerror = resolve
    image.src = '${url}'
  })`)
}

function stateOf(page: Page, stream: Stream, state: 'open' | 'closed') {
  return page.locator(`#${stream} .state.${state}`)
}

async function ticksOf(page: Page, stream: Stream): Promise<number> {
  return Number(/^tick (\d+) /.exec(await page.locator(`#${stream} .text`).innerText())?.[1] ?? 0)
}

/** Resolves when a stream has ticked more often than this number. */
async function ticksAfter(page: Page, stream: Stream, ticks: number): Promise<void> {
  await page.waitForFunction(
    `Number(/^tick (\\d+) /.exec(document.querySelector('#${stream} .text').textContent)?.[1]) > ${ticks}`,
  )
}
