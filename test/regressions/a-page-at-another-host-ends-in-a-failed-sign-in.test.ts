import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { request } from 'undici'
import { languages } from '../../src/config/model/pages.ts'
import { startChromium } from '../support/chromium.ts'
import { startWorld, type Replica, type World } from '../support/world.ts'

/** The same port under another name, as a browser sees it. */
function elsewhere({ url }: World, host = 'localhost'): string {
  return `http://${host}:${new URL(url).port}`
}

const started = (t: TestContext, upstreamSettings = '') => startWorld(t, { upstreamSettings })

function logOf(world: World): readonly string[] {
  const { log } = world.replicas[0] as Replica
  return log.filter(({ message }) => message === 'sign_in.not_started').map(({ fields }) => JSON.stringify(fields))
}

const path = '/echo?month=may&x=%22%3E%3Cb%3E'

for (const language of languages)
  test(`A page at another host names the right address and links to it (${language})`, async (t) => {
    const world = await started(t)

    const page = await world.browser().get(elsewhere(world) + path, { headers: { 'accept-language': language } })

    assert.equal(page.status, 421)
    assert.equal(new URL(page.url).host, new URL(elsewhere(world)).host)
    assert.ok(page.body.includes(`href="${world.url}/echo?month=may&amp;x=%22%3E%3Cb%3E"`), page.body)
    assert.ok(page.body.includes(` ${new URL(world.url).host}</p>`), page.body)
    assert.equal(page.headers['set-cookie'], undefined)
  })

test('The log has one line for each such page, with a hint', async (t) => {
  const world = await started(t)

  await world.browser().get(elsewhere(world) + path)

  const [line, ...more] = logOf(world)
  assert.deepEqual(more, [])
  assert.match(
    line ?? '',
    /ERR_WRONG_HOST.*localhost:\d+ and end at 127\.0\.0\.1:\d+.*Redirect that host to external_url/,
  )
})

for (const host of ['evil.example', 'evil.example:8443', '127.0.0.1.evil.example', '[::1]', 'x'.repeat(4000)])
  test(`A page never contains a Host that a client invented: ${host.slice(0, 40)}`, async (t) => {
    const world = await started(t)

    const page = await world.browser().send(`${world.url}/.gatehouse/sign-in?return_to=/echo`, { headers: { host } })

    assert.equal(page.status, 421)
    assert.equal(page.body.includes(host), false)
    assert.ok(page.body.includes(`href="${world.url}/echo"`))
    assert.ok((logOf(world)[0] ?? '').length < 1000)
  })

for (const return_to of [
  '//evil.example/',
  '/\\evil.example',
  'https://evil.example/',
  '/.//evil.example',
  '/.gatehouse/sign-out',
])
  test(`The link leads to external_url only, whatever return_to is: ${return_to}`, async (t) => {
    const world = await started(t)
    const url = `${elsewhere(world)}/.gatehouse/sign-in?return_to=${encodeURIComponent(return_to)}`

    const { body } = await world.browser().send(url)

    assert.ok(body.includes(`href="${world.url}/"`), body)
  })

test('A program that is not a script of a page gets a problem document with the right address', async (t) => {
  const world = await started(t)

  const response = await request(`${elsewhere(world)}/.gatehouse/sign-in`)
  const script = await world.browser().fetch(elsewhere(world) + path)

  const { status, sign_in } = (await response.body.json()) as { status: number; sign_in: string }
  assert.deepEqual([response.statusCode, status, sign_in], [421, 421, `${world.url}/.gatehouse/sign-in`])
  assert.equal(script.status, 401)
})

test('The response to a login initiation at another host also names the right address', async (t) => {
  const world = await started(t)
  const asked = new URLSearchParams({ iss: world.provider.issuer, target_link_uri: `${world.url}/echo?x=1` })

  const page = await world.browser().get(`${elsewhere(world)}/.gatehouse/initiate-login?${asked.toString()}`)

  assert.equal(page.status, 421)
  assert.ok(page.body.includes(`href="${world.url}/echo?x=1"`))
})

test('The host of an upstream with its own external_url is also an address to sign in at', async (t) => {
  const world = await started(
    t,
    'path: /other/\n  here:\n    url: http://127.0.0.1:1\n    external_url: http://localhost',
  )

  const { headers } = await world.browser().send(`${elsewhere(world)}/.gatehouse/sign-in`)

  assert.equal(
    new URL(headers['location'] as string).searchParams.get('redirect_uri'),
    'http://localhost/.gatehouse/callback',
  )
})

test('A browser at external_url signs in behind a proxy that changes Host', async (t) => {
  const world = await started(t)
  const jane = world.browser()
  const headers = { host: 'gatehouse.internal:8080', referer: `${world.url}/echo`, 'sec-fetch-site': 'same-origin' }

  const first = await jane.send(`${world.url}/echo`, { headers })
  const second = await jane.send(new URL(String(first.headers['location']), world.url).href, { headers })

  // This policy controls the Referer of the redirected request (Fetch §4.4).
  assert.equal(first.headers['referrer-policy'], 'same-origin')
  assert.equal(second.status, 303)
  assert.equal(new URL(String(second.headers['location'])).origin, new URL(world.provider.issuer).origin)
})

test('In Chromium, the link on the page leads to the sign-in, and then to the requested page', async (t) => {
  const chromium = await startChromium()
  const world = await started(t)
  const page = await (await chromium.person(t)).tab()

  const response = await page.goto(`${elsewhere(world)}/echo?month=may`)
  assert.equal(response?.status(), 421)
  await page.getByRole('link', { name: 'Go to the right address' }).click()
  await page.getByRole('listitem').filter({ hasText: 'Jane' }).getByRole('button').click()

  await page.waitForURL(`${world.url}/echo?month=may`)
})
