// Slow: 3 s, Chromium waits for the notice in several tabs
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { languages } from '../../src/config/model/pages.ts'
import { messagesByLanguage } from '../../src/pages/messages.ts'
import { httpUpstream } from '../proxy/support.ts'
import { accessibilityFaults } from '../support/axe.ts'
import { picture, startChromium } from '../support/chromium.ts'
import { replacePauses } from '../support/pauses.ts'
import { until } from '../support/until.ts'
import { startWorld, type World } from '../support/world.ts'
import { choose } from './support.ts'

const chromium = await startChromium()
const minutes = 60_000

/** An application with a strict Content Security Policy, whose pages include the script. */
async function start(t: TestContext): Promise<World> {
  const { port } = await httpUpstream(t, (req, res) => {
    const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'"
    if (req.url === '/open/own.js') {
      const own = `document.addEventListener('gatehouse:ended', (event) => { event.preventDefault(); document.title = 'own notice' })`
      return void res.writeHead(200, { 'content-type': 'text/javascript' }).end(own)
    }
    const own = req.url === '/open/own' ? '<script src="/open/own.js"></script>' : ''
    const seconds = new URL(req.url ?? '', 'http://orders').searchParams.get('warn') ?? '540'
    res
      .writeHead(200, { 'content-type': 'text/html', 'content-security-policy': policy })
      .end(
        `<!doctype html><html lang="en"><title>Orders</title>${own}<script src="/.gatehouse/session.js" data-warn-before="${seconds}" defer></script><main><h1>Orders</h1><input aria-label="Note"></main></html>`,
      )
  })
  return startWorld(t, {
    upstream: new URL(`http://127.0.0.1:${port}`),
    session: 'idle_timeout: 10m',
    upstreamSettings: 'rules: [{ path: /open/*, access: public }]',
  })
}

test('The notice warns before the end of a session, and its button keeps the person signed in', async (t) => {
  const world = await start(t)
  const jane = await chromium.person(t)
  const page = await jane.tab()
  await page.goto(`${world.url}/orders`)
  await choose(page, 'Jane Doe')
  await page.waitForURL(`${world.url}/orders`)
  assert.equal(await page.getByRole('alert').count(), 0)

  world.moveClock(2 * minutes)
  await page.goto(`${world.url}/open/orders`)

  await page.getByRole('alert').getByText('You will be signed out in 8 min.').waitFor()
  assert.deepEqual(await accessibilityFaults(page), [])
  await picture(page, 'session-notice')
  await page.getByLabel('Note').fill('three of these')
  await page.getByRole('button', { name: 'Stay signed in' }).click()
  await page.getByRole('alert').waitFor({ state: 'detached' })
  world.moveClock(9 * minutes)
  assert.equal((await page.request.get(`${world.url}/.gatehouse/session`)).status(), 200)
  assert.equal(await page.getByLabel('Note').inputValue(), 'three of these')
  assert.deepEqual(jane.complaints, [], 'the policy of the application allows everything that the script does')
})

