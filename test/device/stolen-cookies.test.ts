import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { WebSocket } from 'ws'
import { Browser } from '../support/browser.ts'
import { issueCertificates } from '../support/certificates.ts'
import { proofOf } from '../support/device-browser.ts'
import { formsOf, sendForm } from '../support/session-page.ts'
import { until } from '../support/until.ts'
import { acceptedMs, boundCookie, type DeviceWorld, startDeviceWorld } from './world.ts'

/** How long requests are accepted without a bound cookie after the registration, in ms. */
const graceMs = 30_000

/** A browser of somebody else, who is signed in at no provider. */
function thief(): Browser {
  return new Browser('samir', issueCertificates().client.ca)
}

/** Whether the gateway forwards a request of a script. */
async function hasAccess(browser: Browser, { url }: Pick<DeviceWorld, 'url'>): Promise<boolean> {
  const { status, body } = await browser.fetch(`${url}/api/me`)
  assert.ok(status === 401 || status === 200, `${status} ${body}`)
  return status !== 401
}

/** The value of a counter with one label. */
function counted({ replicas }: DeviceWorld, name: string, label: string): number | undefined {
  const family = replicas[0]?.metrics.collect().find((one) => one.name === name)
  return family?.cells.find(({ labels }) => labels[0] === label)?.values[0]
}

test('A copy of both cookies is of use until the bound cookie is over, and the browser goes on', async (t) => {
  const world = await startDeviceWorld(t)
  const browser = await world.bound()
  const other = thief()
  browser.stolenBy(other)
  assert.equal(await hasAccess(other, world), true)

  world.moveClock(acceptedMs - 5_000)
  assert.equal(await hasAccess(other, world), true)
  world.moveClock(40_000)
  assert.equal(await hasAccess(other, world), false)

  browser.cookies.delete(boundCookie)
  assert.equal((await browser.renew()).status, 200)
  assert.equal(await hasAccess(browser, world), true)
  assert.equal(await hasAccess(other, world), false)
  const [event, ...others] = world.events('session.bound_cookie_refused')
  assert.equal(event?.['reason'], 'expired')
  assert.equal(event?.['sub'], 'jane')
  assert.equal(typeof event?.['client'], 'string')
  assert.deepEqual(others, [], 'one event a minute')
})

test('The session cookie alone is of no use, once the requests of the sign-in have arrived', async (t) => {
  const world = await startDeviceWorld(t)
  const browser = await world.bound()
  const other = thief()
  browser.stolenBy(other)
  other.cookies.delete(boundCookie)

  assert.equal(await hasAccess(other, world), true, 'such requests were on their way when the key was registered')
  world.moveClock(graceMs)
  assert.equal(await hasAccess(other, world), false)
  const page = await other.send(`${world.url}/`)
  assert.equal(page.status, 303)
  assert.match(String(page.headers.location), /\/sign-in\?return_to=%2F$/)
  assert.equal(page.headers['set-cookie'], undefined, 'the cookie stays in a browser that could not renew its proof')

  for (const path of ['session', 'events']) {
    const { status, body } = await other.fetch(`${world.url}/.gatehouse/${path}`)
    assert.ok(status === 401 || body.includes('event: ended'), `${path}: ${status} ${body}`)
    assert.doesNotMatch(body, /jane/)
  }
  assert.equal((await other.fetch(`${world.url}/.gatehouse/session`, { method: 'POST' })).status, 401)
  const socket = new WebSocket(`${world.url.replace(/^http/, 'ws')}/ws`, {
    headers: { cookie: other.cookieHeader },
    ...issueCertificates().client,
  })
  const [{ message }] = (await once(socket, 'error')) as [Error]
  assert.equal(message, 'Unexpected server response: 401')
  assert.equal(
    (await other.send(`${world.url}/.gatehouse/sign-in?return_to=/`)).headers.location?.includes(world.provider.issuer),
    true,
  )
})

test('The bound cookie of another session is of no use', async (t) => {
  const world = await startDeviceWorld(t)
  const [jane, again] = [await world.bound(), await world.bound()]
  world.moveClock(graceMs)
  const value = again.cookies.get(boundCookie)
  jane.cookies.set(boundCookie, value ?? assert.fail())

  assert.equal(await hasAccess(jane, world), false)
  assert.equal(world.events('session.bound_cookie_refused').at(-1)?.['reason'], 'invalid')
})

