import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { Visit } from '../support/browser.ts'
import { JarBrowser } from '../support/jar-browser.ts'
import { type Shown, startSessionApplication } from '../support/session-application.ts'
import { until } from '../support/until.ts'
import { startWorld, type World, type WorldOptions } from '../support/world.ts'

const sessionCookies = `session_cookies: [JSESSIONID]
    logout: { call: /logout }`

async function start(t: TestContext, options: WorldOptions = {}) {
  const application = await startSessionApplication(t)
  const world = await startWorld(t, { upstream: application.url, upstreamSettings: sessionCookies, ...options })
  const jane = new JarBrowser('jane')
  assert.deepEqual(shown(await jane.get(`${world.url}/`)), { owner: 'jane', visits: 1 })
  return { application, world, jane }
}

/** Signs in again while the session is alive, as the script does in a pop-up window. */
async function renew(browser: JarBrowser, world: World): Promise<void> {
  const before = sessionOf(browser)
  const page = await browser.get(`${world.url}/.gatehouse/sign-in?return_to=%2F.gatehouse%2Fsigned-in`)
  assert.deepEqual([page.url, page.status], [`${world.url}/.gatehouse/signed-in`, 200])
  assert.notEqual(sessionOf(browser), before)
}

const sessionOf = ({ kept }: JarBrowser) => kept.find(({ name }) => name === 'gatehouse')?.value ?? assert.fail()

function shown({ status, body }: Visit) {
  assert.equal(status, 200, body)
  const { owner, visits } = JSON.parse(body) as Shown
  return { owner, visits }
}

for (const store of ['memory', 'redis'] as const) {
  test(`${store}: A new sign-in of the same person keeps the session of the application, without a logout call`, async (t) => {
    const { application, world, jane } = await start(t, { store })
    const old = sessionOf(jane)

    await renew(jane, world)
    assert.deepEqual(shown(await jane.fetch(`${world.url}/`)), { owner: 'jane', visits: 2 })
    await renew(jane, world)
    assert.deepEqual(shown(await jane.fetch(`${world.url}/`)), { owner: 'jane', visits: 3 })

    const late = await world.browser().fetch(`${world.url}/`, { headers: { cookie: `gatehouse=${old}` } })
    assert.equal(late.status, 401, 'the previous session has ended')
    const ended = world.replicas[0]?.log.filter(({ message }) => message === 'session.ended') ?? []
    assert.deepEqual(
      ended.map(({ fields }) => fields['by']),
      ['new_sign_in', 'new_sign_in'],
    )
    await jane.fetch(`${world.url}/.gatehouse/sign-out`, { method: 'POST' })
    await until('the application is called', () => application.logouts.length > 0)
    await until('the outcome is logged', () => outcomes(world).length > 0)
    assert.deepEqual([application.owners(), application.logouts.length, outcomes(world)], [[], 1, ['done']])
  })

  test(`${store}: A sign-in of another person ends the session of the application`, async (t) => {
    const { application, world, jane } = await start(t, { store })
    const samir = jane.handOver('samir')

    await renew(samir, world)

    assert.deepEqual(shown(await samir.fetch(`${world.url}/`)), { owner: 'samir', visits: 1 })
    await until('the application is called', () => application.logouts.length > 0)
    assert.equal(application.logouts[0]?.owner, 'jane')
  })
}

const outcomes = ({ replicas }: World) =>
  replicas
    .flatMap(({ log }) => log.filter(({ message }) => message === 'application.logout'))
    .map(({ fields }) => fields['outcome'])

test('A new sign-in of the same person keeps the cookie of the application in the browser', async (t) => {
  const { world, jane } = await start(t, { upstreamSettings: 'logout: { cookies: [JSESSIONID] }' })

  await renew(jane, world)

  assert.deepEqual(shown(await jane.fetch(`${world.url}/`)), { owner: 'jane', visits: 2 })
  const samir = jane.handOver('samir')
  await renew(samir, world)
  assert.deepEqual(samir.places, [], 'the cookie of the other person is deleted')
  assert.deepEqual(shown(await samir.fetch(`${world.url}/`)), { owner: 'samir', visits: 1 })
})

for (const where of ['this process', 'another replica'] as const)
  test(`Late responses to requests from before a new sign-in do not delete the new cookies: ${where}`, async (t) => {
    const { world, jane } = await start(t, {
      store: 'redis',
      replicas: 2,
      upstreamSettings: 'logout: { cookies: [JSESSIONID] }',
    })
    const headers = { cookie: `gatehouse=${sessionOf(jane)}; JSESSIONID=x` }
    const at = world.replicas[where === 'this process' ? 0 : 1]?.url ?? ''
    assert.equal((await world.browser().fetch(`${at}/`, { headers })).status, 200)

    await renew(jane, world)

    for (const path of ['/', '/.gatehouse/session']) {
      const late = await world.browser().fetch(at + path, { headers })
      assert.deepEqual([late.status, late.headers['set-cookie']], [401, undefined], path)
    }
  })

test('A page of another site cannot make a browser begin a new session', async (t) => {
  const { world, jane } = await start(t)
  const link = `${world.url}/.gatehouse/sign-in?return_to=%2F.gatehouse%2Fsigned-in`

  for (const site of ['cross-site', 'same-site']) {
    const { headers } = await jane.send(link, { headers: { 'sec-fetch-site': site } })
    assert.equal(headers['location'], '/.gatehouse/signed-in')
  }
  const { headers } = await jane.send(link, { headers: { 'sec-fetch-site': 'same-origin' } })
  assert.equal(new URL(String(headers['location'])).origin, new URL(world.provider.issuer).origin)
})

test('A person who is not signed in does not read that she is', async (t) => {
  const { world } = await start(t)

  const { status, body } = await world.browser().send(`${world.url}/.gatehouse/signed-in`)

  assert.equal(status, 401)
  assert.match(body, /href="\/\.gatehouse\/sign-in\?return_to=%2F\.gatehouse%2Fsigned-in"/)
})
