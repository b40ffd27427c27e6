// Slow: 7 s, Chromium starts with a profile for each test
// Own process: a browser with a profile for each test.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import type { BrowserContext, Page } from 'playwright-core'
import { issueCertificates } from '../support/certificates.ts'
import { startChromium } from '../support/chromium.ts'
import { startDeviceChromium } from '../support/device-chromium.ts'
import { until } from '../support/until.ts'
import { startWorld, type World } from '../support/world.ts'
import { acceptedMs, boundCookie } from './world.ts'

async function startSecureWorld(t: TestContext, host = 'orders.example.test'): Promise<World> {
  const { server } = issueCertificates()
  return startWorld(t, {
    externalUrl: (port) => `https://${host}:${port}`,
    listen: (address) => `{ address: "${address}", tls: { cert_file: ${server.cert}, key_file: ${server.key} } }`,
  })
}

async function signIn(page: Page, { url }: World): Promise<void> {
  await page.goto(`${url}/`)
  await page.getByRole('button', { name: /Jane/ }).click()
  await page.waitForURL(`${url}/`)
}

/**
 * The paths of the requests that the gateway has received since the last call, with their status.
 */
function requestsOf({ replicas }: World): string[] {
  return (replicas[0]?.access.splice(0) ?? []).map(({ method, path, status }) => `${method} ${path} ${status}`)
}

async function hasBoundCookie(context: BrowserContext, { url }: World): Promise<boolean> {
  return (await context.cookies(url)).some(({ name }) => name === boundCookie)
}

/** A person whose session Chromium has bound. */
async function startBound(t: TestContext) {
  const world = await startSecureWorld(t)
  const context = await startDeviceChromium(t)
  const page = await context.newPage()
  await signIn(page, world)
  await until('the session is bound', () => hasBoundCookie(context, world))
  // Chromium knows the session a little later than it has the cookie.
  await until('the cookie is renewed', async () => {
    await context.clearCookies({ name: boundCookie })
    await page.goto(`${world.url}/`)
    return hasBoundCookie(context, world)
  })
  return { world, context, page }
}

test('Chromium binds the session by itself, and renews its cookie before a request without one', async (t) => {
  const { world, context, page } = await startBound(t)
  requestsOf(world)
  world.moveClock(31_000)

  await context.clearCookies({ name: boundCookie })
  // All wait for one renewal.
  const statuses = await page.evaluate(() =>
    Promise.all(Array.from({ length: 8 }, (_, at) => fetch(`/api/me?${at}`).then(({ status }) => status))),
  )

  assert.deepEqual([...new Set(statuses)], [200])
  assert.equal(await hasBoundCookie(context, world), true)
  const requests = requestsOf(world)
  assert.equal(requests.filter((line) => line === 'POST /.gatehouse/device-refresh 200').length, 1)
  assert.equal(requests.filter((line) => line.includes(' 401')).length, 0)
})

test('A WebSocket of a page opens while Chromium renews the cookie', async (t) => {
  const { world, context, page } = await startBound(t)
  world.moveClock(31_000)

  await context.clearCookies({ name: boundCookie })
  const outcome = await page.evaluate(
    () =>
      new Promise((resolve) => {
        const socket = new WebSocket('/ws')
        socket.onopen = () => resolve('open')
        socket.onerror = () => resolve('refused')
      }),
  )

  assert.equal(outcome, 'open', requestsOf(world).join('\n'))
})

test('A link on another site opens a page of a bound session without a sign-in', async (t) => {
  const { world, context, page } = await startBound(t)
  const other = createServer((_req, res) => {
    res.writeHead(200, { 'content-type': 'text/html' }).end(`<a href="${world.url}/">orders</a>`)
  })
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
  t.after(() => other.close())
  world.moveClock(31_000)
  await context.clearCookies({ name: boundCookie })

  await page.goto(`http://127.0.0.1:${(other.address() as AddressInfo).port}/`)
  requestsOf(world)
  await page.getByRole('link').click()
  await page.waitForURL(`${world.url}/`)

  assert.equal(
    requestsOf(world).some((line) => line.includes('sign-in')),
    false,
  )
})

test('Cookies that were copied into a second profile are dead within the bound, and the first profile goes on', async (t) => {
  const { world, context, page } = await startBound(t)
  const stolen = await context.cookies(world.url)
  const second = await startDeviceChromium(t)
  await second.addCookies(stolen)
  const copy = await second.newPage()
  assert.equal((await copy.goto(`${world.url}/`))?.status(), 200)

  world.moveClock(acceptedMs + 31_000)

  await copy.goto(`${world.url}/`)
  assert.match(copy.url(), new RegExp(`^${world.provider.issuer}`), 'the thief has to sign in')
  // The gateway has told the first browser to prove its key.
  requestsOf(world)
  await page.goto(`${world.url}/`)
  assert.equal(page.url(), `${world.url}/`)
  assert.ok(requestsOf(world).includes('POST /.gatehouse/device-refresh 200'))
})

test('After a sign-out Chromium has no key any more', async (t) => {
  const { world, page } = await startBound(t)
  requestsOf(world)

  await page.goto(`${world.url}/logout`)
  await until('the browser asks about its key', async () => {
    await page.goto(`${world.url}/static/site.css`).catch(() => {})
    return requestsOf(world).includes('POST /.gatehouse/device-refresh 200')
  })
  // Requests of the sign-out may have asked too.
  await until('the browser does not ask any more', async () => {
    requestsOf(world)
    // The page of the sign-out may be loading yet, which aborts this navigation.
    const isLoaded = await page.goto(`${world.url}/static/site.css`).then(
      () => true,
      () => false,
    )
    return isLoaded && !requestsOf(world).some((line) => line.includes('device-refresh'))
  })
})

test('A browser that cannot bind sessions signs in and works as before', async (t) => {
  const world = await startSecureWorld(t, 'localhost')
  const chromium = await startChromium()
  const person = await chromium.person(t, { ignoreHTTPSErrors: true })
  const page = await person.tab()
  await signIn(page, world)
  world.moveClock(acceptedMs + 31_000)

  assert.equal((await page.goto(`${world.url}/`))?.status(), 200)
  assert.equal(await hasBoundCookie(person.context, world), false)
})