test('A browser whose bound cookie is not accepted loses it with the redirect, so that it proves its key', async (t) => {
  const world = await startDeviceWorld(t)
  const browser = await world.bound()
  world.moveClock(acceptedMs + graceMs)

  const { status, headers } = await browser.send(`${world.url}/page`)
  assert.equal(status, 303)
  assert.match(String(headers['set-cookie']), new RegExp(`^${boundCookie}=; .*Max-Age=0`))
  await browser.renew()
  const next = await browser.send(new URL(String(headers.location), world.url).href)

  assert.equal(next.headers.location, '/page', 'without a sign-in at the provider')
})

test('A renewal is no activity: an unused session ends after the idle timeout', async (t) => {
  const world = await startDeviceWorld(t, { session: 'idle_timeout: 10m' })
  const browser = await world.bound()
  world.moveClock(6 * 60_000)
  await browser.renew()
  world.moveClock(6 * 60_000)

  const { body } = await browser.renew()

  assert.equal((JSON.parse(body) as Record<string, unknown>)['continue'], false)
})

test('A challenge is accepted for a minute', async (t) => {
  const world = await startDeviceWorld(t)
  const browser = await world.bound()
  const url = `${world.url}/.gatehouse/device-refresh`
  const id = { 'sec-secure-session-id': String(browser.instructions['session_identifier']) }
  const asked = await browser.prove(url, id)
  const [, jti] = /^"([^"]+)"/.exec(String(asked.headers['secure-session-challenge'])) ?? []
  const proof = { ...id, 'secure-session-response': proofOf(browser.key, { jti }, { jwk: undefined }) }

  world.moveClock(55_000)
  assert.equal((await browser.prove(url, proof)).status, 200)
  world.moveClock(10_000)
  const late = await browser.prove(url, proof)

  assert.equal(late.status, 403)
  assert.notEqual(late.headers['secure-session-challenge'], undefined, 'the browser gets a new one')
})

test('A registration is accepted for five minutes', async (t) => {
  const world = await startDeviceWorld(t)
  const browser = world.device()
  await browser.get(`${world.url}/`)
  world.moveClock(5 * 60_000 + 1_000)

  assert.equal((await browser.register()).status, 403)
  assert.equal(await hasAccess(browser, world), true)
})

test('With on_misuse: end, a copy of the cookie ends the session', async (t) => {
  const world = await startDeviceWorld(t, { session: 'device_binding: { mode: when_supported, on_misuse: end }' })
  const browser = await world.bound()
  const other = thief()
  browser.stolenBy(other)
  other.cookies.delete(boundCookie)
  world.moveClock(graceMs)

  // A browser that could not reach the gateway is not a thief.
  const skipped = { 'secure-session-skipped': 'unreachable;session_identifier="x"' }
  assert.equal((await other.fetch(`${world.url}/api/me`, { headers: skipped })).status, 401)
  assert.equal(await hasAccess(browser, world), true)
  assert.equal(await hasAccess(other, world), false)

  await until('the session has ended', async () => !(await hasAccess(browser, world)))
  assert.equal(world.events('session.ended').at(-1)?.['by'], 'misuse')
  assert.equal(counted(world, 'gatehouse_bound_cookies_skipped_total', 'unreachable'), 1)
  assert.equal(counted(world, 'gatehouse_bound_cookies_refused_total', 'missing'), 2)
})

test('With device_binding: required, a browser without keys has access for a minute, and then a page says why not', async (t) => {
  const world = await startDeviceWorld(t, { session: 'device_binding: required' })
  const [plain, bound] = [world.browser(), await world.bound()]
  assert.equal((await plain.get(`${world.url}/`)).status, 200)
  world.moveClock(60_000)

  const page = await plain.send(`${world.url}/`)

  assert.equal(page.status, 403)
  assert.match(page.body, /a session that is bound to your device[\s\S]*Sign out, and sign in again/)
  assert.equal((await plain.fetch(`${world.url}/api/me`)).status, 403)
  assert.equal((await bound.send(`${world.url}/`)).status, 200)
  assert.equal(world.events('access.denied').at(-1)?.['code'], 'ERR_DEVICE_BINDING')
})

