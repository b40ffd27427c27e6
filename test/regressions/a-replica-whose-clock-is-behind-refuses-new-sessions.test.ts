import assert from 'node:assert/strict'
import { test } from 'node:test'
import { boundCookie, startDeviceWorld } from '../device/world.ts'
import { startSigningInApplication } from '../support/signing-in-application.ts'
import { startWorld } from '../support/world.ts'

/** How much the clock of the next replica is behind that of the first, in ms. */
const behindMs = 5_000

test('A request that was on its way during the registration is accepted where the clock is behind', async (t) => {
  const world = await startDeviceWorld(t)
  const browser = await world.bound()
  browser.cookies.delete(boundCookie)

  world.moveClock(-behindMs)

  assert.equal((await browser.fetch(`${world.url}/api/me`)).status, 200)
})

test('A new session has its time to be bound where the clock is behind', async (t) => {
  const world = await startDeviceWorld(t, { session: 'device_binding: required' })
  const browser = world.browser()
  assert.equal((await browser.get(`${world.url}/`)).status, 200)

  world.moveClock(-behindMs)

  assert.equal((await browser.send(`${world.url}/`)).status, 200)
})

test('A password is sent once to an application that asks again, also where the clock is behind', async (t) => {
  const application = await startSigningInApplication(t)
  application.passwords.set('jane', 'jane.doe@example.com')
  const world = await startWorld(t, {
    upstream: application.url,
    upstreamSettings: `session_cookies: [APP, browser]
    application_sign_in: { page: /login, fields: { user: "{username}", pass: "{password}" }, password: { claim: email } }`,
  })
  const jane = world.browser()
  assert.equal((await jane.get(`${world.url}/`)).status, 200)
  assert.equal(application.attempts.length, 1)
  application.endSessions()

  world.moveClock(-behindMs)
  await jane.get(`${world.url}/`)

  assert.equal(application.attempts.length, 1)
})
