import assert from 'node:assert/strict'
import { test } from 'node:test'
import { enter } from '../support/password-page.ts'
import { press } from '../support/session-page.ts'
import { startSigningInApplication } from '../support/signing-in-application.ts'
import { startWorld } from '../support/world.ts'

// Two people use one browser. The page of the first one is still open.
test('A password is kept, or removed, only for the person whose page it was', async (t) => {
  const application = await startSigningInApplication(t)
  const world = await startWorld(t, {
    upstream: application.url,
    session: 'page: true',
    upstreamSettings: `session_cookies: [APP, browser]
    application_sign_in: { page: /login, fields: { user: "{username}", pass: "{password}" }, username: { ask: true } }`,
  })
  const [browser, elsewhere] = [world.browser('jane'), world.browser('noa')]
  const open = await browser.get(`${world.url}/orders`)
  const ofNoa = await elsewhere.get(`${world.url}/orders`)
  const credentials = { username: 'jane', password: 'the password of jane' }
  const session = browser.cookies.get('gatehouse') ?? assert.fail()

  browser.cookies.set('gatehouse', elsewhere.cookies.get('gatehouse') ?? assert.fail())
  const asked = await enter(browser, open, credentials)

  assert.match(asked.body, /Your password for orders/)
  assert.deepEqual(application.attempts, [])

  const noa = { username: 'noa', password: 'das Paßwort & of noa' }
  assert.match((await enter(elsewhere, ofNoa, noa)).body, /Orders of noa/)
  browser.cookies.set('gatehouse', session)
  assert.match((await enter(browser, open, credentials)).body, /Orders of jane/)
  const list = await browser.get(`${world.url}/.gatehouse/sessions`)
  browser.cookies.set('gatehouse', elsewhere.cookies.get('gatehouse') ?? assert.fail())
  await press(browser, list, /^Remove the password/)
  assert.match((await elsewhere.get(`${world.url}/.gatehouse/sessions`)).body, /Remove the password/)
})
