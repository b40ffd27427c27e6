// Slow: 6 s, Chromium renews sessions in tabs, pop-up windows and frames
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import { httpUpstream } from '../proxy/support.ts'
import { accessibilityFaults } from '../support/axe.ts'
import { startChromium } from '../support/chromium.ts'
import { until } from '../support/until.ts'
import { startWorld, type World, type WorldOptions } from '../support/world.ts'
import { choose } from './support.ts'

const chromium = await startChromium()
const minutes = 60_000

/** An application with a strict policy, whose pages include the script and record its events. */
async function start(t: TestContext, options: WorldOptions = {}): Promise<World> {
  const { port } = await httpUpstream(t, (req, res) => {
    const policy = "default-src 'none'; script-src 'self'; connect-src 'self'"
    if (req.url === '/open/record.js') {
      const record = `window.seen = []
        for (const name of ['expiring', 'ended', 'renewed', 'changed'])
          document.addEventListener('gatehouse:' + name, (event) => {
            seen.push(name)
            if (location.hash === '#own') event.preventDefault()
          })`
      return void res.writeHead(200, { 'content-type': 'text/javascript' }).end(record)
    }
    res
      .writeHead(200, { 'content-type': 'text/html', 'content-security-policy': policy })
      .end(
        `<!doctype html><html lang="en"><title>Orders</title><script src="/open/record.js"></script><script src="/.gatehouse/session.js" data-warn-before="540" defer></script><main><h1>Orders</h1><input aria-label="Note"></main></html>`,
      )
  })
  return startWorld(t, {
    upstream: new URL(`http://127.0.0.1:${port}`),
    session: 'idle_timeout: 10m\n  absolute_timeout: 10m',
    upstreamSettings: 'rules: [{ path: /open/*, access: public }]',
    ...options,
  })
}

const seen = (page: Page) => page.evaluate('window.seen')
const signInAgain = (page: Page) => page.getByRole('link', { name: 'Sign in again' })
const alert = (page: Page) => page.getByRole('alert')

/** Signs Jane in, and waits for the notice that her session ends in eight minutes. */
async function pageInLastMinutes(world: World, page: Page): Promise<void> {
  await page.goto(`${world.url}/orders`)
  await choose(page, 'Jane Doe')
  await page.waitForURL(`${world.url}/orders`)
  world.moveClock(2 * minutes)
  await page.goto(`${world.url}/orders`)
  await alert(page).getByText('You will be signed out in 8 min.').waitFor()
  await page.getByLabel('Note').fill('three of these')
}

/** Opens the window of the sign-in with the keyboard. */
async function openWindow(page: Page): Promise<Page> {
  const opened = page.waitForEvent('popup')
  await signInAgain(page).focus()
  await page.keyboard.press('Enter')
  return opened
}

const endings = (world: World) =>
  world.replicas
    .flatMap(({ log }) => log.filter(({ message }) => message === 'session.ended'))
    .map(({ fields }) => fields['by'])

/** Ends Jane's session at the provider. */
const endAtProvider = (world: World) => world.provider.endSession(world.provider.sessions()[0]?.sid ?? '')

for (const store of ['memory', 'redis'] as const)
  test(`${store}: Before the absolute end, a sign-in in a pop-up window begins a new session, and the pages stay`, async (t) => {
    const world = await start(t, { store })
    const jane = await chromium.person(t)
    const [leader, page] = [await jane.tab(), await jane.tab()]
    await pageInLastMinutes(world, leader)
    await page.goto(`${world.url}/open/orders`)
    await alert(page).waitFor()
    await page.getByLabel('Note').fill('three of these')
    assert.equal(await page.getByRole('button', { name: 'Stay signed in' }).count(), 0)
    assert.deepEqual(await accessibilityFaults(page), [])

    await openWindow(page)

    for (const tab of [page, leader]) {
      await alert(tab).waitFor({ state: 'detached' })
      assert.deepEqual(await seen(tab), ['expiring', 'renewed'], 'no page believes that the person is signed out')
    }
    await until('the window has closed', () => jane.context.pages().length === 2)
    assert.equal(await page.getByLabel('Note').inputValue(), 'three of these')
    assert.deepEqual(endings(world), ['new_sign_in'])
    world.moveClock(9 * minutes)
    assert.equal((await page.request.get(`${world.url}/.gatehouse/session`)).status(), 200)
    assert.deepEqual(jane.complaints, [])
  })

test('Open pages do not notice when the same person signs in again without the notice', async (t) => {
  const world = await start(t, { session: 'idle_timeout: 2h' })
  const jane = await chromium.person(t)
  const [page, other] = [await jane.tab(), await jane.tab()]
  await page.goto(`${world.url}/orders`)
  await choose(page, 'Jane Doe')
  await page.waitForURL(`${world.url}/orders`)

  await other.goto(`${world.url}/.gatehouse/sign-in?return_to=%2F.gatehouse%2Fsigned-in`)
  await other.getByRole('heading', { name: 'You are signed in again.' }).waitFor()

  assert.deepEqual(endings(world), ['new_sign_in'])
  await endAtProvider(world)
  await page.getByText('You are signed out.').waitFor()
  assert.deepEqual(await seen(page), ['ended'], 'only of the second session')
})