test('A logout at the provider shows in all tabs, and after a sign-in in a pop-up window the notice goes', async (t) => {
  const world = await start(t)
  const jane = await chromium.person(t)
  const [page, open, own] = [await jane.tab(), await jane.tab(), await jane.tab()]
  await page.goto(`${world.url}/orders`)
  await choose(page, 'Jane Doe')
  await page.waitForURL(`${world.url}/orders`)
  await page.waitForFunction(() => navigator.locks.query().then(({ held }) => held?.length === 1))
  const streams = world.replicas[0]?.access ?? []
  for (const [tab, path] of [
    [open, '/open/orders'],
    [own, '/open/own'],
  ] as const) {
    await tab.goto(world.url + path)
    await tab.waitForFunction(() => navigator.locks.query().then(({ pending }) => (pending?.length ?? 0) > 0))
  }
  await page.getByLabel('Note').fill('three of these')

  await world.provider.endSession(world.provider.sessions()[0]?.sid ?? '')

  for (const tab of [page, open]) await tab.getByText('You are signed out.').waitFor()
  await own.waitForFunction(`document.title === 'own notice'`)
  assert.equal(await own.getByRole('alert').count(), 0, 'the application shows its own notice')
  assert.deepEqual(await accessibilityFaults(page), [])
  assert.equal(streams.filter(({ path }) => path === '/.gatehouse/events').length, 1, 'one stream for three tabs')

  const opened = page.waitForEvent('popup')
  await page.getByRole('link', { name: 'Sign in again' }).click()
  const other = await opened
  const closed = other.waitForEvent('close')
  await choose(other, 'Jane Doe')
  await closed

  for (const tab of [page, open]) await tab.getByRole('alert').waitFor({ state: 'detached' })
  assert.equal(await page.getByLabel('Note').inputValue(), 'three of these', 'the page has stayed')
})

test('With data-warn-before="0", there is no warning, and the notice says when the session has ended', async (t) => {
  replacePauses(t, { checkStreamsMs: 50 })
  const world = await start(t)
  const jane = await chromium.person(t)
  const [page, warned] = [await jane.tab(), await jane.tab()]
  await page.goto(`${world.url}/orders`)
  await choose(page, 'Jane Doe')
  await page.waitForURL(`${world.url}/orders`)
  world.moveClock(9 * minutes)
  await page.goto(`${world.url}/open/orders?warn=0`)
  await page.waitForFunction(() => navigator.locks.query().then(({ held }) => held?.length === 1))
  // Without a number, the warning comes 120 seconds before the end.
  await warned.goto(`${world.url}/open/orders?warn=soon`)

  // The first page has told it.
  await warned.getByRole('alert').getByText('You will be signed out in 1 min.').waitFor()
  assert.equal(await page.getByRole('alert').count(), 0)

  world.moveClock(2 * minutes)
  await page.getByRole('alert').getByText('You are signed out.').waitFor()
})

test('Without a session there is no notice', async (t) => {
  const world = await start(t)
  const page = await (await chromium.person(t)).tab()

  await page.goto(`${world.url}/open/orders`)

  const access = world.replicas[0]?.access ?? []
  await until('the event stream has ended', () => access.some(({ path }) => path === '/.gatehouse/events'))
  assert.equal(await page.getByRole('alert').count(), 0)
})

for (const language of languages)
  test(`The script has its texts in the language of the browser, and is sent again only after a change: ${language}`, async (t) => {
    const world = await start(t)
    const get = (headers: Readonly<Record<string, string>> = {}) =>
      world
        .browser()
        .fetch(`${world.url}/.gatehouse/session.js`, { headers: { 'accept-language': language, ...headers } })

    const script = await get()

    assert.equal(script.status, 200)
    assert.equal(script.headers['content-type'], 'text/javascript; charset=utf-8')
    assert.ok(script.body.includes(messagesByLanguage[language].notice.stay))
    assert.ok(Buffer.byteLength(script.body) < 8_000)
    assert.equal((await get({ 'if-none-match': `W/${String(script.headers['etag'])}` })).status, 304)
    assert.equal((await get({ 'if-none-match': '"other"' })).status, 200)
  })

test('A page of another origin cannot keep a session alive', async (t) => {
  const world = await start(t)
  const jane = world.browser()
  await jane.get(`${world.url}/orders`)
  const post = (site: string) =>
    jane.fetch(`${world.url}/.gatehouse/session`, { method: 'POST', headers: { 'sec-fetch-site': site } })

  assert.deepEqual([(await post('same-site')).status, (await post('cross-site')).status], [403, 403])
  assert.equal((await post('same-origin')).status, 200)
  assert.equal((await world.browser().fetch(`${world.url}/.gatehouse/session`, { method: 'POST' })).status, 401)
})
