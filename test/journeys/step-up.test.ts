import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { Browser, Visit } from '../support/browser.ts'
import { startFormApplication } from '../support/form-application.ts'
import { startWorld, type World, type WorldOptions } from '../support/world.ts'

const strong = `rules: [{ path: /admin/*, step_up: { acr_values: [mfa] } }]`

/** Opens a page, and returns the parameters of the authorization request that it leads to. */
async function requestFor(browser: Browser, url: string): Promise<URLSearchParams> {
  const redirected = await browser.send(url)
  const toProvider = await browser.send(new URL(String(redirected.headers['location']), url).href)
  return new URL(String(toProvider.headers['location'])).searchParams
}

/** Follows redirects within the gateway until the next page is elsewhere. */
async function leaveFor(browser: Browser, url: string): Promise<URL> {
  let visit = await browser.send(url)
  for (;;) {
    const next = new URL(String(visit.headers['location']), visit.url)
    if (next.origin !== new URL(url).origin) return next
    visit = await browser.send(next.href)
  }
}

/** A world whose clock, and that of its provider, stands until the test moves it. */
async function startTimedWorld(t: TestContext, options: WorldOptions): Promise<World> {
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() })
  return startWorld(t, options)
}

test('A person with a weaker sign-in signs in again for a page, comes back to it, and keeps the application', async (t) => {
  const world = await startWorld(t, { store: 'redis', upstreamSettings: strong })
  const jane = world.browser()
  assert.equal((await jane.get(`${world.url}/echo`)).status, 200)

  const asked = await requestFor(jane, `${world.url}/admin/?open=1`)
  assert.equal(asked.get('acr_values'), 'mfa')
  const page = await jane.get(`${world.url}/admin/?open=1`)

  assert.deepEqual([page.status, page.url], [200, `${world.url}/admin/?open=1`])
  assert.equal((await jane.send(`${world.url}/admin/`)).status, 200)
  assert.equal((await jane.send(`${world.url}/echo`)).status, 200)
})

test('A first sign-in for the page is the strong one at once', async (t) => {
  const world = await startWorld(t, { upstreamSettings: strong })
  const jane = world.browser()

  assert.equal((await requestFor(jane, `${world.url}/admin/`)).get('acr_values'), 'mfa')
  assert.equal((await jane.get(`${world.url}/admin/`)).status, 200)
  assert.equal(world.provider.hits('/oauth/token'), 1)
})

test('A provider that does not authenticate as strongly ends in a page, not in a circle of redirects', async (t) => {
  const world = await startWorld(t, {
    upstreamSettings: 'rules: [{ path: /admin/*, step_up: { acr_values: [hardware] } }]',
  })
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)

  const page = await jane.get(`${world.url}/admin/`)

  assert.equal(page.status, 403)
  assert.match(page.body, /This page needs a stronger sign-in than yours\./)
  assert.match(page.body, /sign-in\?acr_values=hardware&amp;return_to=%2Fadmin%2F">Try again/)
  // The person is still signed in for the rest.
  assert.equal((await jane.send(`${world.url}/echo`)).status, 200)
})

test('A person who removes acr_values from the address does not get in', async (t) => {
  const world = await startWorld(t, { upstreamSettings: strong })
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  const address = await leaveFor(jane, `${world.url}/admin/`)
  address.searchParams.delete('acr_values')

  const page = await jane.get(address.href)

  assert.equal(page.status, 403)
  assert.equal((await jane.send(`${world.url}/admin/`)).status, 303)
})

test('After max_age the person authenticates again, also while the session goes on', async (t) => {
  const world = await startTimedWorld(t, {
    upstreamSettings: 'rules: [{ path: /admin/*, step_up: { max_age: 5m } }]',
  })
  const jane = world.browser()
  assert.equal((await requestFor(jane, `${world.url}/admin/`)).get('max_age'), '300')
  assert.equal((await jane.get(`${world.url}/admin/`)).status, 200)
  t.mock.timers.tick(299_000)
  assert.equal((await jane.send(`${world.url}/admin/`)).status, 200)

  t.mock.timers.tick(62_000)

  assert.equal((await jane.send(`${world.url}/echo`)).status, 200)
  assert.equal((await jane.send(`${world.url}/admin/`)).status, 303)
  assert.equal((await jane.get(`${world.url}/admin/`)).status, 200)
  assert.equal((await jane.send(`${world.url}/admin/`)).status, 200)
})