test('With device_binding: required, a browser without keys makes no key for a program either', async (t) => {
  const world = await startDeviceWorld(t, {
    session: 'device_binding: required\n  page: true',
    upstreamSettings: 'keys: {}\n    rules: [{ path: /dav/*, keys: true }]',
  })
  const plain = world.browser()
  const page = await plain.get(`${world.url}/.gatehouse/sign-in?return_to=/.gatehouse/sessions`)
  const form = formsOf(page).find(({ button }) => button === 'Make a key') ?? assert.fail(page.body)
  world.moveClock(60_000)

  const refused = await sendForm(plain, { ...form, fields: { ...form.fields, name: 'DAVx5', upstream: 'orders' } })

  assert.equal(refused.status, 403)
  assert.match(refused.body, /a session that is bound to your device/)
})

test('A rule can require a bound session where the upstream does not', async (t) => {
  const world = await startDeviceWorld(t, {
    upstreamSettings: 'rules: [{ path: /admin/*, device_binding: required }, { path: /api/*, unauthenticated: 401 }]',
  })
  const [plain, bound] = [world.browser(), await world.bound()]
  await plain.get(`${world.url}/`)
  world.moveClock(60_000)

  assert.equal((await plain.send(`${world.url}/`)).status, 200)
  assert.equal((await plain.send(`${world.url}/admin/`)).status, 403)
  assert.notEqual((await bound.send(`${world.url}/admin/`)).status, 403)
  // An application may read this path as one below /admin/.
  assert.equal((await plain.send(`${world.url}/admin%2Fusers`)).status, 400)
})

test('With device_binding: off, no browser is asked for a key', async (t) => {
  const world = await startDeviceWorld(t, { session: 'device_binding: off' })
  const browser = world.device()
  await browser.get(`${world.url}/`)

  assert.equal(browser.registration, undefined)
  assert.equal((await browser.prove(`${world.url}/.gatehouse/device-refresh`, {})).status, 404)
})

test('A key that was registered at one replica proves the session at all others, also after a restart', async (t) => {
  const world = await startDeviceWorld(t, { store: 'redis', replicas: 2 })
  const [one, other] = world.replicas
  const at = (replica: typeof one, path: string) => `https://localhost:${new URL(replica?.url ?? '').port}${path}`
  const browser = world.device()
  await browser.get(`${world.url}/`)
  // The other replica has the session in memory, without a key.
  assert.equal((await browser.send(at(other, '/'))).status, 200)
  assert.equal((await browser.register()).status, 200)
  const stolen = thief()
  browser.stolenBy(stolen)
  stolen.cookies.delete(boundCookie)
  world.moveClock(graceMs)

  assert.equal((await stolen.fetch(at(other, '/api/me'))).status, 401)
  assert.equal((await browser.send(at(other, '/'))).status, 200)
  await one?.stop()
  browser.cookies.delete(boundCookie)
  if (browser.registration !== undefined)
    browser.registration = { ...browser.registration, url: at(other, '/.gatehouse/device-registration') }
  assert.equal((await browser.renew()).status, 200)
  assert.equal((await browser.send(at(other, '/'))).status, 200)
})

test('A copy of the session cookie does not show where its owner is signed in, and ends nothing', async (t) => {
  const world = await startDeviceWorld(t, { session: 'page: true' })
  const [browser, second] = [await world.bound(), await world.bound()]
  const page = `${world.url}/.gatehouse/sessions`
  const shown = await browser.get(page)
  assert.match(shown.body, /Protection<\/dt><dd>Cannot be used on another device</)
  const other = thief()
  browser.stolenBy(other)
  other.cookies.delete(boundCookie)
  world.moveClock(graceMs)

  const seen = await other.send(page)

  assert.deepEqual([seen.status, seen.body], [303, ''])
  assert.deepEqual(
    world.events('session.bound_cookie_refused').map(({ reason }) => reason),
    ['missing'],
    'the operator learns that there is a copy',
  )
  const forms = formsOf(shown).filter(({ fields }) => 'session' in fields)
  assert.equal(forms.length, 2, 'one session, and all others')
  for (const each of forms) assert.doesNotMatch((await sendForm(other, each)).body, /<h2>/)
  for (const owner of [browser, second]) assert.equal(await hasAccess(owner, world), true)
})
