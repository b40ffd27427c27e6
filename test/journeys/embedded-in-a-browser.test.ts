// Slow: 5 s, Chromium uses a portal of another site
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import type { FrameLocator, Page } from 'playwright-core'
import { issueCertificates, siteDomain } from '../support/certificates.ts'
import { startChromium } from '../support/chromium.ts'
import { startSite as startGateways, type SiteWorld } from '../support/site.ts'
import { until } from '../support/until.ts'
import { startWorld, type World } from '../support/world.ts'

const chromium = await startChromium({ partitions: true })
const { ca: _, ...files } = issueCertificates().server

/** Pages of another site. Resolves to their origin. */
async function startSite(t: TestContext, host: string, body: (path: string) => string): Promise<string> {
  const tls = { cert: readFileSync(files.cert), key: readFileSync(files.key) }
  const server = createServer(tls, (request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end(`<!doctype html>${body(request.url ?? '/')}`)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return `https://${host}:${(server.address() as AddressInfo).port}`
}

const frameOf = (url: string) => `<title>Elsewhere</title><iframe src="${url}" width="900" height="600"></iframe>`

interface Embedding {
  readonly world: World
  /** The origin in `session.embedded_in`. */
  readonly portal: string
  /** An origin of a third site. */
  readonly hostile: string
}

async function startEmbedding(t: TestContext, session = ''): Promise<Embedding> {
  let world: World | undefined
  const framing = (path: string) => frameOf(`${world?.url ?? ''}${path}`)
  const portal = await startSite(t, 'localhost', framing)
  const hostile = await startSite(t, '127.0.0.1', framing)
  world = await startWorld(t, {
    externalUrl: (port) => `https://app.${siteDomain}:${port}`,
    listen: (address) => `{ address: "${address}", tls: { cert_file: ${files.cert}, key_file: ${files.key} } }`,
    session: `embedded_in: ["${portal}"]\n  ${session}`,
  })
  return { world, portal, hostile }
}

async function person(t: TestContext) {
  return chromium.person(t, { ignoreHTTPSErrors: true })
}

/** Clicks on the sign-in link in a frame. Resolves when the window is over. */
async function signIn(page: Page, frame: FrameLocator, name: string | undefined): Promise<void> {
  const opening = page.waitForEvent('popup')
  await frame.getByRole('link', { name: 'Sign in' }).click()
  const window = await opening
  if (name !== undefined) await window.getByRole('button', { name }).click()
  if (!window.isClosed()) await window.waitForEvent('close')
}

/** Runs a script in the frame of a page. */
function inFrame(page: Page, script: string): Promise<unknown> {
  const [, inside] = page.frames()
  assert.ok(inside)
  return inside.evaluate(script)
}

/** The status of a request that the frame sends. */
const statusOf = (url: string, options = '{}') => `fetch('${url}', ${options}).then(({ status }) => status)`

async function sessionCookies(page: Page) {
  const cookies = await page.context().cookies()
  return cookies.filter(({ name }) => /^__Host-gatehouse(?:-frame\.session)?$/.test(name))
}

/** Opens the portal and signs in there. */
async function embedded(t: TestContext, { portal }: Embedding): Promise<{ page: Page; frame: FrameLocator }> {
  const page = await (await person(t)).tab()
  await page.goto(`${portal}/`)
  const frame = page.frameLocator('iframe')
  await signIn(page, frame, 'Jane Doe')
  await frame.getByRole('heading', { name: 'Jane Doe' }).waitFor()
  return { page, frame }
}

test('In a portal of another site, people sign in from the frame and use the application', async (t) => {
  const embedding = await startEmbedding(t)
  const { world, portal, hostile } = embedding
  const { page, frame } = await embedded(t, embedding)

  await t.test('the session is in a cookie for frames in this portal alone', async () => {
    const [cookie, ...more] = await sessionCookies(page)
    assert.deepEqual(more, [])
    const { name, httpOnly, secure, sameSite, partitionKey } = { partitionKey: '', ...cookie }
    assert.equal(name, '__Host-gatehouse-frame.session')
    assert.deepEqual({ httpOnly, secure, sameSite }, { httpOnly: true, secure: true, sameSite: 'None' })
    assert.equal(partitionKey, 'https://localhost')
  })

  await t.test('the frame may change data and open a WebSocket', async () => {
    assert.equal(await inFrame(page, statusOf('/echo', `{ method: 'POST' }`)), 200)
    const opened = await inFrame(
      page,
      `new Promise((resolve) => {
        const socket = new WebSocket('${world.url.replace('https', 'wss')}/ws')
        socket.onopen = () => resolve('open')
        socket.onerror = () => resolve('refused')
      })`,
    )
    assert.equal(opened, 'open')
  })

  await t.test('the portal can be loaded again', async () => {
    await page.reload()
    await frame.getByRole('heading', { name: 'Jane Doe' }).waitFor()
  })

  await t.test('requests of the portal itself have no session', async () => {
    // The browser sends the cookie, but shows the portal no response.
    const url = `${world.url}/status/201`
    await page.evaluate(`fetch('${url}', { mode: 'no-cors', credentials: 'include' }).catch(() => {})`)
    const logged = () => world.replicas[0]?.access.find(({ path }) => path === '/status/201')
    await until('the request is logged', () => logged() !== undefined)
    assert.equal(logged()?.['status'], 401)
  })

  await t.test('a third site can neither show the application nor its session', async () => {
    const other = await page.context().newPage()
    await other.goto(`${hostile}/`)
    const failed = other.frames()[1]
    assert.equal(await failed?.evaluate('location.href'), 'chrome-error://chromewebdata/')
    await other.close()
  })

  await t.test('a tab has a session of its own', async () => {
    const tab = await page.context().newPage()
    await tab.goto(`${world.url}/`)
    await tab.getByRole('heading', { name: 'Jane Doe' }).waitFor()
    assert.deepEqual((await sessionCookies(page)).map(({ name, sameSite }) => [name, sameSite]).toSorted(), [
      ['__Host-gatehouse', 'Lax'],
      ['__Host-gatehouse-frame.session', 'None'],
    ])
  })

  await t.test('a Logout Token ends both', async () => {
    const logout_token = await world.provider.logoutToken({ sub: 'jane' })
    const { port } = new URL(world.url)
    const url = `https://127.0.0.1:${port}/.gatehouse/backchannel-logout`
    assert.equal((await page.request.post(url, { form: { logout_token } })).status(), 200)

    assert.equal(await inFrame(page, statusOf('/api/me')), 401)
    await page.reload()
    await frame.getByRole('link', { name: 'Sign in' }).waitFor()
  })

  await t.test('a new sign-in leads to the page again', async () => {
    await signIn(page, frame, undefined)
    await frame.getByRole('heading', { name: 'Jane Doe' }).waitFor()
    assert.equal(page.url(), `${portal}/`)
  })
})

test('A sign-out in the frame ends the session of the frame and that at the provider', async (t) => {
  const embedding = await startEmbedding(t)
  const { page, frame } = await embedded(t, embedding)

  await inFrame(page, `location.assign('/.gatehouse/sign-out')`)

  await frame.getByRole('link', { name: 'Sign in' }).waitFor()
  assert.deepEqual(await sessionCookies(page), [])
  const opening = page.waitForEvent('popup')
  await frame.getByRole('link', { name: 'Sign in' }).click()
  await (await opening).getByRole('button', { name: 'Jane Doe' }).waitFor()
})

test('The notice in a frame renews the session of the frame', async (t) => {
  const embedding = await startEmbedding(t, 'idle_timeout: 10m\n  absolute_timeout: 10m')
  const { page, frame } = await embedded(t, embedding)
  const script = `new Promise((resolve) => {
    const script = document.createElement('script')
    script.src = '/.gatehouse/session.js'
    script.dataset.warnBefore = '3600'
    document.addEventListener('gatehouse:renewed', () => { document.title = 'renewed' })
    document.body.append(script)
    document.addEventListener('gatehouse:expiring', resolve, { once: true })
  })`
  await inFrame(page, script)
  const [before] = await sessionCookies(page)

  const opening = page.waitForEvent('popup')
  await frame.getByRole('link', { name: 'Sign in again' }).click()
  const window = await opening
  if (!window.isClosed()) await window.waitForEvent('close')

  await page.frames()[1]?.waitForFunction(`fetch('/.gatehouse/session').then(({ status }) => status === 200)`)
  const [after, ...more] = await sessionCookies(page)
  assert.notEqual(after?.value, before?.value)
  assert.deepEqual(more, [])
})

test('Another site gets neither a session of a person nor one into the frame of a person', async (t) => {
  const embedding = await startEmbedding(t)
  const { world, portal, hostile } = embedding
  const { page } = await embedded(t, embedding)
  const challenge = 'A'.repeat(43)
  const signInUrl = `${world.url}/.gatehouse/sign-in?return_to=${encodeURIComponent(`/.gatehouse/signed-in?frame=${challenge}`)}`

  await t.test('a window that it opens creates no session', async () => {
    const attacker = await page.context().newPage()
    await attacker.goto(`${hostile}/`)
    const opening = attacker.waitForEvent('popup')
    await attacker.evaluate(`void open('${signInUrl}')`)
    await (await opening).getByText('came from another site').waitFor()
    assert.equal(world.provider.hits('/oauth/authorize'), 1)
  })

  await t.test('a code that it sends to the frame is not used', async () => {
    const requests: string[] = []
    page.context().on('request', (request) => requests.push(new URL(request.url()).pathname))
    await page.context().clearCookies()
    const attacker = await page.context().newPage()
    await attacker.goto(`${hostile}/`)
    const [victim] = await Promise.all([attacker.waitForEvent('popup'), attacker.evaluate(`w = open('${portal}/'), 0`)])
    const frame = victim.frameLocator('iframe')
    const opening = victim.waitForEvent('popup')
    await frame.getByRole('link', { name: 'Sign in' }).click()
    await (await opening).getByRole('button', { name: 'Jane Doe' }).waitFor()
    await attacker.evaluate(`w.frames[0].postMessage({ gatehouse: { code: 'x', prefix: '/.gatehouse/' } }, '*')`)
    // Messages arrive in their order.
    await inFrame(victim, `new Promise((resolve) => { onmessage = resolve; postMessage('', '*') })`)
    assert.equal(requests.includes('/.gatehouse/frame-session'), false)
  })
})

test('With several providers, people choose one in the window, and the frame gets the session', async (t) => {
  let gateways: SiteWorld | undefined
  const portal = await startSite(t, 'localhost', () => frameOf(gateways?.url('sso', '/echo') ?? ''))
  gateways = await startGateways(t, {
    providers: ['staff', 'partners'],
    session: `embedded_in: ["${portal}"]`,
    upstreams: ({ origin }) => `\n  orders: { url: ${origin}, headers: { X-Remote-User: sub } }`,
  })
  const page = await (await person(t)).tab()
  await page.goto(portal)
  const frame = page.frameLocator('iframe')

  const opening = page.waitForEvent('popup')
  await frame.getByRole('link', { name: 'Sign in' }).click()
  const window = await opening
  await window.getByRole('link', { name: 'partners' }).click()
  await window.getByRole('button', { name: 'Jane Doe' }).click()

  await frame.getByText('X-Remote-User').waitFor()
  assert.deepEqual(
    (await page.context().cookies()).map(({ name }) => name).filter((name) => name.endsWith('session')),
    ['__Host-gatehouse-at-partners-frame.session'],
  )
})

test('A person with too many sessions ends one in the window, and the frame gets the session', async (t) => {
  const embedding = await startEmbedding(t, 'max_per_person: { count: 1, when_exceeded: refuse }')
  const jane = await person(t)
  const tab = await jane.tab()
  await tab.goto(`${embedding.world.url}/`)
  await tab.getByRole('button', { name: 'Jane Doe' }).click()
  await tab.getByRole('heading', { name: 'Jane Doe' }).waitFor()
  const page = await jane.tab()
  await page.goto(`${embedding.portal}/`)
  const frame = page.frameLocator('iframe')

  const opening = page.waitForEvent('popup')
  await frame.getByRole('link', { name: 'Sign in' }).click()
  await (await opening).getByRole('button', { name: 'End the session' }).click()

  await frame.getByRole('heading', { name: 'Jane Doe' }).waitFor()
  assert.equal(await tab.evaluate(statusOf('/api/me')), 401)
})