test('A person who removes max_age from the address does not get in', async (t) => {
  const world = await startTimedWorld(t, {
    upstreamSettings: 'rules: [{ path: /admin/*, step_up: { max_age: 5m } }]',
  })
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  t.mock.timers.tick(400_000)
  const address = await leaveFor(jane, `${world.url}/admin/`)
  address.searchParams.delete('max_age')

  const page = await jane.get(address.href)

  assert.equal(page.status, 502)
  assert.equal((await jane.send(`${world.url}/admin/`)).status, 303)
})

test('A script gets 401 with the challenge of RFC 9470, and a sign-in address that helps', async (t) => {
  const world = await startWorld(t, {
    upstreamSettings: 'rules: [{ path: /admin/*, step_up: { acr_values: [mfa, phr], max_age: 15m } }]',
  })
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)

  const refused = await jane.fetch(`${world.url}/admin/`)

  assert.equal(refused.status, 401)
  assert.equal(
    refused.headers['www-authenticate'],
    'Gatehouse realm="sign-in", error="insufficient_user_authentication", acr_values="mfa phr", max_age="900"',
  )
  const problem = JSON.parse(refused.body) as Record<string, string>
  assert.deepEqual(
    [problem['error'], problem['repeat'], problem['sign_in']],
    ['insufficient_user_authentication', 'after_sign_in', '/.gatehouse/sign-in?acr_values=mfa%20phr&max_age=900'],
  )
  await jane.get(`${world.url}${problem['sign_in']}&return_to=%2Fecho`)
  assert.equal((await jane.fetch(`${world.url}/admin/`)).status, 200)
})

test('A page in a frame says that a stronger sign-in is needed, and links to it', async (t) => {
  const world = await startWorld(t, { upstreamSettings: strong })
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)

  const page = await jane.send(`${world.url}/admin/`, {
    headers: { 'sec-fetch-dest': 'iframe', 'sec-fetch-site': 'same-origin', referer: `${world.url}/echo` },
  })

  assert.equal(page.status, 401)
  assert.match(page.body, /It needs a stronger or more recent sign-in than yours\./)
  assert.match(page.body, /href="\/\.gatehouse\/sign-in\?acr_values=mfa&amp;return_to=%2Fecho"/)
})

test('A link cannot demand what no rule requires', async (t) => {
  const world = await startWorld(t, { upstreamSettings: strong })
  const jane = world.browser()

  const signIn = await jane.send(`${world.url}/.gatehouse/sign-in?acr_values=retina&max_age=0&return_to=/echo`)

  const asked = new URL(String(signIn.headers['location'])).searchParams
  assert.deepEqual([asked.get('acr_values'), asked.get('max_age')], [null, null])
})

test('A form that needs a stronger sign-in is kept, and sent after it', async (t) => {
  const application = await startFormApplication(t)
  const world = await startWorld(t, {
    upstream: application.url,
    upstreamSettings: 'rules: [{ path: /orders, methods: [POST], step_up: { acr_values: [mfa] } }]',
  })
  const jane = world.browser()
  await jane.get(`${world.url}/forms`)
  const headers = {
    'content-type': 'application/x-www-form-urlencoded',
    'sec-fetch-site': 'same-origin',
    origin: world.url,
    referer: `${world.url}/forms`,
  }
  const submit = (body: string, more: Record<string, string> = {}): Promise<Visit> =>
    jane.send(`${world.url}/orders`, { method: 'POST', headers: { ...headers, ...more }, body })

  const redirected = await submit('item=Saw')
  const page = await jane.get(new URL(String(redirected.headers['location']), world.url).href, {
    headers: { 'sec-fetch-site': 'same-origin' },
  })

  assert.match(page.body, /Do you want to send what you entered\?/)
  assert.doesNotMatch(page.body, /signed out/)
  const [, name = '', value = ''] = /name="([^"]*)" value="([^"]*)"/.exec(page.body) ?? []
  const sent = await submit(`${name}=${value}\r\n`, { 'content-type': 'text/plain', referer: page.url })
  assert.equal(sent.status, 200)
  assert.deepEqual(
    application.received.map(({ content }) => content.toString()),
    ['item=Saw'],
  )
})

test('A step-up that is only observed lets people in, and the audit log names what is missing', async (t) => {
  const world = await startWorld(t, {
    upstreamSettings: 'rules: [{ path: /admin/*, mode: observe, step_up: { acr_values: [mfa] } }]',
  })
  const samir = world.browser('samir')

  assert.equal((await samir.get(`${world.url}/admin/`)).status, 200)

  const events = world.replicas.flatMap(({ log }) => log.filter(({ message }) => message === 'access.would_be_denied'))
  assert.deepEqual(
    events.map(({ fields }) => [fields['sub'], fields['code'], fields['reason']]),
    [['samir', 'ERR_STEP_UP', 'acr: is not mfa']],
  )
})