test('Where the browser blocks pop-up windows, the sign-in opens in a tab', async (t) => {
  const world = await start(t)
  const jane = await chromium.person(t)
  await jane.context.addInitScript({ content: 'window.open = () => null' })
  const page = await jane.tab()
  await pageInLastMinutes(world, page)
  await endAtProvider(world)
  await page.getByText('You are signed out.').waitFor()

  const tab = await openWindow(page)
  await choose(tab, 'Jane Doe')

  await alert(page).waitFor({ state: 'detached' })
  assert.deepEqual(await seen(page), ['expiring', 'ended', 'renewed'])
  assert.equal(await page.getByLabel('Note').inputValue(), 'three of these')
})

test('The page notices a sign-in at a provider with Cross-Origin-Opener-Policy', async (t) => {
  const world = await start(t)
  const jane = await chromium.person(t)
  const page = await jane.tab()
  await pageInLastMinutes(world, page)
  world.provider.fault('/oauth/authorize', (_req, res, pass) => {
    res.setHeader('Cross-Origin-Opener-Policy', 'same-origin')
    pass()
  })

  await openWindow(page)

  await alert(page).waitFor({ state: 'detached' })
  assert.deepEqual(await seen(page), ['expiring', 'renewed'])
})

test('When another person signs in, the pages say so, and stay until they are reloaded', async (t) => {
  const world = await start(t)
  const browser = await chromium.person(t)
  const [page, own] = [await browser.tab(), await browser.tab()]
  await pageInLastMinutes(world, page)
  await own.goto(`${world.url}/orders#own`)
  await own.waitForFunction('window.seen.length > 0')
  await endAtProvider(world)
  await page.getByText('You are signed out.').waitFor()

  const opened = await openWindow(page)
  await opened.getByRole('button', { name: 'Samir Haddad' }).waitFor()
  assert.equal(await opened.evaluate('opener'), null, 'the provider has no reference to the page')
  await choose(opened, 'Samir Haddad')

  await alert(page).getByText('You are now signed in as somebody else.').waitFor()
  await own.waitForFunction(`window.seen.includes('changed')`)
  assert.equal(await alert(own).count(), 0, 'the application shows its own notice')
  assert.deepEqual(await seen(page), ['expiring', 'ended', 'changed'])
  assert.deepEqual(await accessibilityFaults(page), [])
  assert.equal(await page.getByLabel('Note').inputValue(), 'three of these')
  const loaded = page.waitForEvent('load')
  await page.getByRole('button', { name: 'Reload' }).focus()
  await page.keyboard.press('Enter')
  await loaded
  assert.equal(await page.getByLabel('Note').inputValue(), '')
  await page.evaluate(`new Promise((told) => {
    const channel = new BroadcastChannel('gatehouse/.gatehouse/')
    channel.onmessage = told
    channel.postMessage({ order: 'connect' })
  })`)
  assert.deepEqual(await seen(page), [])
  assert.equal(await alert(page).count(), 0)
})

test('After the page that opened it is closed, a sign-in still completes, and other pages notice it', async (t) => {
  const world = await start(t)
  const jane = await chromium.person(t)
  const [page, other] = [await jane.tab(), await jane.tab()]
  await pageInLastMinutes(world, page)
  await other.goto(`${world.url}/orders`)
  await alert(other).waitFor()
  await endAtProvider(world)
  await other.getByText('You are signed out.').waitFor()
  const opened = await openWindow(page)
  await opened.getByRole('button', { name: 'Jane Doe' }).waitFor()

  await page.close()
  await choose(opened, 'Jane Doe')

  await alert(other).waitFor({ state: 'detached' })
  await until('the window has closed', () => jane.context.pages().length === 1)
})

test('An abandoned sign-in does not hide that the session has ended', async (t) => {
  const world = await start(t)
  const jane = await chromium.person(t)
  const page = await jane.tab()
  await pageInLastMinutes(world, page)
  const stop = world.provider.fault('/oauth/authorize', (_req, res) => void res.writeHead(204).end())
  const opened = await openWindow(page)
  await until('the window asks the provider', () => world.provider.hits('/oauth/authorize') > 1)
  await opened.close()
  stop()

  await endAtProvider(world)

  await page.getByText('You are signed out.').waitFor()
  assert.deepEqual(await seen(page), ['expiring', 'ended'])
})

test('A page that is loaded after a sign-in lets pages that were open before notice it', async (t) => {
  const world = await start(t)
  const browser = await chromium.person(t)
  const [page, other] = [await browser.tab(), await browser.tab()]
  await pageInLastMinutes(world, page)
  await endAtProvider(world)
  await page.getByText('You are signed out.').waitFor()

  await other.goto(`${world.url}/orders`)
  await choose(other, 'Samir Haddad')

  await alert(page).getByText('You are now signed in as somebody else.').waitFor()
  assert.equal(await alert(other).count(), 0)
})

test('Without scripts, the page at the end of the sign-in says what to do', async (t) => {
  const world = await start(t)
  const page = await (await chromium.person(t, { javaScriptEnabled: false })).tab()
  await page.goto(`${world.url}/.gatehouse/sign-in?return_to=/.gatehouse/signed-in`)

  await choose(page, 'Jane Doe')

  await page.getByRole('heading', { name: 'You are signed in again.' }).waitFor()
  await page.getByText('You can close this window.').waitFor()
  assert.deepEqual([await page.getByRole('link', { name: 'Go to the start page' }).getAttribute('href')], ['/'])
})
